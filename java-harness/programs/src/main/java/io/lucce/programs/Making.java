package io.lucce.programs;

import com.sun.management.ThreadMXBean;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Makes objects in all ways that the JDK has, each in a method of its own, and prints for each {@code method bytes}:
 * what the VM says that the thread has allocated meanwhile. Arguments: how often, and perhaps which.
 */
public final class Making {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();

    static Object sink;
    static volatile int number = 1000;

    private Making() {}

    private interface Way {
        void make(int times) throws Throwable;
    }

    public enum Colour { RED, GREEN, BLUE }

    public record Point(int x, String name) implements Serializable {}

    public static final class Plain implements Cloneable {
        int[] content = {1, 2, 3};

        public Plain() {}

        Plain(int number) {
            content = new int[number & 7];
        }

        /** Calls Object.clone without a method of its own. */
        Object copy() throws CloneNotSupportedException {
            return clone();
        }
    }

    public static class Copied implements Cloneable {
        long first, second;

        @Override
        public Copied clone() {
            try {
                return (Copied) super.clone();
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }
    }

    /** Overrides it again, and calls the one above. */
    public static final class CopiedAgain extends Copied {
        double third;

        @Override
        public CopiedAgain clone() {
            return (CopiedAgain) super.clone();
        }
    }

    /** Defined again as a hidden class. */
    public static final class Veiled implements Function<Integer, Object>, Cloneable {
        @Override
        public Object apply(Integer n) {
            try {
                Object[] all = {
                    new Veiled(), new int[n & 15], new String[3], new long[2][n & 3], new int[] {n}.clone(), clone(),
                    Arrays.copyOf(new Object[] {n, n}, 5, Object[].class), Arrays.copyOf(new String[1], 4, String[].class),
                };
                return all;
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }
    }

    public static final class Stored implements Serializable {
        private static final long serialVersionUID = 1;
        int number = 7;
        String name = "stored";
        int[] numbers = {1, 2, 3};
        Colour colour = Colour.GREEN;
        transient Object none;
    }

    static void concatNumbers(int times) {
        for (int i = 0; i < times; i++) sink = "order " + i + " of customer " + i * 31L;
    }

    static void concatObjects(int times) {
        for (int i = 0; i < times; i++) sink = i + " " + Colour.RED + '.' + 1.5f + "," + 2.5 + true + null + "ü";
    }

    static void concatWide(int times) {
        String wide = "Ω" + number;
        for (int i = 0; i < times; i++) sink = wide + i + wide;
    }

    static void concatTwo(int times) {
        String one = "a" + number;
        for (int i = 0; i < times; i++) sink = one + i;
    }

    static void append(int times) {
        for (int i = 0; i < times; i++) {
            String s = "";
            // As many digits in each round.
            for (int j = 0; j < 5; j++) s += j + 10_000 + i % 10_000;
            sink = s;
        }
    }

    static void strings(int times) {
        String text = "hello world, hello all " + number;
        for (int i = 0; i < times; i++) {
            sink = text.replace('o', '0');
            sink = text.replace("hello", "bye");
            sink = text.substring(3 + (i & 3));
            sink = text.toUpperCase();
            sink = text.concat("!");
            sink = text.repeat(3);
            sink = text.split(",");
            sink = text.strip();
            sink = String.join("-", text, "b", "c");
            sink = text.toCharArray();
            sink = String.valueOf(i);
            sink = String.valueOf(new char[] {'a', 'Ω'});
            sink = new String(new char[] {'a', 'b'});
            sink = text.chars().filter(c -> c == 'l').count();
            sink = text.indent(2);
            sink = text.lines().toList();
        }
    }

    static void format(int times) {
        for (int i = 0; i < times; i++) sink = String.format("%d of %s at %.2f", 1_000 + i % 1_000, "x", 1.5);
    }

    static void bytes(int times) {
        String plain = "hello " + number, wide = "Ωhello" + number;
        byte[] utf = wide.getBytes(StandardCharsets.UTF_8);
        for (int i = 0; i < times; i++) {
            sink = plain.getBytes(StandardCharsets.UTF_8);
            sink = wide.getBytes(StandardCharsets.UTF_8);
            sink = wide.getBytes(StandardCharsets.UTF_16);
            sink = plain.getBytes(StandardCharsets.ISO_8859_1);
            sink = new String(utf, StandardCharsets.UTF_8);
            sink = new String(utf, StandardCharsets.ISO_8859_1);
            sink = new String(utf, StandardCharsets.UTF_16);
        }
    }

