package io.lucce.programs;

import io.lucce.CallContext;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Lambdas and method references, and streams that call them from deep inside the library. */
public final class Lambdas {
    static Object kept;

    public static void main(String[] args) throws Exception {
        body();
        Fresh.run(Lambdas.class, "body", Repeats.of(10));
        for (int i = 0; i < Repeats.of(30); i++) {
            body();
        }
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    static void body() throws Exception {
        simple();
        references();
        nested();
        recursion();
        exceptions();
        streams();
        parallel();
        serializable();
        Check.that(CallContext.current(), new Throwable());
    }

    static void simple() {
        Runnable plain = () -> Check.that(CallContext.current(), new Throwable());
        plain.run();
        Check.that(CallContext.current(), new Throwable());
        int captured = 71;
        Supplier<Object> capturing = () -> {
            Check.that(CallContext.current(), new Throwable());
            return new byte[captured];
        };
        kept = capturing.get();
        Check.that(CallContext.current(), new Throwable());
        BiFunction<Integer, Integer, Integer> two = (a, b) -> {
            Check.that(CallContext.current(), new Throwable());
            return a + b;
        };
        Check.equal(9, two.andThen(n -> n + 2).apply(3, 4));
        Check.that(CallContext.current(), new Throwable());
    }

    private final String name;

    Lambdas(String name) {
        this.name = name;
        Check.that(CallContext.current(), new Throwable());
    }

    String name() {
        Check.that(CallContext.current(), new Throwable());
        return name;
    }

    static String shout(String text) {
        Check.that(CallContext.current(), new Throwable());
        return text.toUpperCase();
    }

    static void references() {
        Function<String, Lambdas> make = Lambdas::new;
        Lambdas made = make.apply("made");
        Check.that(CallContext.current(), new Throwable());
        Supplier<String> bound = made::name;
        Function<Lambdas, String> unbound = Lambdas::name;
        UnaryOperator<String> shout = Lambdas::shout;
        Check.equal("MADE", shout.apply(bound.get()));
        Check.that(CallContext.current(), new Throwable());
        Check.equal("made", make.andThen(unbound).apply("made"));
        Check.that(CallContext.current(), new Throwable());
        IntFunction<byte[]> array = byte[]::new;
        kept = array.apply(72);
        Check.that(CallContext.current(), new Throwable());
        Supplier<String> superclass = made.fromSuper();
        kept = superclass.get();
        Check.that(CallContext.current(), new Throwable());
    }

    Supplier<String> fromSuper() {
        return super::toString;
    }

    static void nested() {
        Supplier<Supplier<Supplier<Object>>> three = () -> {
            Check.that(CallContext.current(), new Throwable());
            return () -> {
                Check.that(CallContext.current(), new Throwable());
                return () -> {
                    Check.that(CallContext.current(), new Throwable());
                    return new byte[73];
                };
            };
        };
        kept = three.get().get().get();
        Check.that(CallContext.current(), new Throwable());
    }

    static void recursion() {
        List<Function<Integer, Integer>> self = new ArrayList<>();
        self.add(n -> {
            Check.that(CallContext.current(), new Throwable());
            int below = n == 0 ? 0 : self.get(0).apply(n - 1);
            Check.that(CallContext.current(), new Throwable());
            return below + 1;
        });
        Check.equal(21, self.get(0).apply(20));
        Check.that(CallContext.current(), new Throwable());
    }

    static void exceptions() {
        Function<Integer, Object> fails = n -> {
            kept = new byte[n];
            if (n > 0) {
                throw new IllegalStateException("in a lambda");
            }
            return n;
        };
        for (int i = 0; i < 4; i++) {
            try {
                fails.compose((Integer n) -> n % 2).apply(i);
                Check.that(CallContext.current(), new Throwable());
            } catch (IllegalStateException e) {
                Check.that(CallContext.current(), new Throwable());
            }
            kept = new byte[74];
        }
        try {
            Stream.of(1, 2, 3).map(fails).forEach(x -> Check.wrong("must not come here"));
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void streams() {
        int sum = IntStream.range(0, 20).filter(n -> {
            Check.that(CallContext.current(), new Throwable());
            return n % 2 == 0;
        }).mapToObj(n -> new int[] {n}).mapToInt(a -> {
            kept = new byte[75];
            Check.that(CallContext.current(), new Throwable());
            return a[0];
        }).sum();
        Check.equal(90, sum);
        Check.that(CallContext.current(), new Throwable());
        Map<Integer, List<String>> byLength = Stream.of("a", "bb", "cc", "ddd").collect(Collectors.groupingBy(text -> {
            Check.that(CallContext.current(), new Throwable());
            return text.length();
        }, TreeMap::new, Collectors.toList()));
        Check.equal("{1=[a], 2=[bb, cc], 3=[ddd]}", byLength.toString());
        List<String> sorted = Stream.of("b", "c", "a").sorted(Comparator.comparing(text -> {
            Check.that(CallContext.current(), new Throwable());
            return text;
        })).flatMap(text -> Stream.of(text, text)).limit(5).collect(Collectors.toList());
        Check.equal(List.of("a", "a", "b", "b", "c"), sorted);
        Check.that(CallContext.current(), new Throwable());
        Map<String, Object> map = new TreeMap<>();
        for (int i = 0; i < 5; i++) {
            map.computeIfAbsent("key" + i % 2, key -> {
                Check.that(CallContext.current(), new Throwable());
                return new byte[76];
            });
            map.merge("key", 1, (a, b) -> {
                Check.that(CallContext.current(), new Throwable());
                return (Integer) a + (Integer) b;
            });
        }
        Check.equal(5, map.get("key"));
        Check.that(CallContext.current(), new Throwable());
    }

    static void parallel() {
        int sum = IntStream.range(0, 64).parallel().map(n -> {
            Check.that(CallContext.current(), new Throwable());
            return n;
        }).sum();
        Check.equal(2016, sum);
        Check.that(CallContext.current(), new Throwable());
        List<Object> made = Stream.iterate(1, n -> n + 1).limit(32).parallel().<Object>map(n -> {
            Check.that(CallContext.current(), new Throwable());
            return new byte[n];
        }).collect(Collectors.toList());
        Check.equal(32, made.size());
        try {
            IntStream.range(0, 64).parallel().forEach(n -> {
                kept = new byte[n];
                throw new IllegalStateException("in a pool");
            });
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    interface SerializableSupplier extends Supplier<Object>, Serializable {}

    static void serializable() throws Exception {
        String captured = "captured";
        SerializableSupplier supplier = () -> {
            Check.that(CallContext.current(), new Throwable());
            return captured;
        };
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(supplier);
        }
        try (ObjectInputStream in = new LoaderInput(bytes.toByteArray())) {
            Check.equal("captured", ((SerializableSupplier) in.readObject()).get());
        }
        Check.that(CallContext.current(), new Throwable());
    }

    /** Reads classes with the loader of this copy of the program. */
    private static final class LoaderInput extends ObjectInputStream {
        LoaderInput(byte[] bytes) throws java.io.IOException {
            super(new ByteArrayInputStream(bytes));
        }

        @Override
        protected Class<?> resolveClass(java.io.ObjectStreamClass description) throws ClassNotFoundException {
            Check.that(CallContext.current(), new Throwable());
            return Class.forName(description.getName(), false, Lambdas.class.getClassLoader());
        }
    }
}
