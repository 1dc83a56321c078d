package io.lucce.programs;

import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.ListIterator;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.IntSupplier;
import java.util.function.IntUnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Prints the bytes that the VM allocates for each of some constructs once they are compiled, by its own count. No hook may
 * prevent the compiler from removing allocations.
 */
public final class Eliminated {
    private static final int ITERATIONS = 20_000;
    private static final List<Integer> LIST = new ArrayList<>();
    private static final Map<String, Integer> MAP = new HashMap<>();
    private static final int[] ARRAY = new int[50];
    private static volatile Object kept;
    private static int sum;

    static {
        for (int i = 0; i < 20; i++) {
            LIST.add(i);
            MAP.put("k" + i, i);
        }
    }

    private Eliminated() {}

    private static final class Point {
        final double x;
        final double y;

        Point(double x, double y) {
            this.x = x;
            this.y = y;
        }

        double times(Point other) {
            return x * other.x + y * other.y;
        }
    }

    private static final class Resource implements AutoCloseable {
        final int value;

        Resource(int value) {
            this.value = value;
        }

        @Override
        public void close() {
            sum += value;
        }
    }

    /** A construct. */
    public interface Body {
        int run(int i);
    }

    /** Runs a construct; each has a copy of this class, so that the compiler's profiles do not mix. */
    public static final class Loop implements Looping {
        @Override
        public long run(Body body, int times) {
            long all = 0;
            for (int i = 0; i < times; i++) {
                all += body.run(i);
            }
            return all;
        }
    }

    /** What copies of {@link Loop} have in common. */
    public interface Looping {
        long run(Body body, int times);
    }

    private static int apply(IntUnaryOperator function, int i) {
        return function.applyAsInt(i);
    }

    private static int sum(int... values) {
        int all = 0;
        for (int value : values) {
            all += value;
        }
        return all;
    }

    private static int hashes(Object... values) {
        int all = 0;
        for (Object value : values) {
            all += value.hashCode();
        }
        return all;
    }

    private static String name(int i) {
        switch (i & 3) {
            case 0: return "a";
            case 1: return "b";
            case 2: return "c";
            default: return "d";
        }
    }