    static void builders(int times) {
        for (int i = 0; i < times; i++) {
            StringBuilder text = new StringBuilder();
            text.append("x").append(i).append('Ω').append(1.5).append(new char[] {'a'}).insert(0, "front").reverse();
            sink = text.toString();
        }
    }

    static void lambdas(int times) {
        for (int i = 0; i < times; i++) {
            int one = i;
            long two = i;
            String three = "three";
            Supplier<Object> first = () -> one;
            Supplier<Object> second = () -> one + two + three.length();
            Supplier<Object> bound = three::trim;
            IntFunction<Object> made = int[]::new;
            Function<Integer, Object> constructor = Plain::new;
            sink = first;
            sink = second.get();
            sink = bound;
            sink = made.apply(5);
            sink = constructor.apply(i);
        }
    }

    static void cloneArrays(int times) {
        Object[] arrays = {
            new boolean[9], new byte[9], new char[9], new short[9], new int[9], new long[9], new float[9], new double[9],
        };
        String[][] strings = {{"a"}, {"b", "c"}};
        for (int i = 0; i < times; i++) {
            sink = ((boolean[]) arrays[0]).clone();
            sink = ((byte[]) arrays[1]).clone();
            sink = ((char[]) arrays[2]).clone();
            sink = ((short[]) arrays[3]).clone();
            sink = ((int[]) arrays[4]).clone();
            sink = ((long[]) arrays[5]).clone();
            sink = ((float[]) arrays[6]).clone();
            sink = ((double[]) arrays[7]).clone();
            sink = strings.clone();
            sink = strings[1].clone();
            sink = arrays.clone();
        }
    }

    static void cloneObjects(int times) throws CloneNotSupportedException {
        Plain plain = new Plain();
        Copied copied = new CopiedAgain(), first = new Copied();
        ArrayList<String> list = new ArrayList<>(List.of("a", "b"));
        HashMap<String, String> map = new HashMap<>(java.util.Map.of("a", "b"));
        BitSet bits = new BitSet(100);
        for (int i = 0; i < times; i++) {
            sink = plain.copy();
            sink = copied.clone();
            sink = first.clone();
            sink = list.clone();
            sink = map.clone();
            sink = bits.clone();
            sink = new ArrayDeque<>(list).clone();
            sink = new int[] {i}.clone();
        }
    }

    static void enums(int times) {
        for (int i = 0; i < times; i++) {
            sink = Colour.values();
            EnumMap<Colour, Integer> map = new EnumMap<>(Colour.class);
            map.put(Colour.RED, i);
            sink = map.clone();
            sink = Colour.valueOf("GREEN");
        }
    }

    static void copies(int times) {
        int[] numbers = new int[20];
        String[] strings = {"a", "b", "c"};
        Object[] objects = {1, 2};
        for (int i = 0; i < times; i++) {
            sink = Arrays.copyOf(numbers, 21);
            sink = Arrays.copyOfRange(numbers, 2, 9);
            sink = Arrays.copyOf(strings, 4);
            sink = Arrays.copyOfRange(strings, 1, 3);
            sink = Arrays.copyOf(objects, 7);
            sink = Arrays.copyOf(objects, 7, Integer[].class);
            sink = new ArrayList<>(Arrays.asList(strings)).toArray(new String[0]);
            sink = List.of(1, 2, 3).toArray(Integer[]::new);
        }
    }

    static void arraysByClass(int times) {
        for (int i = 0; i < times; i++) {
            sink = Array.newInstance(int.class, 5);
            sink = Array.newInstance(String.class, 5);
            sink = Array.newInstance(Plain[].class, 5);
            sink = Array.newInstance(int.class, 2, 3);
            sink = Array.newInstance(String.class, 2, 3, 4);
            sink = new int[2][3];
            sink = new String[4][];
        }
    }

    static void constructors(int times) throws Throwable {
        Constructor<Plain> constructor = Plain.class.getConstructor();
        Constructor<StringBuilder> builder = StringBuilder.class.getConstructor(String.class);
        for (int i = 0; i < times; i++) {
            sink = constructor.newInstance();
            sink = builder.newInstance("text");
        }
    }

