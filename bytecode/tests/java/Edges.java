import java.io.IOException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;

/** Code shapes that are hard to rewrite; prints what it computes. */
public class Edges {
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.TYPE_USE)
    @interface Noted {
        String[] value() default {};

        Class<?> type() default Object.class;
    }

    static class Base {
        final String text;

        Base(Object value, int number, long wide) {
            text = value + ":" + number + ":" + wide;
        }
    }

    static class Derived extends Base {
        final int extra;

        /** Branches, allocations and a call before super(). */
        Derived(int n) {
            super(n > 2 ? new StringBuilder(n > 3 ? "big" : "three") : check(n), n < 0 ? -n : n, n % 2 == 0 ? 1L : n);
            extra = n;
        }

        Derived(boolean fails) {
            super(fails ? thrown() : new Object[0].length, 1, 2L);
            int m = 0;
            while (m < 3) {
                m++;
            }
            extra = m;
        }

        static Object check(int n) {
            return n;
        }

        static Object thrown() {
            throw new IllegalStateException("in the constructor's arguments");
        }
    }

    static int countdown = 5;

    /** Jumps back to its first instruction. */
    static void loopToStart() {
        do {
            tick();
        } while (countdown > 0);
    }

    static void tick() {
        countdown--;
    }

    /** The range starts at the first instruction. */
    static int guarded(int n) {
        try {
            return Integer.parseInt(n == 0 ? "x" : "1" + n);
        } catch (NumberFormatException e) {
            return -1;
        } finally {
            tick();
        }
    }

    static String nested(int n) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < n; i++) {
            try {
                try {
                    if (i % 3 == 0) throw new IOException("io" + i);
                    if (i % 3 == 1) throw new IllegalArgumentException("arg" + i);
                    out.append(i).append(' ');
                    if (i == 5) continue;
                } catch (IOException e) {
                    out.append(e.getMessage()).append(' ');
                } finally {
                    out.append("f ");
                    if (i == 7) break;
                }
            } catch (IllegalArgumentException e) {
                synchronized (out) {
                    out.append(e.getMessage()).append(' ');
                }
            }
        }
        return out.toString();
    }

    static synchronized String switches(int n, String s) {
        int a;
        switch (n) {
            case 0: a = 1; break;
            case 1: a = Math.abs(-3);
            case 2: a = 4; break;
            default: a = n;
        }
        switch (n * 1000) {
            case -1000: a++; break;
            case 5000: a += 2; break;
            case 1 << 30: a += 3;
        }
        switch (s) {
            case "Aa": return "first" + a;
            case "BB": return "second" + a;
            default: return s.concat("!") + a;
        }
    }

    /** An uninitialised object is on the stack while branches join. */
    static String uninitialized(boolean a, boolean b) {
        return new StringBuilder(new String(a ? b ? "both" : "a" : new String("none"))).append(a && b).toString();
    }

    static long manyTypes(int i, long l, float f, double d, byte[] bytes, long[][] grid) {
        long sum = 0;
        for (long[] row : grid) {
            for (long x : row) {
                double local = x * d;
                sum += (long) local + (i > 3 ? l : (long) f);
            }
        }
        for (byte one : bytes) {
            long other = one;
            if ((other & 1) == 0) {
                sum ^= other << 3;
            }
        }
        sum += l++ + --l;
        return sum;
    }

    static String annotated(Object value) {
        @Noted({"a", "b"}) List<@Noted(type = String.class) String> list = new @Noted ArrayList<@Noted String>();
        if (value instanceof @Noted String) {
            list.add((@Noted String) value);
        }
        Supplier<String> supplier = @Noted String::new;
        Function<Object, String> function = Edges::<@Noted String>same;
        try (@Noted AutoCloseable closed = () -> list.add("closed")) {
            list.add(supplier.get() + function.apply(value));
        } catch (@Noted RuntimeException e) {
            list.add("runtime");
        } catch (Exception e) {
            list.add("exception");
        }
        return list.toString();
    }

    static <T> String same(Object value) {
        return String.valueOf(value);
    }

    static int deep(int n) {
        return n == 0 ? 0 : 1 + deep(n - 1);
    }

    static void overflow() {
        overflow();
    }

    public static void main(String[] args) throws Exception {
        for (int n = -1; n < 5; n++) {
            System.out.println(new Derived(n).text + new Derived(n).extra);
            System.out.println(guarded(n) + switches(n, n % 2 == 0 ? "Aa" : "BB") + switches(n + 1, "x"));
        }
        try {
            System.out.println(new Derived(false).text);
            System.out.println(new Derived(true).text);
        } catch (IllegalStateException e) {
            System.out.println(e.getMessage() + " at line " + e.getStackTrace()[0].getLineNumber());
        }
        countdown = 5;
        loopToStart();
        System.out.println(countdown + nested(10));
        System.out.println(uninitialized(true, true) + uninitialized(true, false) + uninitialized(false, true));
        System.out.println(manyTypes(4, 5L, 6f, 7d, new byte[] {1, 2, 3}, new long[][] {{1, 2}, {3}}));
        System.out.println(manyTypes(1, 5L, 6f, 7d, "text".getBytes(), new long[2][3]));
        System.out.println(annotated("text") + annotated(7));
        System.out.println(deep(500) + new int[1][2][3][0].length);
        try {
            overflow();
        } catch (StackOverflowError e) {
            System.out.println("overflow");
        }
        Thread thread = new Thread(() -> System.out.println(nested(4)));
        thread.start();
        thread.join();
        System.out.println(Site.current());
    }
}

/** Calls of {@code current} are replaced in the tests. */
class Site {
    static long current() {
        return 42;
    }
}