    private static Map<String, Body> bodies() {
        Map<String, Body> all = new LinkedHashMap<>();
        all.put("capturing-lambda", i -> apply(v->v+i,3));
        all.put("capturing-lambda-2", i -> { IntSupplier s=()->i*2; return s.getAsInt(); });
        all.put("non-capturing-lambda", i -> apply(v->v+1,i));
        all.put("bound-method-ref", i -> { String s=name(i); IntSupplier q=s::length; return q.getAsInt(); });
        all.put("anonymous-class", i -> apply(new IntUnaryOperator(){public int applyAsInt(int v){return v+i;}},3));
        all.put("Optional-chain", i -> Optional.of(name(i)).map(String::length).filter(v->v>0).orElse(7));
        all.put("Optional-capturing", i -> Optional.of(name(i)).map(s->s.length()+i).orElse(7));
        all.put("OptionalInt", i -> OptionalInt.of(i).orElse(0));
        all.put("boxing", i -> { Integer b=i+1000; return b+1; });
        all.put("boxing-Long", i -> { Long b=i+1000L; return (int)(b+1L); });
        all.put("varargs-int", i -> sum(i,1,2,3));
        all.put("varargs-Object", i -> hashes(i,"a"));
        all.put("local-record", i -> (int)new Point(i,i+1).times(new Point(i+2,i)));
        all.put("enhanced-for-list", i -> { int s=0;for(int v:LIST)s+=v;return s; });
        all.put("enhanced-for-map", i -> { int s=0;for(Map.Entry<String,Integer> e:MAP.entrySet())s+=e.getValue();return s; });
        all.put("enhanced-for-array", i -> { int s=0;for(int v:ARRAY)s+=v;return s; });
        all.put("iterator-explicit", i -> { int s=0;Iterator<Integer> it=LIST.iterator();while(it.hasNext())s+=it.next();return s; });
        all.put("listIterator", i -> { int s=0;ListIterator<Integer> it=LIST.listIterator();while(it.hasNext())s+=it.next();return s; });
        all.put("subList", i -> { int s=0;for(int v:LIST.subList(2,9))s+=v;return s; });
        all.put("List.of", i -> { int s=0;for(Object v:List.of("a","b"))s+=v.hashCode();return s; });
        all.put("Arrays.asList", i -> { int s=0;for(Object v:Arrays.asList("a","b"))s+=v.hashCode();return s; });
        all.put("Map.entry", i -> Map.entry("a",name(i)).getValue().length());
        all.put("stream-sum", i -> LIST.stream().mapToInt(v->v).sum());
        all.put("stream-filter-map", i -> (int)LIST.stream().filter(v->v>3).map(v->v+1).count());
        all.put("IntStream.range", i -> IntStream.range(0,9).map(v->v+i).sum());
        all.put("stream-collect", i -> LIST.stream().map(v->v).collect(Collectors.toList()).size());
        all.put("string-concat", i -> ("a"+i+"b").length());
        all.put("string-concat-2", i -> (name(i)+":"+name(i+1)).length());
        all.put("StringBuilder", i -> { StringBuilder b=new StringBuilder();b.append(i).append('x');return b.length(); });
        all.put("StringBuilder-toString", i -> new StringBuilder().append(name(i)).append('x').toString().length());
        all.put("substring", i -> "hello world".substring(i&3,7).length());
        all.put("String.format", i -> String.format("%d",i).length());
        all.put("try-with-resources", i -> { try(Resource r=new Resource(i)){return r.value;} });
        all.put("switch-on-string", i -> { switch(name(i)){case "a":return 1;case "b":return 2;default:return 3;} });
        all.put("instanceof-pattern", i -> { Object o=new Point(i,1); if(o instanceof Point p) return (int)p.x; return 0; });
        all.put("small-array", i -> { int[] t={i,1,2};return t[0]+t[2]; });
        all.put("array-clone", i -> ARRAY.clone()[3]);
        all.put("Arrays.copyOf", i -> Arrays.copyOf(ARRAY,10)[3]);
        all.put("escaping-new", i -> { kept=new Point(i,i);return 0; });
        all.put("exception-caught", i -> { try{ if((i&1)==0)throw new IllegalStateException(); return 1;}catch(IllegalStateException e){return 2;} });
        all.put("AtomicReference", i -> { var r=new AtomicInteger(i);return r.incrementAndGet(); });
        all.put("Supplier-compose", i -> { Function<Integer,Integer> f=v->v+i;return f.andThen(v->v*2).apply(3); });
        all.put("Comparator", i -> Comparator.comparing((String s)->s.length()).thenComparing(s->s).compare(name(i),name(i+1)));
        all.put("enum-values", i -> Thread.State.values().length);
        all.put("StringJoiner", i -> String.join(",",name(i),name(i+1)).length());
        all.put("Objects.hash", i -> Objects.hash(i,"a"));
        all.put("inner-class-instance", i -> new Object(){int v=i;int get(){return v+1;}}.get());
        return all;
    }

    public static void main(String[] args) throws Exception {
        com.sun.management.ThreadMXBean threads =
                (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        int rounds = Integer.parseInt(args[0]);
        for (Map.Entry<String, Body> each : bodies().entrySet()) {
            Looping loop = copyLoop();
            long least = Long.MAX_VALUE;
            for (int round = 0; round < rounds; round++) {
                long before = threads.getCurrentThreadAllocatedBytes();
                sum += (int) loop.run(each.getValue(), ITERATIONS);
                least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
            }
            System.out.println("bytes " + each.getKey() + " " + least / ITERATIONS);
        }
    }

    private static Looping copyLoop() throws Exception {
        String name = Loop.class.getName();
        byte[] code;
        try (InputStream in = Eliminated.class.getResourceAsStream("Eliminated$Loop.class")) {
            code = in.readAllBytes();
        }
        ClassLoader loader = new ClassLoader(Eliminated.class.getClassLoader()) {
            @Override
            protected Class<?> loadClass(String wanted, boolean resolve) throws ClassNotFoundException {
                return wanted.equals(name) ? defineClass(wanted, code, 0, code.length) : super.loadClass(wanted, resolve);
            }
        };
        return (Looping) loader.loadClass(name).getDeclaredConstructor().newInstance();
    }
}