    static void invocations(int times) throws Throwable {
        Method method = Making.class.getDeclaredMethod("answer", int.class, long.class);
        for (int i = 0; i < times; i++) sink = method.invoke(null, i, 1000L + i);
    }

    static int answer(int one, long two) {
        return (int) (one + two);
    }

    static void handles(int times) throws Throwable {
        MethodHandle constructor = LOOKUP.findConstructor(Plain.class, MethodType.methodType(void.class));
        MethodHandle array = MethodHandles.arrayConstructor(String[].class);
        MethodHandle answer = LOOKUP.findStatic(
                Making.class, "answer", MethodType.methodType(int.class, int.class, long.class));
        MethodHandle list = LOOKUP.findStatic(Arrays.class, "asList", MethodType.methodType(List.class, Object[].class));
        MethodHandle collector = list.asCollector(Object[].class, 3);
        MethodHandle copy = LOOKUP.findStatic(Arrays.class, "copyOf",
                MethodType.methodType(Object[].class, Object[].class, int.class, Class.class));
        MethodHandle generic = answer.asType(MethodType.methodType(Object.class, Object.class, Object.class));
        Object[] some = {1, 2};
        for (int i = 0; i < times; i++) {
            sink = (Plain) constructor.invokeExact();
            sink = (String[]) array.invokeExact(5);
            sink = (List<?>) collector.invoke(i, "b", "c");
            sink = list.invokeWithArguments(i, 2, 3, 4);
            sink = generic.invokeExact((Object) i, (Object) 5000L);
            sink = MethodHandles.insertArguments(answer, 0, i);
            sink = (Object[]) copy.invokeExact(some, 9, (Class<?>) Object[].class);
        }
    }

    static void combined(int times) throws Throwable {
        MethodType type = MethodType.methodType(Object.class, Integer.class);
        MethodHandle made = LOOKUP.findStatic(Making.class, "made", type);
        MethodHandle fails = LOOKUP.findStatic(Making.class, "fails", type);
        MethodHandle caught = MethodHandles.catchException(
                fails, IllegalStateException.class, MethodHandles.dropArguments(made, 0, IllegalStateException.class));
        MethodHandle last = MethodHandles.tryFinally(made, MethodHandles.dropArguments(
                MethodHandles.identity(Object.class), 0, Throwable.class).asType(
                        MethodType.methodType(Object.class, Throwable.class, Object.class)));
        for (int i = 0; i < times; i++) {
            sink = caught.invoke((Integer) i);
            sink = last.invoke((Integer) i);
        }
    }

    static Object made(Integer n) {
        return new int[n & 7];
    }

    static Object fails(Integer n) {
        throw FAILURE;
    }

    private static final IllegalStateException FAILURE = new IllegalStateException("made once");

    static void fields(int times) throws Throwable {
        VarHandle element = MethodHandles.arrayElementVarHandle(Object[].class);
        VarHandle numbers = MethodHandles.arrayElementVarHandle(int[].class);
        Object[] array = new Object[3];
        int[] ints = new int[3];
        for (int i = 0; i < times; i++) {
            element.set(array, 1, (Object) (i + 1000));
            sink = element.getAndSet(array, 1, "text");
            sink = (Object) (int) numbers.getAndAdd(ints, 1, 1000);
        }
    }

    static void records(int times) {
        for (int i = 0; i < times; i++) {
            Point point = new Point(i, "point");
            sink = point.toString();
            sink = point.hashCode() + 1000;
            sink = point.equals(new Point(i, "other"));
        }
    }

    interface Greets {
        String greet(int number, String name);
    }

    static void proxies(int times) {
        Greets proxy = (Greets) Proxy.newProxyInstance(Making.class.getClassLoader(), new Class<?>[] {Greets.class},
                (self, method, arguments) -> arguments[1] + "!" + arguments[0]);
        for (int i = 0; i < times; i++) sink = proxy.greet(i, "name");
    }

    static void boxes(int times) {
        for (int i = 0; i < times; i++) {
            sink = i + 1000;
            sink = i + 1000L;
            sink = i + 0.5;
            sink = i + 0.5f;
            sink = (char) (i + 1000);
            sink = (short) (i + 1000);
        }
    }

