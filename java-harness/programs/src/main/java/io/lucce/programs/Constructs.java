package io.lucce.programs;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.io.StringReader;
import java.io.StringWriter;
import java.io.PrintWriter;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.lang.ref.Cleaner;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.text.DecimalFormat;
import java.text.MessageFormat;
import java.text.SimpleDateFormat;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Calendar;
import java.util.Collections;
import java.util.Date;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.ListResourceBundle;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.ResourceBundle;
import java.util.Scanner;
import java.util.Set;
import java.util.StringJoiner;
import java.util.StringTokenizer;
import java.util.TreeMap;
import java.util.UUID;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * Every way in which Java code can allocate, one construct each: prints its name, its class and what the VM says that the thread
 * allocated meanwhile, in bytes. What is counted below {@code measured} and the construct's class must be the same.
 *
 * <p>Arguments: how often each is done, and perhaps the names of those that are.
 */
public final class Constructs {
    /** Classes are loaded, call sites linked, and reflection and method handles have made code of their own. */
    private static final int BEFORE = 200;
    private static final com.sun.management.ThreadMXBean VM =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    static volatile Object sink;

    private Constructs() {}

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        Set<String> wanted = new HashSet<>(Arrays.asList(args).subList(1, args.length));
        for (Way way : Way.values()) {
            if (wanted.isEmpty() || wanted.contains(way.name())) {
                say(way, way.rare ? rounds / 10 : rounds);
            }
        }
    }

    private static void say(Way way, int rounds) throws Exception {
        for (int i = 0; i < BEFORE; i++) {
            sink = way.make(i);
        }
        long before = VM.getCurrentThreadAllocatedBytes();
        measured(way, rounds);
        long bytes = VM.getCurrentThreadAllocatedBytes() - before;
        System.out.println(way.name() + " " + way.getClass().getName() + " " + bytes);
    }

    private static void measured(Way way, int rounds) throws Exception {
        for (int i = 0; i < rounds; i++) {
            sink = way.make(i);
        }
    }

    @Retention(RetentionPolicy.RUNTIME)
    @interface Marked {
        String value() default "nothing";

        int[] numbers() default {1, 2, 3};
    }

    /** What the constructs are done with. */
    @Marked("an annotation")
    static class Thing implements Cloneable, Serializable, Comparable<Thing> {
        private static final long serialVersionUID = 1;
        public int number;
        public String text = "text";
        public int[] array = {1, 2, 3};

        public Thing() {}

        public Thing(int number) {
            this.number = number;
        }

        public Object twice(Object object) {
            return List.of(object, object);
        }

        static Object some(Object... all) {
            return all;
        }

        @Override
        public Thing clone() throws CloneNotSupportedException {
            return (Thing) super.clone();
        }

        @Override
        public int compareTo(Thing other) {
            return Integer.compare(number, other.number);
        }

        class Inner {
            int outer = number;
        }
    }

    record Pair(Object first, int second) {}

    enum Color {
        RED,
        GREEN,
        BLUE
    }

    sealed interface Shape permits Circle, Square {}

    record Circle(double radius) implements Shape {}

    record Square(double side) implements Shape {}

    interface Greeter {
        Object greet(Object whom, int times);

        default Object hello() {
            return greet("all", 1);
        }
    }

    public static final class Texts extends ListResourceBundle {
        @Override
        protected Object[][] getContents() {
            return new Object[][] {{"hello", "Hello"}, {"bye", "Bye"}};
        }
    }

    static final class Finalized {
        @Override
        @SuppressWarnings({"deprecation", "removal"})
        protected void finalize() {}
    }

    static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;

        Failure(String text, Throwable cause) {
            super(text, cause);
        }
    }

    private static Thread parked() {
        Thread parked = new Thread(Constructs::park, "parked");
        parked.setDaemon(true);
        parked.start();
        while (parked.getState() != Thread.State.WAITING) Thread.onSpinWait();
        return parked;
    }

    private static void park() {
        while (true) LockSupport.park();
    }

    static final class Data {
        static final Thing THING = new Thing(7);
        static final int[] INTS = new int[250];
        static final String[] WORDS = {"one", "two", "three", "four"};
        static final List<Integer> NUMBERS = List.of(5, 3, 9, 1, 7, 300, 400, 500);
        static final Map<String, Integer> MAP = new HashMap<>(Map.of("a", 1, "b", 2, "c", 3));
        static final byte[] BYTES = "some bytes, größer".getBytes(StandardCharsets.UTF_8);
        static final byte[] SERIAL = serial();
        static final Pattern WORD = Pattern.compile("(\\w+)\\s+(\\w+)");
        static final Thread PARKED = parked();
        static final Pattern COMMA = Pattern.compile(", *");
        static final ReferenceQueue<Object> QUEUE = new ReferenceQueue<>();
        static final Cleaner CLEANER = Cleaner.create();
        static final ThreadLocal<Object> LOCAL = new ThreadLocal<>();
        static final Path FILE = file();
        static final SimpleDateFormat DATES = new SimpleDateFormat("yyyy-MM-dd", Locale.ROOT);
        static final DecimalFormat DECIMALS = new DecimalFormat("#,##0.00");
        static final Greeter GREETER = (Greeter) Proxy.newProxyInstance(Constructs.class.getClassLoader(),
                new Class<?>[] {Greeter.class}, (proxy, method, arguments) -> arguments);
        static final Method TWICE;
        static final Method SOME;
        static final Field NUMBER;
        static final Constructor<Thing> THINGS;
        static final MethodHandle NEW;
        static final MethodHandle BOUND;
        static final MethodHandle SPREAD;
        static final MethodHandle COLLECT;
        static final MethodHandle VARARGS;
        static final MethodHandle BOXING;
        static final MethodHandle CONVERTED;
        static final VarHandle FIELD;
        static final VarHandle ELEMENTS = MethodHandles.arrayElementVarHandle(Object[].class);
        static final sun.misc.Unsafe UNSAFE;

        static {
            try {
                TWICE = Thing.class.getMethod("twice", Object.class);
                SOME = Thing.class.getDeclaredMethod("some", Object[].class);
                NUMBER = Thing.class.getField("number");
                THINGS = Thing.class.getConstructor(int.class);
                MethodHandles.Lookup lookup = MethodHandles.lookup();
                NEW = lookup.findConstructor(Thing.class, MethodType.methodType(void.class, int.class));
                MethodHandle twice = lookup.findVirtual(Thing.class, "twice",
                        MethodType.methodType(Object.class, Object.class));
                BOUND = twice.bindTo(THING);
                SPREAD = twice.asSpreader(Object[].class, 2);
                MethodHandle some = lookup.findStatic(Thing.class, "some",
                        MethodType.methodType(Object.class, Object[].class));
                COLLECT = some.asFixedArity().asCollector(Object[].class, 3);
                VARARGS = some.asVarargsCollector(Object[].class);
                BOXING = COLLECT.asType(MethodType.methodType(Object.class, int.class, long.class, double.class));
                CONVERTED = MethodHandles.filterReturnValue(
                        MethodHandles.insertArguments(NEW, 0, 9).asType(MethodType.methodType(Object.class)),
                        lookup.findStatic(String.class, "valueOf",
                                MethodType.methodType(String.class, Object.class)));
                FIELD = lookup.findVarHandle(Thing.class, "number", int.class);
                Field unsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
                unsafe.setAccessible(true);
                UNSAFE = (sun.misc.Unsafe) unsafe.get(null);
            } catch (ReflectiveOperationException e) {
                throw new ExceptionInInitializerError(e);
            }
        }

        private static byte[] serial() {
            try {
                return written(new Thing(3));
            } catch (Exception e) {
                throw new ExceptionInInitializerError(e);
            }
        }

        private static Path file() {
            try {
                Path file = Files.createTempFile("constructs", ".txt");
                file.toFile().deleteOnExit();
                return Files.writeString(file, "a line\nand another\nand one more\n");
            } catch (Exception e) {
                throw new ExceptionInInitializerError(e);
            }
        }

        static byte[] written(Object object) throws Exception {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(object);
            }
            return bytes.toByteArray();
        }
    }

    static int depth(int i) {
        return i == 0 ? Data.INTS[250] : depth(i - 1) + 1;
    }

    static Object all(Object... all) {
        return all;
    }

    /** A construct; what is rare takes long. */
    enum Way {
        // Bytecode.
        NEW { Object make(int i) { return new Thing(i); } },
        NEW_INNER { Object make(int i) { return Data.THING.new Inner(); } },
        NEW_ANONYMOUS { Object make(int i) { return new Object() { final int number = i; }; } },
        NEW_LOCAL_CLASS { Object make(int i) { class Local { final int number = i; } return new Local(); } },
        ARRAY_BOOLEAN { Object make(int i) { return new boolean[i % 50]; } },
        ARRAY_BYTE { Object make(int i) { return new byte[i % 50]; } },
        ARRAY_CHAR { Object make(int i) { return new char[i % 50]; } },
        ARRAY_SHORT { Object make(int i) { return new short[i % 50]; } },
        ARRAY_INT { Object make(int i) { return new int[i % 50]; } },
        ARRAY_LONG { Object make(int i) { return new long[i % 50]; } },
        ARRAY_FLOAT { Object make(int i) { return new float[i % 50]; } },
        ARRAY_DOUBLE { Object make(int i) { return new double[i % 50]; } },
        ARRAY_OBJECTS { Object make(int i) { return new Object[i % 50]; } },
        ARRAY_LARGE(true) { Object make(int i) { return new byte[1_000_000]; } },
        ARRAY_INITIALIZER { Object make(int i) { return new int[] {i, 1, 2, 3}; } },
        ARRAYS_2 { Object make(int i) { return new int[5][7]; } },
        ARRAYS_2_OF_3 { Object make(int i) { return new Object[3][4][]; } },
        ARRAYS_3 { Object make(int i) { return new long[2][3][4]; } },
        ARRAYS_EMPTY { Object make(int i) { return new long[2][0][4]; } },
        ARRAYS_INITIALIZER { Object make(int i) { return new String[][] {{"a"}, {"b", "c"}, {}}; } },
        RECORD { Object make(int i) { return new Pair("first", i); } },
        RECORD_TEXT { Object make(int i) { return new Pair("first", i).toString(); } },
        ENUM_VALUES { Object make(int i) { return Color.values(); } },
        ENUM_SWITCH { Object make(int i) {
            return switch (Color.values()[i % 3]) { case RED -> new Object(); case GREEN -> "green"; case BLUE -> i; };
        } },
        STRING_SWITCH { Object make(int i) {
            return switch (Data.WORDS[i % 4]) { case "one" -> new int[1]; case "two" -> new int[2]; default -> new int[9]; };
        } },
        SEALED { Object make(int i) {
            Shape shape = i % 2 == 0 ? new Circle(i) : new Square(i);
            return shape instanceof Circle circle ? circle.radius() : shape;
        } },
        BOX_INT { Object make(int i) { return i + 1000; } },
        BOX_LONG { Object make(int i) { return i + 1000L; } },
        BOX_DOUBLE { Object make(int i) { return i + 0.5; } },
        BOX_FLOAT { Object make(int i) { return i + 0.5f; } },
        BOX_CHAR { Object make(int i) { return (char) (i + 1000); } },
        BOX_SHORT { Object make(int i) { return (short) (i + 1000); } },
        BOX_BYTE { Object make(int i) { return (byte) i; } },
        VARARGS { Object make(int i) { return all("a", i, 2.5, 'c'); } },

        // Strings.
        CONCAT_INT { Object make(int i) { return "order " + i; } },
        CONCAT_MIXED { Object make(int i) { return "order " + i + " of customer " + (i * 31L) + ' ' + (i & 1) + (i > 5); } },
        CONCAT_STRINGS { Object make(int i) { return Data.WORDS[i % 4] + Data.WORDS[(i + 1) % 4]; } },
        CONCAT_DOUBLES { Object make(int i) { return "at " + (i + 0.25) + ", " + (i + 0.5f); } },
        CONCAT_NULL { Object make(int i) { Object none = null; return "none: " + none + i; } },
        CONCAT_OBJECT { Object make(int i) { return "thing " + new Pair("x", i) + "!"; } },
        CONCAT_UTF16 { Object make(int i) { return "größer \u20ac " + i + "\u4e2d"; } },
        CONCAT_LONG_ONE { Object make(int i) {
            return "a" + i + "b" + i + "c" + i + "d" + i + "e" + i + "f" + i + "g" + i + "h" + i + "i" + i + "j" + i + "k" + i;
        } },
        CONCAT_ASSIGN { Object make(int i) { String s = "s"; s += i; s += "x"; s += 'c'; return s; } },
        STRING_METHODS_CONCAT { Object make(int i) { return "hello".concat(Data.WORDS[i % 4]); } },
        REPLACE_CHAR { Object make(int i) { return "hello world".replace('o', '0'); } },
        REPLACE_TEXT { Object make(int i) { return "hello world".replace("wor", "WOR"); } },
        REPLACE_ALL { Object make(int i) { return "hello world".replaceAll("l+", "L"); } },
        SUBSTRING { Object make(int i) { return "hello world".substring(i % 5, 8); } },
        SPLIT_CHAR { Object make(int i) { return "a,b,c,d".split(","); } },
        SPLIT_REGEX { Object make(int i) { return "a1b22c3d".split("[0-9]+"); } },
        JOIN { Object make(int i) { return String.join(", ", Data.WORDS); } },
        JOIN_LIST { Object make(int i) { return String.join("-", List.of("a", "b", "c")); } },
        REPEAT { Object make(int i) { return "ab".repeat(i % 30); } },
        UPPER { Object make(int i) { return "hello world".toUpperCase(Locale.ROOT); } },
        UPPER_UTF16 { Object make(int i) { return "größer \u20ac straße".toUpperCase(Locale.ROOT); } },
        LOWER { Object make(int i) { return "HELLO World".toLowerCase(Locale.ROOT); } },
        TRIM { Object make(int i) { return "  hello ".trim(); } },
        STRIP { Object make(int i) { return "  hello ".strip(); } },
        LINES { Object make(int i) { return "a\nb\nc".lines().toList(); } },
        CHARS { Object make(int i) { return "hello".chars().sum() + 1000; } },
        TO_CHARS { Object make(int i) { return "hello".toCharArray(); } },
        FROM_CHARS { Object make(int i) { return new String(new char[] {'a', 'b', (char) ('a' + i % 20)}); } },
        GET_BYTES_UTF8 { Object make(int i) { return "hello world".getBytes(StandardCharsets.UTF_8); } },
        GET_BYTES_UTF8_LONG { Object make(int i) { return "größer \u20ac".getBytes(StandardCharsets.UTF_8); } },
        GET_BYTES_LATIN { Object make(int i) { return "hello größer".getBytes(StandardCharsets.ISO_8859_1); } },
        GET_BYTES_UTF16 { Object make(int i) { return "hello".getBytes(StandardCharsets.UTF_16BE); } },
        FROM_BYTES { Object make(int i) { return new String(Data.BYTES, StandardCharsets.UTF_8); } },
        FROM_BYTES_ASCII { Object make(int i) { return new String(Data.SERIAL, 0, 20, StandardCharsets.US_ASCII); } },
        VALUE_OF_CHARS { Object make(int i) { return String.valueOf(new char[] {'x', 'y'}); } },
        VALUE_OF_INT { Object make(int i) { return String.valueOf(i * 1000); } },
        VALUE_OF_DOUBLE { Object make(int i) { return Double.toString(i * 1.1); } },
        HEX { Object make(int i) { return Integer.toHexString(i * 77) + Long.toString(i, 36); } },
        PARSE { Object make(int i) { return Double.parseDouble("12.5e3") + Integer.parseInt("123"); } },
        FORMAT { Object make(int i) { return String.format("%d of %s: %5.2f", i, "all", i * 0.5); } },
        FORMATTED { Object make(int i) { return "%x-%08d".formatted(i, i); } },
        INTERN { Object make(int i) { return ("name" + i % 10).intern(); } },
        TEXT_BLOCK { Object make(int i) { return """
                a %d
                b
                """.formatted(i).indent(2); } },
        COMPARE { Object make(int i) { return "abc".compareToIgnoreCase("ABD") + 1000 + i; } },
        BUILDER { Object make(int i) { return new StringBuilder().append("x").append(i).append('c').append(1.5).toString(); } },
        BUILDER_GROWS { Object make(int i) {
            StringBuilder all = new StringBuilder(2);
            for (int k = 0; k < 20; k++) all.append("some text ").append(k);
            return all.toString();
        } },
        BUILDER_CHANGES { Object make(int i) {
            return new StringBuilder("hello world").insert(3, "abc").reverse().deleteCharAt(1).replace(0, 2, "zz").toString();
        } },
        BUILDER_UTF16 { Object make(int i) { return new StringBuilder("abc").append('\u20ac').append("x").append(i).toString(); } },
        BUFFER { Object make(int i) { return new StringBuffer("a").append(i).append("b").toString(); } },
        JOINER { Object make(int i) { return new StringJoiner(",", "[", "]").add("a").add("b").toString(); } },
        TOKENIZER { Object make(int i) {
            StringTokenizer words = new StringTokenizer("a bb ccc");
            Object last = null;
            while (words.hasMoreTokens()) last = words.nextToken();
            return last;
        } },

        // Lambdas and method references.
        LAMBDA_CAPTURES { Object make(int i) { Supplier<Integer> made = () -> i; return made; } },
        LAMBDA_CAPTURES_MORE { Object make(int i) {
            long l = i; double d = i; String s = "s";
            Function<Object, Object> made = x -> x + s + l + d;
            return made.apply(i);
        } },
        LAMBDA_PLAIN { Object make(int i) { Supplier<Object> made = Object::new; return made.get(); } },
        LAMBDA_THIS { Object make(int i) { Supplier<Object> made = () -> this.name() + i; return made.get(); } },
        REFERENCE_BOUND { Object make(int i) { Supplier<String> made = Data.THING.text::trim; return made; } },
        REFERENCE_STATIC { Object make(int i) { IntFunction<String> made = Integer::toString; return made.apply(i); } },
        REFERENCE_NEW { Object make(int i) { IntFunction<Thing> made = Thing::new; return made.apply(i); } },
        REFERENCE_ARRAY { Object make(int i) { IntFunction<Object[]> made = Object[]::new; return made.apply(i % 9); } },
        REFERENCE_VIRTUAL { Object make(int i) { BiFunction<String, String, String> made = String::concat; return made.apply("a", "b"); } },
        LAMBDA_SERIALIZABLE { Object make(int i) { return (Supplier<Object> & Serializable) () -> i; } },
        LAMBDAS_COMPOSED { Object make(int i) {
            Function<Integer, Integer> plus = x -> x + i;
            return plus.andThen(x -> x * 1000).compose((Integer x) -> x + 1).apply(5);
        } },

        // Copies, clones and reflection.
        CLONE_INTS { Object make(int i) { return Data.INTS.clone(); } },
        CLONE_OBJECTS { Object make(int i) { return Data.WORDS.clone(); } },
        CLONE_OBJECT { Object make(int i) throws Exception { return Data.THING.clone(); } },
        CLONE_2 { Object make(int i) { return new int[][] {{1}, {2}}.clone(); } },
        CLONE_LIST { Object make(int i) { return new ArrayList<>(Data.NUMBERS).clone(); } },
        COPY_OF { Object make(int i) { return Arrays.copyOf(Data.INTS, 100 + i % 200); } },
        COPY_OF_OBJECTS { Object make(int i) { return Arrays.copyOf(Data.WORDS, i % 9); } },
        COPY_OF_TYPE { Object make(int i) { return Arrays.copyOf(Data.WORDS, i % 9, Object[].class); } },
        COPY_OF_RANGE { Object make(int i) { return Arrays.copyOfRange(Data.INTS, 10, 20 + i % 100); } },
        COPY_OF_BYTES { Object make(int i) { return Arrays.copyOf(Data.BYTES, i % 40); } },
        NEW_INSTANCE { Object make(int i) throws Exception { return Data.THINGS.newInstance(5); } },
        @SuppressWarnings("deprecation")
        CLASS_NEW_INSTANCE { Object make(int i) throws Exception { return Thing.class.newInstance(); } },
        ARRAY_NEW_INSTANCE { Object make(int i) { return Array.newInstance(i % 2 == 0 ? int.class : String.class, i % 20); } },
        ARRAY_NEW_INSTANCES { Object make(int i) { return Array.newInstance(String.class, 3, 4); } },
        ARRAY_GET { Object make(int i) { return Array.get(new int[] {1000 + i}, 0); } },
        INVOKE { Object make(int i) throws Exception { return Data.TWICE.invoke(Data.THING, "a"); } },
        INVOKE_STATIC { Object make(int i) throws Exception { return Data.SOME.invoke(null, (Object) Data.WORDS); } },
        FIELD_GET { Object make(int i) throws Exception { Data.NUMBER.set(Data.THING, i + 1000); return Data.NUMBER.get(Data.THING); } },
        GET_METHODS { Object make(int i) { return Thing.class.getMethods(); } },
        GET_DECLARED_FIELDS { Object make(int i) { return Thing.class.getDeclaredFields(); } },
        GET_CONSTRUCTORS { Object make(int i) { return Thing.class.getConstructors(); } },
        GET_METHOD { Object make(int i) throws Exception { return Thing.class.getMethod("twice", Object.class); } },
        GET_INTERFACES { Object make(int i) { return ArrayList.class.getInterfaces(); } },
        GET_GENERIC { Object make(int i) throws Exception { return Thing.class.getGenericInterfaces(); } },
        GET_PARAMETERS { Object make(int i) { return Data.TWICE.getParameterTypes(); } },
        GET_NAME { Object make(int i) { return Thing.class.getSimpleName() + Thing.class.getPackageName(); } },
        GET_RECORD { Object make(int i) { return Pair.class.getRecordComponents(); } },
        GET_ENCLOSING { Object make(int i) { return Thing.Inner.class.getDeclaringClass(); } },
        FOR_NAME { Object make(int i) throws Exception { return Class.forName("io.lucce.programs.Constructs$Thing"); } },
        ANNOTATION { Object make(int i) { return Thing.class.getAnnotation(Marked.class).numbers(); } },
        ANNOTATIONS { Object make(int i) { return Thing.class.getAnnotations(); } },
        PROXY { Object make(int i) { return Data.GREETER.greet("you", i); } },
        PROXY_NEW { Object make(int i) {
            return Proxy.newProxyInstance(Constructs.class.getClassLoader(), new Class<?>[] {Greeter.class}, (p, m, a) -> a);
        } },
        HANDLE_NEW { Object make(int i) throws Exception { try { return (Thing) Data.NEW.invokeExact(i); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_BOUND { Object make(int i) throws Exception { try { return Data.BOUND.invoke("x"); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_SPREAD { Object make(int i) throws Exception { try { return Data.SPREAD.invoke(new Object[] {Data.THING, "x"}); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_COLLECT { Object make(int i) throws Exception { try { return Data.COLLECT.invoke("a", "b", "c"); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_VARARGS { Object make(int i) throws Exception { try { return Data.VARARGS.invoke("a", "b"); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_BOXING { Object make(int i) throws Exception { try { return Data.BOXING.invoke(i + 1000, 2000L, 0.5); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_CONVERTED { Object make(int i) throws Exception { try { return Data.CONVERTED.invoke(); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_ARGUMENTS { Object make(int i) throws Exception { try { return Data.BOUND.invokeWithArguments("x"); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_BIND { Object make(int i) { return Data.SPREAD.bindTo(Data.THING.getClass() == Thing.class ? new Object[] {i} : null); } },
        HANDLE_FIND(true) { Object make(int i) throws Exception {
            return MethodHandles.lookup().findVirtual(Thing.class, "twice", MethodType.methodType(Object.class, Object.class));
        } },
        METHOD_TYPE { Object make(int i) { return MethodType.methodType(Object.class, int.class, String.class); } },
        VAR_HANDLE { Object make(int i) {
            Data.FIELD.setVolatile(Data.THING, i);
            Object[] one = new Object[1];
            Data.ELEMENTS.compareAndSet(one, 0, null, "x");
            return Data.FIELD.getAndAdd(Data.THING, 1);
        } },
        UNSAFE_INSTANCE { Object make(int i) throws Exception { return Data.UNSAFE.allocateInstance(Thing.class); } },
        SERIALIZE { Object make(int i) throws Exception { return Data.written(new Thing(i)); } },
        DESERIALIZE { Object make(int i) throws Exception { return new ObjectInputStream(new ByteArrayInputStream(Data.SERIAL)).readObject(); } },

        // Collections and streams.
        LIST_GROWS { Object make(int i) { List<Object> all = new ArrayList<>(); for (int k = 0; k < 30; k++) all.add("x"); return all; } },
        LIST_OF { Object make(int i) { return List.of(i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12); } },
        LIST_COPY { Object make(int i) { return List.copyOf(new ArrayList<>(Data.NUMBERS)); } },
        LIST_TO_ARRAY { Object make(int i) { return Data.NUMBERS.toArray(new Integer[0]); } },
        LIST_SORT { Object make(int i) { List<Integer> all = new ArrayList<>(Data.NUMBERS); Collections.sort(all); return all; } },
        LIST_ITERATOR { Object make(int i) { Iterator<Integer> all = Data.NUMBERS.iterator(); all.next(); return all; } },
        LIST_SUB { Object make(int i) { return new ArrayList<>(Data.NUMBERS).subList(1, 4).listIterator(); } },
        LIST_LINKED { Object make(int i) { LinkedList<Object> all = new LinkedList<>(); all.add(i); all.addFirst("x"); return all; } },
        ARRAYS_AS_LIST { Object make(int i) { return Arrays.asList("a", "b", i); } },
        ARRAYS_TO_STRING { Object make(int i) { return Arrays.toString(new int[] {i, 2, 3}); } },
        ARRAYS_SORT { Object make(int i) { String[] all = Data.WORDS.clone(); Arrays.sort(all); return all; } },
        DEQUE { Object make(int i) { ArrayDeque<Object> all = new ArrayDeque<>(); for (int k = 0; k < 20; k++) all.push("x"); return all; } },
        PRIORITIES { Object make(int i) { return new PriorityQueue<>(Data.NUMBERS); } },
        MAP_GROWS { Object make(int i) { Map<Object, Object> all = new HashMap<>(); for (int k = 0; k < 20; k++) all.put(k, "x"); return all; } },
        MAP_COMPUTES { Object make(int i) { Map<String, List<Object>> all = new HashMap<>(); all.computeIfAbsent("k", k -> new ArrayList<>()).add(i); return all; } },
        MAP_OF { Object make(int i) { return Map.of("a", i, "b", 2); } },
        MAP_TREE { Object make(int i) { return new TreeMap<>(Data.MAP).headMap("c").entrySet().iterator().next(); } },
        MAP_LINKED { Object make(int i) { return new LinkedHashMap<>(Data.MAP); } },
        MAP_IDENTITY { Object make(int i) { Map<Object, Object> all = new IdentityHashMap<>(); all.put("k", i); return all; } },
        MAP_WEAK { Object make(int i) { Map<Object, Object> all = new WeakHashMap<>(); all.put("k", i); return all; } },
        MAP_ENUM { Object make(int i) { Map<Color, Object> all = new EnumMap<>(Color.class); all.put(Color.RED, "x"); return all; } },
        MAP_CONCURRENT { Object make(int i) { Map<Object, Object> all = new ConcurrentHashMap<>(); for (int k = 0; k < 20; k++) all.merge(k, "x", (a, b) -> a); return all; } },
        MAP_SKIPS { Object make(int i) { Map<Integer, Object> all = new ConcurrentSkipListMap<>(); all.put(i, "x"); all.put(i + 1, "y"); return all; } },
        MAP_EACH { Object make(int i) { int[] sum = {0}; Data.MAP.forEach((k, v) -> sum[0] += v); return Data.MAP.entrySet().iterator().next(); } },
        SET_HASH { Object make(int i) { return new HashSet<>(Data.NUMBERS); } },
        SET_OF { Object make(int i) { return Set.of("a", "b", "c"); } },
        SET_ENUM { Object make(int i) { return EnumSet.of(Color.RED, Color.BLUE); } },
        BITS { Object make(int i) { BitSet bits = new BitSet(); bits.set(i % 500); return bits; } },
        UNMODIFIABLE { Object make(int i) { return Collections.unmodifiableMap(Collections.synchronizedMap(new HashMap<>())); } },
        STREAM { Object make(int i) { return Data.NUMBERS.stream().filter(x -> x > 2).map(x -> x * 1000).collect(Collectors.toList()); } },
        STREAM_GROUPS { Object make(int i) { return Stream.of(Data.WORDS).collect(Collectors.groupingBy(String::length, Collectors.counting())); } },
        STREAM_JOINS { Object make(int i) { return Stream.of(Data.WORDS).sorted().distinct().collect(Collectors.joining(",")); } },
        STREAM_INTS { Object make(int i) { return IntStream.range(0, 20).boxed().toArray(Integer[]::new); } },
        STREAM_FLAT { Object make(int i) { return Stream.of(1, 2).flatMap(x -> Stream.of(x, x)).toList(); } },
        STREAM_STATISTICS { Object make(int i) { return IntStream.range(0, 9).summaryStatistics().toString(); } },
        STREAM_PARALLEL_ONE { Object make(int i) { return Stream.iterate(1, x -> x + 1000).limit(5).reduce(0, Integer::sum); } },
        OPTIONAL { Object make(int i) { return Optional.of("x").map(x -> x + i).filter(x -> x.length() > 1); } },
        OPTIONAL_INT { Object make(int i) { return OptionalInt.of(i); } },

        // Numbers.
        BIG_INTEGER { Object make(int i) { return BigInteger.valueOf(i).pow(9).multiply(BigInteger.TEN).add(BigInteger.TWO).mod(BigInteger.valueOf(97)); } },
        BIG_INTEGER_TEXT { Object make(int i) { return new BigInteger("123456789012345678901234567890").multiply(BigInteger.valueOf(i + 1)).toString(); } },
        BIG_DECIMAL { Object make(int i) { return new BigDecimal("12.345").multiply(BigDecimal.valueOf(i)).setScale(2, RoundingMode.HALF_UP).toString(); } },
        BIG_DECIMAL_DIVIDE { Object make(int i) { return BigDecimal.valueOf(i + 1).divide(BigDecimal.valueOf(7), 20, RoundingMode.HALF_EVEN); } },
        RANDOM { Object make(int i) { return new Random(i).ints(5).toArray(); } },
        UUIDS { Object make(int i) { return new UUID(i, i).toString(); } },
        UUID_OF_BYTES { Object make(int i) { return UUID.nameUUIDFromBytes(Data.BYTES); } },

        // Exceptions.
        EXCEPTION { Object make(int i) { return new IllegalStateException("state " + i); } },
        EXCEPTION_CAUSE { Object make(int i) { try { throw new Failure("a", new Exception("b")); } catch (Failure e) { return e; } } },
        EXCEPTION_TRACE { Object make(int i) { return new Exception().getStackTrace(); } },
        EXCEPTION_PRINTED(true) { Object make(int i) { StringWriter text = new StringWriter(); new Exception("x").printStackTrace(new PrintWriter(text)); return text.toString(); } },
        EXCEPTION_SUPPRESSED { Object make(int i) { Exception e = new Exception("a"); e.addSuppressed(new Exception("b")); return e.getSuppressed(); } },
        EXCEPTION_NULL { Object make(int i) { try { Object none = null; return none.toString(); } catch (NullPointerException e) { return e; } } },
        EXCEPTION_NULL_MESSAGE { Object make(int i) { try { Thing none = null; return none.text; } catch (NullPointerException e) { return e.getMessage(); } } },
        EXCEPTION_BOUNDS { Object make(int i) { try { return depth(3); } catch (ArrayIndexOutOfBoundsException e) { return e; } } },
        EXCEPTION_CAST { Object make(int i) { try { Object text = "x"; return (Integer) text; } catch (ClassCastException e) { return e; } } },
        EXCEPTION_DIVIDE { Object make(int i) { try { return 1 / (i - i); } catch (ArithmeticException e) { return e; } } },
        EXCEPTION_SIZE { Object make(int i) { try { return new int[-1 - i]; } catch (NegativeArraySizeException e) { return e; } } },
        EXCEPTION_STORE { Object make(int i) { try { Object[] texts = new String[1]; texts[0] = 1; return texts; } catch (ArrayStoreException e) { return e; } } },
        EXCEPTION_MISSING { Object make(int i) { try { return Class.forName("no.such.Class"); } catch (ClassNotFoundException e) { return e; } } },
        STACK_WALKER(true) { Object make(int i) { return StackWalker.getInstance().walk(frames -> frames.limit(5).toList()); } },
        THREAD_TRACE_OTHER { Object make(int i) { return Data.PARKED.getStackTrace(); } },
        THREAD_TRACE(true) { Object make(int i) { return Thread.currentThread().getStackTrace(); } },

        // References, threads and locks.
        WEAK { Object make(int i) { return new WeakReference<>(new Object()); } },
        SOFT { Object make(int i) { return new SoftReference<>(new Object()); } },
        PHANTOM { Object make(int i) { return new PhantomReference<>(new Object(), Data.QUEUE); } },
        FINALIZED { Object make(int i) { return new Finalized(); } },
        CLEANED { Object make(int i) { return Data.CLEANER.register(new Object(), () -> {}); } },
        THREAD(true) { Object make(int i) throws Exception { Thread thread = new Thread(() -> {}); thread.start(); thread.join(); return thread; } },
        THREAD_LOCAL { Object make(int i) { Data.LOCAL.set(new Object()); Object got = Data.LOCAL.get(); Data.LOCAL.remove(); return got; } },
        THREAD_LOCAL_INITIAL { Object make(int i) { ThreadLocal<Object> local = ThreadLocal.withInitial(Object::new); Object got = local.get(); local.remove(); return got; } },
        LOCK { Object make(int i) { ReentrantLock lock = new ReentrantLock(); lock.lock(); lock.unlock(); return lock.newCondition(); } },
        MONITOR { Object make(int i) { Object lock = new Object(); synchronized (lock) { return lock.hashCode() + 1000; } } },
        FUTURE { Object make(int i) throws Exception { FutureTask<Object> task = new FutureTask<>(Object::new); task.run(); return task.get(); } },
        COMPLETABLE { Object make(int i) { return CompletableFuture.completedFuture(1).thenApply(x -> x + 1000).thenCombine(CompletableFuture.completedFuture(2), Integer::sum).join(); } },
        TIMEOUT { Object make(int i) throws Exception { try { return new CompletableFuture<>().get(1, TimeUnit.NANOSECONDS); } catch (TimeoutException e) { return e; } } },
        QUEUES { Object make(int i) { ConcurrentLinkedQueue<Object> all = new ConcurrentLinkedQueue<>(); all.add("x"); LinkedBlockingQueue<Object> more = new LinkedBlockingQueue<>(); more.add("y"); return all.poll(); } },
        COPY_ON_WRITE { Object make(int i) { List<Object> all = new CopyOnWriteArrayList<>(); all.add("a"); all.add("b"); return all; } },
        ATOMICS { Object make(int i) { LongAdder sum = new LongAdder(); sum.add(i); return new AtomicReference<>(new AtomicIntegerArray(5)); } },

        // Time and text.
        DATE { Object make(int i) { return LocalDate.of(2020, 1, 1).plusDays(i % 300); } },
        DATE_TIME_TEXT { Object make(int i) { return LocalDateTime.of(2020, 1, 1, 12, i % 60).format(DateTimeFormatter.ISO_LOCAL_DATE_TIME); } },
        DATE_PARSE { Object make(int i) { return LocalDate.parse("2020-02-03"); } },
        ZONED { Object make(int i) { return ZonedDateTime.of(2020, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC).plusHours(i).toString(); } },
        INSTANT { Object make(int i) { return Instant.ofEpochSecond(i).plus(Duration.ofMinutes(5)).toString(); } },
        NOW { Object make(int i) { return Instant.now(); } },
        CALENDAR { Object make(int i) { Calendar day = Calendar.getInstance(); day.add(Calendar.DAY_OF_MONTH, i % 30); return day.getTime(); } },
        DATE_FORMAT { Object make(int i) { return Data.DATES.format(new Date(i)); } },
        DECIMAL_FORMAT { Object make(int i) { return Data.DECIMALS.format(i * 1.5); } },
        MESSAGE_FORMAT { Object make(int i) { return MessageFormat.format("{0} of {1,number}", "a", i); } },
        BUNDLE { Object make(int i) { return ResourceBundle.getBundle("io.lucce.programs.Constructs$Texts").getString("hello") + i; } },
        BUNDLE_LOCALE { Object make(int i) { return ResourceBundle.getBundle("io.lucce.programs.Constructs$Texts", Locale.FRANCE); } },
        LOCALE { Object make(int i) { return Locale.forLanguageTag("de-AT").getDisplayCountry(Locale.ENGLISH); } },
        REGEX_COMPILE { Object make(int i) { return Pattern.compile("a+(b|c)*d"); } },
        REGEX_GROUPS { Object make(int i) { Matcher found = Data.WORD.matcher("hello world"); return found.matches() ? found.group(2) : null; } },
        REGEX_REPLACE { Object make(int i) { return Data.WORD.matcher("hello world").replaceAll("$2 $1"); } },
        REGEX_SPLIT { Object make(int i) { return Data.COMMA.splitAsStream("a, b,c").toArray(); } },
        SCANNER { Object make(int i) { Scanner text = new Scanner("12 word 3.5"); text.nextInt(); return text.next() + text.nextDouble(); } },
        BUFFERED_READER { Object make(int i) throws Exception { return new java.io.BufferedReader(new StringReader("a\nb")).readLine(); } },

        // Buffers, charsets, files.
        BYTE_BUFFER { Object make(int i) { return ByteBuffer.allocate(32).putInt(i).flip().slice().asReadOnlyBuffer(); } },
        BYTE_BUFFER_WRAPS { Object make(int i) { return ByteBuffer.wrap(Data.BYTES).duplicate().asIntBuffer(); } },
        BYTE_BUFFER_DIRECT(true) { Object make(int i) { return ByteBuffer.allocateDirect(64); } },
        ENCODER { Object make(int i) throws Exception { return StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap("größer")); } },
        DECODER { Object make(int i) throws Exception { return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(Data.BYTES)).toString(); } },
        BASE_64 { Object make(int i) { return java.util.Base64.getEncoder().encodeToString(Data.BYTES); } },
        PATHS { Object make(int i) { return Path.of("/a/b").resolve("c" + i).normalize().getFileName().toString(); } },
        FILE_READ(true) { Object make(int i) throws Exception { return Files.readString(Data.FILE); } },
        FILE_LINES(true) { Object make(int i) throws Exception { return Files.readAllLines(Data.FILE); } },
        FILE_STREAM(true) { Object make(int i) throws Exception { try (var in = new java.io.FileInputStream(Data.FILE.toFile())) { return in.readAllBytes(); } } },
        FILE_ATTRIBUTES(true) { Object make(int i) throws Exception { return Files.getLastModifiedTime(Data.FILE).toString() + Files.size(Data.FILE); } },
        FILE_LIST(true) { Object make(int i) { return Data.FILE.toFile().getAbsoluteFile().exists() ? new java.io.File("/proc/self/fd").list() : null; } },
        FILE_WRITE(true) { Object make(int i) throws Exception { return Files.writeString(Data.FILE, "text " + i); } },
        DEFLATE(true) { Object make(int i) {
            Deflater out = new Deflater(); out.setInput(Data.SERIAL); out.finish();
            byte[] small = new byte[200]; int length = out.deflate(small); out.end();
            return Arrays.copyOf(small, length);
        } },
        CHECKSUM { Object make(int i) { CRC32 sum = new CRC32(); sum.update(Data.BYTES); return sum.getValue() + 1000; } },
        DIGEST { Object make(int i) throws Exception { return java.security.MessageDigest.getInstance("SHA-256").digest(Data.BYTES); } },
        PROPERTIES { Object make(int i) { return System.getProperty("java.version") + System.getProperties().size(); } },
        ENVIRONMENT { Object make(int i) { return System.getenv("PATH") + System.getenv().size(); } };

        /** It takes long: done less often. */
        final boolean rare;

        Way() {
            this(false);
        }

        Way(boolean rare) {
            this.rare = rare;
        }

        abstract Object make(int i) throws Exception;
    }
}
