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
    private static final long THREAD = Thread.currentThread().getId();
    /** What the question itself allocates. */
    private static final long ASKED;
    static volatile Object sink;

    static {
        for (int i = 0; i < BEFORE; i++) {
            VM.getThreadAllocatedBytes(THREAD);
        }
        long before = VM.getThreadAllocatedBytes(THREAD);
        ASKED = VM.getThreadAllocatedBytes(THREAD) - before;
    }

    private Constructs() {}

    /** Something that allocates. */
    interface Construct {
        String name();

        /** Whether it takes long: done less often. */
        boolean isRare();

        Object make(int i) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        Set<String> wanted = new HashSet<>(Arrays.asList(args).subList(1, args.length));
        List<Construct> all = new ArrayList<>(Arrays.asList(Way.values()));
        all.addAll(newer());
        for (Construct way : all) {
            if (wanted.isEmpty() || wanted.contains(way.name())) {
                say(way, way.isRare() ? rounds / 10 : rounds);
            }
        }
    }

    /** Those of {@code NewerConstructs}, which JDK 11 has not. */
    private static List<Construct> newer() throws ClassNotFoundException {
        boolean isOld = Runtime.version().feature() < 17;
        return isOld ? List.of() : List.of((Construct[]) Class.forName("io.lucce.programs.NewerConstructs").getEnumConstants());
    }

    private static void say(Construct way, int rounds) throws Exception {
        for (int i = 0; i < BEFORE; i++) {
            sink = way.make(i);
        }
        long before = VM.getThreadAllocatedBytes(THREAD);
        measured(way, rounds);
        long bytes = VM.getThreadAllocatedBytes(THREAD) - before - ASKED;
        System.out.println(way.name() + " " + way.getClass().getName() + " " + bytes);
    }

    private static void measured(Construct way, int rounds) throws Exception {
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

    enum Color {
        RED,
        GREEN,
        BLUE
    }

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

    /** Constructs of all JDKs; {@code true}: rare. */
    enum Way implements Construct {
        // Bytecode.
        NEW { public Object make(int i) { return new Thing(i); } },
        NEW_INNER { public Object make(int i) { return Data.THING.new Inner(); } },
        NEW_ANONYMOUS { public Object make(int i) { return new Object() { final int number = i; }; } },
        NEW_LOCAL_CLASS { public Object make(int i) { class Local { final int number = i; } return new Local(); } },
        ARRAY_BOOLEAN { public Object make(int i) { return new boolean[i % 50]; } },
        ARRAY_BYTE { public Object make(int i) { return new byte[i % 50]; } },
        ARRAY_CHAR { public Object make(int i) { return new char[i % 50]; } },
        ARRAY_SHORT { public Object make(int i) { return new short[i % 50]; } },
        ARRAY_INT { public Object make(int i) { return new int[i % 50]; } },
        ARRAY_LONG { public Object make(int i) { return new long[i % 50]; } },
        ARRAY_FLOAT { public Object make(int i) { return new float[i % 50]; } },
        ARRAY_DOUBLE { public Object make(int i) { return new double[i % 50]; } },
        ARRAY_OBJECTS { public Object make(int i) { return new Object[i % 50]; } },
        ARRAY_LARGE(true) { public Object make(int i) { return new byte[1_000_000]; } },
        ARRAY_INITIALIZER { public Object make(int i) { return new int[] {i, 1, 2, 3}; } },
        ARRAYS_2 { public Object make(int i) { return new int[5][7]; } },
        ARRAYS_2_OF_3 { public Object make(int i) { return new Object[3][4][]; } },
        ARRAYS_3 { public Object make(int i) { return new long[2][3][4]; } },
        ARRAYS_EMPTY { public Object make(int i) { return new long[2][0][4]; } },
        ARRAYS_INITIALIZER { public Object make(int i) { return new String[][] {{"a"}, {"b", "c"}, {}}; } },
        ENUM_VALUES { public Object make(int i) { return Color.values(); } },
        BOX_INT { public Object make(int i) { return i + 1000; } },
        BOX_LONG { public Object make(int i) { return i + 1000L; } },
        BOX_DOUBLE { public Object make(int i) { return i + 0.5; } },
        BOX_FLOAT { public Object make(int i) { return i + 0.5f; } },
        BOX_CHAR { public Object make(int i) { return (char) (i + 1000); } },
        BOX_SHORT { public Object make(int i) { return (short) (i + 1000); } },
        BOX_BYTE { public Object make(int i) { return (byte) i; } },
        VARARGS { public Object make(int i) { return all("a", i, 2.5, 'c'); } },

        // Strings.
        CONCAT_INT { public Object make(int i) { return "order " + i; } },
        CONCAT_MIXED { public Object make(int i) { return "order " + i + " of customer " + (i * 31L) + ' ' + (i & 1) + (i > 5); } },
        CONCAT_STRINGS { public Object make(int i) { return Data.WORDS[i % 4] + Data.WORDS[(i + 1) % 4]; } },
        CONCAT_DOUBLES { public Object make(int i) { return "at " + (i + 0.25) + ", " + (i + 0.5f); } },
        CONCAT_NULL { public Object make(int i) { Object none = null; return "none: " + none + i; } },
        CONCAT_UTF16 { public Object make(int i) { return "größer \u20ac " + i + "\u4e2d"; } },
        CONCAT_LONG_ONE { public Object make(int i) {
            return "a" + i + "b" + i + "c" + i + "d" + i + "e" + i + "f" + i + "g" + i + "h" + i + "i" + i + "j" + i + "k" + i;
        } },
        CONCAT_ASSIGN { public Object make(int i) { String s = "s"; s += i; s += "x"; s += 'c'; return s; } },
        STRING_METHODS_CONCAT { public Object make(int i) { return "hello".concat(Data.WORDS[i % 4]); } },
        REPLACE_CHAR { public Object make(int i) { return "hello world".replace('o', '0'); } },
        REPLACE_TEXT { public Object make(int i) { return "hello world".replace("wor", "WOR"); } },
        REPLACE_ALL { public Object make(int i) { return "hello world".replaceAll("l+", "L"); } },
        SUBSTRING { public Object make(int i) { return "hello world".substring(i % 5, 8); } },
        SPLIT_CHAR { public Object make(int i) { return "a,b,c,d".split(","); } },
        SPLIT_REGEX { public Object make(int i) { return "a1b22c3d".split("[0-9]+"); } },
        JOIN { public Object make(int i) { return String.join(", ", Data.WORDS); } },
        JOIN_LIST { public Object make(int i) { return String.join("-", List.of("a", "b", "c")); } },
        REPEAT { public Object make(int i) { return "ab".repeat(i % 30); } },
        UPPER { public Object make(int i) { return "hello world".toUpperCase(Locale.ROOT); } },
        UPPER_UTF16 { public Object make(int i) { return "größer \u20ac straße".toUpperCase(Locale.ROOT); } },
        LOWER { public Object make(int i) { return "HELLO World".toLowerCase(Locale.ROOT); } },
        TRIM { public Object make(int i) { return "  hello ".trim(); } },
        STRIP { public Object make(int i) { return "  hello ".strip(); } },
        CHARS { public Object make(int i) { return "hello".chars().sum() + 1000; } },
        TO_CHARS { public Object make(int i) { return "hello".toCharArray(); } },
        FROM_CHARS { public Object make(int i) { return new String(new char[] {'a', 'b', (char) ('a' + i % 20)}); } },
        GET_BYTES_UTF8 { public Object make(int i) { return "hello world".getBytes(StandardCharsets.UTF_8); } },
        GET_BYTES_UTF8_LONG { public Object make(int i) { return "größer \u20ac".getBytes(StandardCharsets.UTF_8); } },
        GET_BYTES_LATIN { public Object make(int i) { return "hello größer".getBytes(StandardCharsets.ISO_8859_1); } },
        GET_BYTES_UTF16 { public Object make(int i) { return "hello".getBytes(StandardCharsets.UTF_16BE); } },
        FROM_BYTES { public Object make(int i) { return new String(Data.BYTES, StandardCharsets.UTF_8); } },
        FROM_BYTES_ASCII { public Object make(int i) { return new String(Data.SERIAL, 0, 20, StandardCharsets.US_ASCII); } },
        VALUE_OF_CHARS { public Object make(int i) { return String.valueOf(new char[] {'x', 'y'}); } },
        VALUE_OF_INT { public Object make(int i) { return String.valueOf(i * 1000); } },
        VALUE_OF_DOUBLE { public Object make(int i) { return Double.toString(i * 1.1); } },
        HEX { public Object make(int i) { return Integer.toHexString(i * 77) + Long.toString(i, 36); } },
        PARSE { public Object make(int i) { return Double.parseDouble("12.5e3") + Integer.parseInt("123"); } },
        FORMAT { public Object make(int i) { return String.format("%d of %s: %5.2f", i, "all", i * 0.5); } },
        INTERN { public Object make(int i) { return ("name" + i % 10).intern(); } },
        COMPARE { public Object make(int i) { return "abc".compareToIgnoreCase("ABD") + 1000 + i; } },
        BUILDER { public Object make(int i) { return new StringBuilder().append("x").append(i).append('c').append(1.5).toString(); } },
        BUILDER_GROWS { public Object make(int i) {
            StringBuilder all = new StringBuilder(2);
            for (int k = 0; k < 20; k++) all.append("some text ").append(k);
            return all.toString();
        } },
        BUILDER_CHANGES { public Object make(int i) {
            return new StringBuilder("hello world").insert(3, "abc").reverse().deleteCharAt(1).replace(0, 2, "zz").toString();
        } },
        BUILDER_UTF16 { public Object make(int i) { return new StringBuilder("abc").append('\u20ac').append("x").append(i).toString(); } },
        BUFFER { public Object make(int i) { return new StringBuffer("a").append(i).append("b").toString(); } },
        JOINER { public Object make(int i) { return new StringJoiner(",", "[", "]").add("a").add("b").toString(); } },
        TOKENIZER { public Object make(int i) {
            StringTokenizer words = new StringTokenizer("a bb ccc");
            Object last = null;
            while (words.hasMoreTokens()) last = words.nextToken();
            return last;
        } },

        // Lambdas and method references.
        LAMBDA_CAPTURES { public Object make(int i) { Supplier<Integer> made = () -> i; return made; } },
        LAMBDA_CAPTURES_MORE { public Object make(int i) {
            long l = i; double d = i; String s = "s";
            Function<Object, Object> made = x -> x + s + l + d;
            return made.apply(i);
        } },
        LAMBDA_PLAIN { public Object make(int i) { Supplier<Object> made = Object::new; return made.get(); } },
        LAMBDA_THIS { public Object make(int i) { Supplier<Object> made = () -> this.name() + i; return made.get(); } },
        REFERENCE_BOUND { public Object make(int i) { Supplier<String> made = Data.THING.text::trim; return made; } },
        REFERENCE_STATIC { public Object make(int i) { IntFunction<String> made = Integer::toString; return made.apply(i); } },
        REFERENCE_NEW { public Object make(int i) { IntFunction<Thing> made = Thing::new; return made.apply(i); } },
        REFERENCE_ARRAY { public Object make(int i) { IntFunction<Object[]> made = Object[]::new; return made.apply(i % 9); } },
        REFERENCE_VIRTUAL { public Object make(int i) { BiFunction<String, String, String> made = String::concat; return made.apply("a", "b"); } },
        LAMBDA_SERIALIZABLE { public Object make(int i) { return (Supplier<Object> & Serializable) () -> i; } },
        LAMBDAS_COMPOSED { public Object make(int i) {
            Function<Integer, Integer> plus = x -> x + i;
            return plus.andThen(x -> x * 1000).compose((Integer x) -> x + 1).apply(5);
        } },

        // Copies, clones and reflection.
        CLONE_INTS { public Object make(int i) { return Data.INTS.clone(); } },
        CLONE_OBJECTS { public Object make(int i) { return Data.WORDS.clone(); } },
        CLONE_OBJECT { public Object make(int i) throws Exception { return Data.THING.clone(); } },
        CLONE_2 { public Object make(int i) { return new int[][] {{1}, {2}}.clone(); } },
        CLONE_LIST { public Object make(int i) { return new ArrayList<>(Data.NUMBERS).clone(); } },
        COPY_OF { public Object make(int i) { return Arrays.copyOf(Data.INTS, 100 + i % 200); } },
        COPY_OF_OBJECTS { public Object make(int i) { return Arrays.copyOf(Data.WORDS, i % 9); } },
        COPY_OF_TYPE { public Object make(int i) { return Arrays.copyOf(Data.WORDS, i % 9, Object[].class); } },
        COPY_OF_RANGE { public Object make(int i) { return Arrays.copyOfRange(Data.INTS, 10, 20 + i % 100); } },
        COPY_OF_BYTES { public Object make(int i) { return Arrays.copyOf(Data.BYTES, i % 40); } },
        NEW_INSTANCE { public Object make(int i) throws Exception { return Data.THINGS.newInstance(5); } },
        @SuppressWarnings("deprecation")
        CLASS_NEW_INSTANCE { public Object make(int i) throws Exception { return Thing.class.newInstance(); } },
        ARRAY_NEW_INSTANCE { public Object make(int i) { return Array.newInstance(i % 2 == 0 ? int.class : String.class, i % 20); } },
        ARRAY_NEW_INSTANCES { public Object make(int i) { return Array.newInstance(String.class, 3, 4); } },
        ARRAY_GET { public Object make(int i) { return Array.get(new int[] {1000 + i}, 0); } },
        INVOKE { public Object make(int i) throws Exception { return Data.TWICE.invoke(Data.THING, "a"); } },
        INVOKE_STATIC { public Object make(int i) throws Exception { return Data.SOME.invoke(null, (Object) Data.WORDS); } },
        FIELD_GET { public Object make(int i) throws Exception { Data.NUMBER.set(Data.THING, i + 1000); return Data.NUMBER.get(Data.THING); } },
        GET_METHODS { public Object make(int i) { return Thing.class.getMethods(); } },
        GET_DECLARED_FIELDS { public Object make(int i) { return Thing.class.getDeclaredFields(); } },
        GET_CONSTRUCTORS { public Object make(int i) { return Thing.class.getConstructors(); } },
        GET_METHOD { public Object make(int i) throws Exception { return Thing.class.getMethod("twice", Object.class); } },
        GET_INTERFACES { public Object make(int i) { return ArrayList.class.getInterfaces(); } },
        GET_GENERIC { public Object make(int i) throws Exception { return Thing.class.getGenericInterfaces(); } },
        GET_PARAMETERS { public Object make(int i) { return Data.TWICE.getParameterTypes(); } },
        GET_NAME { public Object make(int i) { return Thing.class.getSimpleName() + Thing.class.getPackageName(); } },
        GET_ENCLOSING { public Object make(int i) { return Thing.Inner.class.getDeclaringClass(); } },
        FOR_NAME { public Object make(int i) throws Exception { return Class.forName("io.lucce.programs.Constructs$Thing"); } },
        ANNOTATION { public Object make(int i) { return Thing.class.getAnnotation(Marked.class).numbers(); } },
        ANNOTATIONS { public Object make(int i) { return Thing.class.getAnnotations(); } },
        PROXY { public Object make(int i) { return Data.GREETER.greet("you", i); } },
        PROXY_NEW { public Object make(int i) {
            return Proxy.newProxyInstance(Constructs.class.getClassLoader(), new Class<?>[] {Greeter.class}, (p, m, a) -> a);
        } },
        HANDLE_NEW { public Object make(int i) throws Exception { try { return (Thing) Data.NEW.invokeExact(i); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_BOUND { public Object make(int i) throws Exception { try { return Data.BOUND.invoke("x"); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_SPREAD { public Object make(int i) throws Exception { try { return Data.SPREAD.invoke(new Object[] {Data.THING, "x"}); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_COLLECT { public Object make(int i) throws Exception { try { return Data.COLLECT.invoke("a", "b", "c"); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_VARARGS { public Object make(int i) throws Exception { try { return Data.VARARGS.invoke("a", "b"); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_BOXING { public Object make(int i) throws Exception { try { return Data.BOXING.invoke(i + 1000, 2000L, 0.5); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_CONVERTED { public Object make(int i) throws Exception { try { return Data.CONVERTED.invoke(); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_ARGUMENTS { public Object make(int i) throws Exception { try { return Data.BOUND.invokeWithArguments("x"); } catch (Throwable e) { throw new Exception(e); } } },
        HANDLE_BIND { public Object make(int i) { return Data.SPREAD.bindTo(Data.THING.getClass() == Thing.class ? new Object[] {i} : null); } },
        HANDLE_FIND(true) { public Object make(int i) throws Exception {
            return MethodHandles.lookup().findVirtual(Thing.class, "twice", MethodType.methodType(Object.class, Object.class));
        } },
        METHOD_TYPE { public Object make(int i) { return MethodType.methodType(Object.class, int.class, String.class); } },
        VAR_HANDLE { public Object make(int i) {
            Data.FIELD.setVolatile(Data.THING, i);
            Object[] one = new Object[1];
            Data.ELEMENTS.compareAndSet(one, 0, null, "x");
            return Data.FIELD.getAndAdd(Data.THING, 1);
        } },
        UNSAFE_INSTANCE { public Object make(int i) throws Exception { return Data.UNSAFE.allocateInstance(Thing.class); } },
        SERIALIZE { public Object make(int i) throws Exception { return Data.written(new Thing(i)); } },
        DESERIALIZE { public Object make(int i) throws Exception { return new ObjectInputStream(new ByteArrayInputStream(Data.SERIAL)).readObject(); } },

        // Collections and streams.
        LIST_GROWS { public Object make(int i) { List<Object> all = new ArrayList<>(); for (int k = 0; k < 30; k++) all.add("x"); return all; } },
        LIST_OF { public Object make(int i) { return List.of(i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12); } },
        LIST_COPY { public Object make(int i) { return List.copyOf(new ArrayList<>(Data.NUMBERS)); } },
        LIST_TO_ARRAY { public Object make(int i) { return Data.NUMBERS.toArray(new Integer[0]); } },
        LIST_SORT { public Object make(int i) { List<Integer> all = new ArrayList<>(Data.NUMBERS); Collections.sort(all); return all; } },
        LIST_ITERATOR { public Object make(int i) { Iterator<Integer> all = Data.NUMBERS.iterator(); all.next(); return all; } },
        LIST_SUB { public Object make(int i) { return new ArrayList<>(Data.NUMBERS).subList(1, 4).listIterator(); } },
        LIST_LINKED { public Object make(int i) { LinkedList<Object> all = new LinkedList<>(); all.add(i); all.addFirst("x"); return all; } },
        ARRAYS_AS_LIST { public Object make(int i) { return Arrays.asList("a", "b", i); } },
        ARRAYS_TO_STRING { public Object make(int i) { return Arrays.toString(new int[] {i, 2, 3}); } },
        ARRAYS_SORT { public Object make(int i) { String[] all = Data.WORDS.clone(); Arrays.sort(all); return all; } },
        DEQUE { public Object make(int i) { ArrayDeque<Object> all = new ArrayDeque<>(); for (int k = 0; k < 20; k++) all.push("x"); return all; } },
        PRIORITIES { public Object make(int i) { return new PriorityQueue<>(Data.NUMBERS); } },
        MAP_GROWS { public Object make(int i) { Map<Object, Object> all = new HashMap<>(); for (int k = 0; k < 20; k++) all.put(k, "x"); return all; } },
        MAP_COMPUTES { public Object make(int i) { Map<String, List<Object>> all = new HashMap<>(); all.computeIfAbsent("k", k -> new ArrayList<>()).add(i); return all; } },
        MAP_OF { public Object make(int i) { return Map.of("a", i, "b", 2); } },
        MAP_TREE { public Object make(int i) { return new TreeMap<>(Data.MAP).headMap("c").entrySet().iterator().next(); } },
        MAP_LINKED { public Object make(int i) { return new LinkedHashMap<>(Data.MAP); } },
        MAP_IDENTITY { public Object make(int i) { Map<Object, Object> all = new IdentityHashMap<>(); all.put("k", i); return all; } },
        MAP_WEAK { public Object make(int i) { Map<Object, Object> all = new WeakHashMap<>(); all.put("k", i); return all; } },
        MAP_ENUM { public Object make(int i) { Map<Color, Object> all = new EnumMap<>(Color.class); all.put(Color.RED, "x"); return all; } },
        MAP_CONCURRENT { public Object make(int i) { Map<Object, Object> all = new ConcurrentHashMap<>(); for (int k = 0; k < 20; k++) all.merge(k, "x", (a, b) -> a); return all; } },
        MAP_SKIPS { public Object make(int i) { Map<Integer, Object> all = new ConcurrentSkipListMap<>(); all.put(i, "x"); all.put(i + 1, "y"); return all; } },
        MAP_EACH { public Object make(int i) { int[] sum = {0}; Data.MAP.forEach((k, v) -> sum[0] += v); return Data.MAP.entrySet().iterator().next(); } },
        SET_HASH { public Object make(int i) { return new HashSet<>(Data.NUMBERS); } },
        SET_OF { public Object make(int i) { return Set.of("a", "b", "c"); } },
        SET_ENUM { public Object make(int i) { return EnumSet.of(Color.RED, Color.BLUE); } },
        BITS { public Object make(int i) { BitSet bits = new BitSet(); bits.set(i % 500); return bits; } },
        UNMODIFIABLE { public Object make(int i) { return Collections.unmodifiableMap(Collections.synchronizedMap(new HashMap<>())); } },
        STREAM { public Object make(int i) { return Data.NUMBERS.stream().filter(x -> x > 2).map(x -> x * 1000).collect(Collectors.toList()); } },
        STREAM_GROUPS { public Object make(int i) { return Stream.of(Data.WORDS).collect(Collectors.groupingBy(String::length, Collectors.counting())); } },
        STREAM_JOINS { public Object make(int i) { return Stream.of(Data.WORDS).sorted().distinct().collect(Collectors.joining(",")); } },
        STREAM_INTS { public Object make(int i) { return IntStream.range(0, 20).boxed().toArray(Integer[]::new); } },
        STREAM_STATISTICS { public Object make(int i) { return IntStream.range(0, 9).summaryStatistics().toString(); } },
        STREAM_PARALLEL_ONE { public Object make(int i) { return Stream.iterate(1, x -> x + 1000).limit(5).reduce(0, Integer::sum); } },
        OPTIONAL { public Object make(int i) { return Optional.of("x").map(x -> x + i).filter(x -> x.length() > 1); } },
        OPTIONAL_INT { public Object make(int i) { return OptionalInt.of(i); } },

        // Numbers.
        BIG_INTEGER { public Object make(int i) { return BigInteger.valueOf(i).pow(9).multiply(BigInteger.TEN).add(BigInteger.TWO).mod(BigInteger.valueOf(97)); } },
        BIG_INTEGER_TEXT { public Object make(int i) { return new BigInteger("123456789012345678901234567890").multiply(BigInteger.valueOf(i + 1)).toString(); } },
        BIG_DECIMAL { public Object make(int i) { return new BigDecimal("12.345").multiply(BigDecimal.valueOf(i)).setScale(2, RoundingMode.HALF_UP).toString(); } },
        BIG_DECIMAL_DIVIDE { public Object make(int i) { return BigDecimal.valueOf(i + 1).divide(BigDecimal.valueOf(7), 20, RoundingMode.HALF_EVEN); } },
        RANDOM { public Object make(int i) { return new Random(i).ints(5).toArray(); } },
        UUIDS { public Object make(int i) { return new UUID(i, i).toString(); } },
        UUID_OF_BYTES { public Object make(int i) { return UUID.nameUUIDFromBytes(Data.BYTES); } },

        // Exceptions.
        EXCEPTION { public Object make(int i) { return new IllegalStateException("state " + i); } },
        EXCEPTION_CAUSE { public Object make(int i) { try { throw new Failure("a", new Exception("b")); } catch (Failure e) { return e; } } },
        EXCEPTION_TRACE { public Object make(int i) { return new Exception().getStackTrace(); } },
        EXCEPTION_PRINTED(true) { public Object make(int i) { StringWriter text = new StringWriter(); new Exception("x").printStackTrace(new PrintWriter(text)); return text.toString(); } },
        EXCEPTION_SUPPRESSED { public Object make(int i) { Exception e = new Exception("a"); e.addSuppressed(new Exception("b")); return e.getSuppressed(); } },
        EXCEPTION_NULL { public Object make(int i) { try { Object none = null; return none.toString(); } catch (NullPointerException e) { return e; } } },
        EXCEPTION_NULL_MESSAGE { public Object make(int i) { try { Thing none = null; return none.text; } catch (NullPointerException e) { return e.getMessage(); } } },
        EXCEPTION_BOUNDS { public Object make(int i) { try { return depth(3); } catch (ArrayIndexOutOfBoundsException e) { return e; } } },
        EXCEPTION_CAST { public Object make(int i) { try { Object text = "x"; return (Integer) text; } catch (ClassCastException e) { return e; } } },
        EXCEPTION_DIVIDE { public Object make(int i) { try { return 1 / (i - i); } catch (ArithmeticException e) { return e; } } },
        EXCEPTION_SIZE { public Object make(int i) { try { return new int[-1 - i]; } catch (NegativeArraySizeException e) { return e; } } },
        EXCEPTION_STORE { public Object make(int i) { try { Object[] texts = new String[1]; texts[0] = 1; return texts; } catch (ArrayStoreException e) { return e; } } },
        EXCEPTION_MISSING { public Object make(int i) { try { return Class.forName("no.such.Class"); } catch (ClassNotFoundException e) { return e; } } },
        STACK_WALKER(true) { public Object make(int i) { return StackWalker.getInstance().walk(frames -> frames.limit(5).collect(Collectors.toList())); } },
        THREAD_TRACE_OTHER { public Object make(int i) { return Data.PARKED.getStackTrace(); } },
        THREAD_TRACE(true) { public Object make(int i) { return Thread.currentThread().getStackTrace(); } },

        // References, threads and locks.
        WEAK { public Object make(int i) { return new WeakReference<>(new Object()); } },
        SOFT { public Object make(int i) { return new SoftReference<>(new Object()); } },
        PHANTOM { public Object make(int i) { return new PhantomReference<>(new Object(), Data.QUEUE); } },
        FINALIZED { public Object make(int i) { return new Finalized(); } },
        CLEANED { public Object make(int i) { return Data.CLEANER.register(new Object(), () -> {}); } },
        THREAD(true) { public Object make(int i) throws Exception { Thread thread = new Thread(() -> {}); thread.start(); thread.join(); return thread; } },
        THREAD_LOCAL { public Object make(int i) { Data.LOCAL.set(new Object()); Object got = Data.LOCAL.get(); Data.LOCAL.remove(); return got; } },
        THREAD_LOCAL_INITIAL { public Object make(int i) { ThreadLocal<Object> local = ThreadLocal.withInitial(Object::new); Object got = local.get(); local.remove(); return got; } },
        LOCK { public Object make(int i) { ReentrantLock lock = new ReentrantLock(); lock.lock(); lock.unlock(); return lock.newCondition(); } },
        MONITOR { public Object make(int i) { Object lock = new Object(); synchronized (lock) { return lock.hashCode() + 1000; } } },
        FUTURE { public Object make(int i) throws Exception { FutureTask<Object> task = new FutureTask<>(Object::new); task.run(); return task.get(); } },
        COMPLETABLE { public Object make(int i) { return CompletableFuture.completedFuture(1).thenApply(x -> x + 1000).thenCombine(CompletableFuture.completedFuture(2), Integer::sum).join(); } },
        TIMEOUT { public Object make(int i) throws Exception { try { return new CompletableFuture<>().get(1, TimeUnit.NANOSECONDS); } catch (TimeoutException e) { return e; } } },
        QUEUES { public Object make(int i) { ConcurrentLinkedQueue<Object> all = new ConcurrentLinkedQueue<>(); all.add("x"); LinkedBlockingQueue<Object> more = new LinkedBlockingQueue<>(); more.add("y"); return all.poll(); } },
        COPY_ON_WRITE { public Object make(int i) { List<Object> all = new CopyOnWriteArrayList<>(); all.add("a"); all.add("b"); return all; } },
        ATOMICS { public Object make(int i) { LongAdder sum = new LongAdder(); sum.add(i); return new AtomicReference<>(new AtomicIntegerArray(5)); } },

        // Time and text.
        DATE { public Object make(int i) { return LocalDate.of(2020, 1, 1).plusDays(i % 300); } },
        DATE_TIME_TEXT { public Object make(int i) { return LocalDateTime.of(2020, 1, 1, 12, i % 60).format(DateTimeFormatter.ISO_LOCAL_DATE_TIME); } },
        DATE_PARSE { public Object make(int i) { return LocalDate.parse("2020-02-03"); } },
        ZONED { public Object make(int i) { return ZonedDateTime.of(2020, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC).plusHours(i).toString(); } },
        INSTANT { public Object make(int i) { return Instant.ofEpochSecond(i).plus(Duration.ofMinutes(5)).toString(); } },
        NOW { public Object make(int i) { return Instant.now(); } },
        CALENDAR { public Object make(int i) { Calendar day = Calendar.getInstance(); day.add(Calendar.DAY_OF_MONTH, i % 30); return day.getTime(); } },
        DATE_FORMAT { public Object make(int i) { return Data.DATES.format(new Date(i)); } },
        DECIMAL_FORMAT { public Object make(int i) { return Data.DECIMALS.format(i * 1.5); } },
        MESSAGE_FORMAT { public Object make(int i) { return MessageFormat.format("{0} of {1,number}", "a", i); } },
        BUNDLE { public Object make(int i) { return ResourceBundle.getBundle("io.lucce.programs.Constructs$Texts").getString("hello") + i; } },
        BUNDLE_LOCALE { public Object make(int i) { return ResourceBundle.getBundle("io.lucce.programs.Constructs$Texts", Locale.FRANCE); } },
        LOCALE { public Object make(int i) { return Locale.forLanguageTag("de-AT").getDisplayCountry(Locale.ENGLISH); } },
        REGEX_COMPILE { public Object make(int i) { return Pattern.compile("a+(b|c)*d"); } },
        REGEX_GROUPS { public Object make(int i) { Matcher found = Data.WORD.matcher("hello world"); return found.matches() ? found.group(2) : null; } },
        REGEX_REPLACE { public Object make(int i) { return Data.WORD.matcher("hello world").replaceAll("$2 $1"); } },
        REGEX_SPLIT { public Object make(int i) { return Data.COMMA.splitAsStream("a, b,c").toArray(); } },
        SCANNER { public Object make(int i) { Scanner text = new Scanner("12 word 3.5"); text.nextInt(); return text.next() + text.nextDouble(); } },
        BUFFERED_READER { public Object make(int i) throws Exception { return new java.io.BufferedReader(new StringReader("a\nb")).readLine(); } },

        // Buffers, charsets, files.
        BYTE_BUFFER { public Object make(int i) { return ByteBuffer.allocate(32).putInt(i).flip().slice().asReadOnlyBuffer(); } },
        BYTE_BUFFER_WRAPS { public Object make(int i) { return ByteBuffer.wrap(Data.BYTES).duplicate().asIntBuffer(); } },
        BYTE_BUFFER_DIRECT(true) { public Object make(int i) { return ByteBuffer.allocateDirect(64); } },
        ENCODER { public Object make(int i) throws Exception { return StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap("größer")); } },
        DECODER { public Object make(int i) throws Exception { return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(Data.BYTES)).toString(); } },
        BASE_64 { public Object make(int i) { return java.util.Base64.getEncoder().encodeToString(Data.BYTES); } },
        PATHS { public Object make(int i) { return Path.of("/a/b").resolve("c" + i).normalize().getFileName().toString(); } },
        FILE_READ(true) { public Object make(int i) throws Exception { return Files.readString(Data.FILE); } },
        FILE_LINES(true) { public Object make(int i) throws Exception { return Files.readAllLines(Data.FILE); } },
        FILE_STREAM(true) { public Object make(int i) throws Exception { try (var in = new java.io.FileInputStream(Data.FILE.toFile())) { return in.readAllBytes(); } } },
        FILE_ATTRIBUTES(true) { public Object make(int i) throws Exception { return Files.getLastModifiedTime(Data.FILE).toString() + Files.size(Data.FILE); } },
        FILE_LIST(true) { public Object make(int i) { return Data.FILE.toFile().getAbsoluteFile().exists() ? new java.io.File("/proc/self/fd").list() : null; } },
        FILE_WRITE(true) { public Object make(int i) throws Exception { return Files.writeString(Data.FILE, "text " + i); } },
        DEFLATE(true) { public Object make(int i) {
            Deflater out = new Deflater(); out.setInput(Data.SERIAL); out.finish();
            byte[] small = new byte[200]; int length = out.deflate(small); out.end();
            return Arrays.copyOf(small, length);
        } },
        CHECKSUM { public Object make(int i) { CRC32 sum = new CRC32(); sum.update(Data.BYTES); return sum.getValue() + 1000; } },
        DIGEST { public Object make(int i) throws Exception { return java.security.MessageDigest.getInstance("SHA-256").digest(Data.BYTES); } },
        PROPERTIES { public Object make(int i) { return System.getProperty("java.version") + System.getProperties().size(); } },
        ENVIRONMENT { public Object make(int i) { return System.getenv("PATH") + System.getenv().size(); } };

        private final boolean rare;

        Way() {
            this(false);
        }

        Way(boolean rare) {
            this.rare = rare;
        }

        @Override
        public boolean isRare() {
            return rare;
        }
    }
}