    static void streams(int times) {
        for (int i = 0; i < times; i++) {
            int base = i;
            sink = IntStream.range(0, 9).mapToObj(n -> n + base).toList();
            sink = Stream.of("a", "b", "c").map(s -> s + base).toArray(String[]::new);
            sink = IntStream.range(0, 20).sorted().toArray();
        }
    }

    static void numbers(int times) {
        BigInteger large = BigInteger.ONE.shiftLeft(300).add(BigInteger.valueOf(number));
        for (int i = 0; i < times; i++) {
            sink = large.multiply(large).mod(BigInteger.valueOf(i + 77L));
            sink = large.toString();
            sink = new BigDecimal("1.2345").multiply(BigDecimal.valueOf(i)).toPlainString();
            sink = Double.toString(i + 0.1);
            sink = Long.toHexString(i + 1000L);
        }
    }

    static void buffers(int times) {
        for (int i = 0; i < times; i++) {
            ByteBuffer buffer = ByteBuffer.allocate(32);
            sink = buffer.duplicate().asReadOnlyBuffer().slice();
            sink = buffer.asIntBuffer();
            sink = CharBuffer.wrap("text").subSequence(1, 2).toString();
            sink = StandardCharsets.UTF_8.encode("Ωtext");
        }
    }

    static void collections(int times) {
        for (int i = 0; i < times; i++) {
            List<Integer> list = new ArrayList<>();
            TreeMap<String, Integer> tree = new TreeMap<>();
            for (int j = 0; j < 12; j++) {
                list.add(j + 1000);
                tree.merge("key" + (j & 3), j, Integer::sum);
            }
            sink = List.copyOf(list);
            sink = list.toArray();
            sink = tree.descendingMap().entrySet().toString();
            sink = new HashMap<>(tree);
        }
    }

    static void stored(int times) throws Throwable {
        for (int i = 0; i < times; i++) {
            ByteArrayOutputStream to = new ByteArrayOutputStream();
            try (ObjectOutputStream out = new ObjectOutputStream(to)) {
                out.writeObject(new Stored());
                out.writeObject(new Point(i, "stored"));
            }
            try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(to.toByteArray()))) {
                sink = in.readObject();
                sink = in.readObject();
            }
        }
    }

    static void veiled(int times) throws Throwable {
        byte[] code;
        try (InputStream in = Making.class.getResourceAsStream("Making$Veiled.class")) {
            code = in.readAllBytes();
        }
        Class<?> hidden = LOOKUP.defineHiddenClass(code, true).lookupClass();
        @SuppressWarnings("unchecked")
        Function<Integer, Object> made = (Function<Integer, Object>) hidden.getConstructor().newInstance();
        for (int i = 0; i < times; i++) sink = made.apply(i);
    }

    static void exceptions(int times) {
        for (int i = 0; i < times; i++) {
            try {
                throw new IllegalArgumentException("number " + i);
            } catch (IllegalArgumentException e) {
                sink = e.getMessage();
            }
        }
    }

    private static int zero;
    private static String nothing;
    private static final int[] SHORT = new int[3];
    private static final Object[] TEXTS = new String[1];

    private interface Thrower {
        Object run() throws Throwable;
    }

    private static void catches(Thrower thrower) {
        try {
            sink = thrower.run();
        } catch (Throwable thrown) {
            sink = thrown.getMessage();
        }
    }

    /** The VM makes these, in the middle of an instruction. */
    static void thrownByVm(int times) {
        for (int i = 0; i < times; i++) {
            catches(() -> nothing.length());
            catches(() -> SHORT[3 + number]);
            catches(() -> 1 / zero);
            catches(() -> (Integer) (Object) Making.class.getName());
            catches(() -> new int[-number]);
            catches(() -> TEXTS[0] = TEXTS);
            catches(() -> "text".charAt(number));
        }
    }

    private static Object second(Object first, int second) {
        return first;
    }

    /** Makes an exception of its own on the way. */
    private static final class Caused extends RuntimeException {
        final Object[] content;

        Caused() {
            super(new ArithmeticException("cause"));
            content = new Object[number / 100];
        }
    }

    /** Its trace is not noted. */
    private static final class Quiet extends ArithmeticException {
        @Override
        public Throwable fillInStackTrace() {
            return this;
        }
    }

    private static Object deeper(int depth) {
        if (depth > 0) {
            Object below = deeper(depth - 1);
            return new ArithmeticException(below + "");
        }
        return new Quiet();
    }

    /** Code and the VM make exceptions of one class on one line, and where other frames have been. */
    static void thrownByBoth(int times) {
        for (int i = 0; i < times; i++) {
            catches(() -> second(new ArithmeticException("made"), 1 / zero));
            catches(() -> second(new ArrayIndexOutOfBoundsException(number), SHORT[number]));
            catches(() -> second(new NullPointerException(), nothing.length()));
            catches(() -> second(deeper(3), 1 / zero));
            catches(() -> second(new Quiet(), 1 / zero));
            catches(() -> new Caused());
            catches(() -> new Quiet().initCause(new Error()).fillInStackTrace());
        }
    }

    static void traces(int times) {
        for (int i = 0; i < times; i++) {
            sink = new Throwable().getStackTrace();
            sink = StackWalker.getInstance().walk(frames -> frames.limit(3).toList());
        }
    }

    static void lookedUp(int times) throws Throwable {
        for (int i = 0; i < times; i++) {
            sink = Making.class.getDeclaredMethods();
            sink = String.class.getInterfaces();
            sink = Making.class.getDeclaredMethod("answer", int.class, long.class).toString();
            sink = new java.io.File("no such file").getCanonicalPath();
        }
    }

    static void threads(int times) throws Throwable {
        for (int i = 0; i < times; i++) {
            Thread thread = new Thread(() -> {}, "made");
            sink = thread;
            ThreadLocal<Object> local = ThreadLocal.withInitial(Object::new);
            sink = local.get();
            local.remove();
        }
    }

    private static void measure(String name, Way way, int times, List<String> wanted) throws Throwable {
        if (!wanted.isEmpty() && !wanted.contains(name)) {
            return;
        }
        long before = THREADS.getCurrentThreadAllocatedBytes();
        way.make(times);
        long bytes = THREADS.getCurrentThreadAllocatedBytes() - before;
        System.out.println(name + " " + bytes);
    }

    public static void main(String[] args) throws Throwable {
        int times = args.length > 0 ? Integer.parseInt(args[0]) : 2000;
        List<String> wanted = args.length > 1 ? Arrays.asList(args).subList(1, args.length) : List.of();
        measure("concatNumbers", Making::concatNumbers, 10 * times, wanted);
        measure("concatObjects", Making::concatObjects, 10 * times, wanted);
        measure("concatWide", Making::concatWide, 10 * times, wanted);
        measure("concatTwo", Making::concatTwo, 10 * times, wanted);
        measure("append", Making::append, 10 * times, wanted);
        measure("strings", Making::strings, times, wanted);
        measure("format", Making::format, times, wanted);
        measure("bytes", Making::bytes, times, wanted);
        measure("builders", Making::builders, times, wanted);
        measure("lambdas", Making::lambdas, 10 * times, wanted);
        measure("cloneArrays", Making::cloneArrays, times, wanted);
        measure("cloneObjects", Making::cloneObjects, times, wanted);
        measure("enums", Making::enums, 10 * times, wanted);
        measure("copies", Making::copies, times, wanted);
        measure("arraysByClass", Making::arraysByClass, times, wanted);
        measure("constructors", Making::constructors, 10 * times, wanted);
        measure("invocations", Making::invocations, 10 * times, wanted);
        measure("handles", Making::handles, 10 * times, wanted);
        measure("combined", Making::combined, 10 * times, wanted);
        measure("fields", Making::fields, 10 * times, wanted);
        measure("records", Making::records, 10 * times, wanted);
        measure("proxies", Making::proxies, 10 * times, wanted);
        measure("boxes", Making::boxes, 10 * times, wanted);
        measure("streams", Making::streams, times, wanted);
        measure("numbers", Making::numbers, times, wanted);
        measure("buffers", Making::buffers, times, wanted);
        measure("collections", Making::collections, times, wanted);
        measure("stored", Making::stored, times, wanted);
        measure("veiled", Making::veiled, times, wanted);
        measure("exceptions", Making::exceptions, 10 * times, wanted);
        measure("thrownByVm", Making::thrownByVm, times, wanted);
        measure("thrownByBoth", Making::thrownByBoth, times, wanted);
        measure("traces", Making::traces, times, wanted);
        measure("lookedUp", Making::lookedUp, times, wanted);
        measure("threads", Making::threads, times, wanted);
    }
}
