package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.ref.WeakReference;
import java.time.Year;
import java.util.AbstractList;
import java.util.ArrayList;

/**
 * Calls of the JDK's small methods, which call no others and before which nothing need be said: what the VM
 * runs in the middle of them, exceptions that leave them, and what happens behind them.
 */
public final class QuietCalls {
    static Object kept;
    static int sum;

    public static void main(String[] args) throws Exception {
        // It is there, and not initialised: see Years.
        Class.forName("java.time.Year", false, null);
        Years.first();
        for (int i = 0; i < Repeats.of(300); i++) {
            behindCalls(i);
            exceptions(i);
            exceptionFirst(i);
            constructors(i);
            sum += passesOn(i, "text");
            numbers(i + 0.5);
            if (i % 50 == 0) System.gc();
        }
        for (int i = 0; i < 30_000; i++) {
            sum += loop(i, "some text");
        }
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    /** Loaded after the class whose initialiser its call starts. */
    static final class Years {
        static void first() {
            sum += Year.isLeap(2000) ? 1 : 0;
            kept = new byte[10];
            Check.that(CallContext.current(), new Throwable());
            sum += Year.isLeap(1900) ? 1 : 0;
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void behindCalls(int i) {
        String text = deeper(i, 5);
        sum += text.length() + text.hashCode() + Integer.compare(i, 3);
        kept = new byte[11];
        Check.that(CallContext.current(), new Throwable());
        if (Character.isSurrogate(text.charAt(0)) || text.isEmpty()) {
            throw new AssertionError(text);
        }
        kept = new Object[12];
        Check.that(CallContext.current(), new Throwable());
    }

    static String deeper(int i, int depth) {
        if (depth == 0) {
            kept = new int[13];
            return "t" + i % 7;
        }
        return deeper(i, depth - 1);
    }

    /** The VM makes the exception in a method without hooks, above frames that have ended. */
    static void exceptions(int i) {
        Integer nothing = i % 2 == 0 ? null : i;
        deeper(i, 4);
        try {
            sum += Integer.valueOf(i).compareTo(nothing);
        } catch (NullPointerException e) {
            kept = new byte[14];
            Check.that(CallContext.current(), new Throwable());
        }
        kept = new byte[15];
        Check.that(CallContext.current(), new Throwable());
    }

    /** An exception of a quiet call before the first hook of the method. */
    static void exceptionFirst(int i) {
        try {
            sum += Long.compare(i, 1) + Integer.valueOf(1).compareTo(i % 2 == 0 ? null : (Integer) 200);
        } catch (NullPointerException e) {
            sum++;
        }
        kept = new byte[16];
        Check.that(CallContext.current(), new Throwable());
    }

    /** Constructors of the JDK that only set fields; of objects with a finalizer the VM is told in them. */
    static final class Finalized extends AbstractList<Object> {
        final Object made;

        Finalized(int i) {
            made = new byte[17 + i % 2];
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        public Object get(int index) {
            return made;
        }

        @Override
        public int size() {
            return 1;
        }

        @Override
        @SuppressWarnings({"deprecation", "removal"})
        protected void finalize() {
            kept = new byte[19];
        }
    }

    static final class Weak extends WeakReference<Object> {
        Weak(Object to) {
            super(to);
        }
    }

    static void constructors(int i) {
        kept = new Finalized(i).get(0);
        Check.that(CallContext.current(), new Throwable());
        kept = new Weak(new byte[20]);
        Check.that(CallContext.current(), new Throwable());
        kept = new ArrayList<>();
        Check.that(CallContext.current(), new Throwable());
    }

    /** Nothing but small methods between entry and the one call. */
    static int passesOn(int i, String text) {
        int length = text.length() + Math.max(i, Integer.bitCount(i));
        return length + deeper(i, 1).length();
    }

    /**
     * Methods that are an instruction or two once they are compiled, and call others before: between entry and
     * the one call.
     */
    static void numbers(double n) {
        kept = made(up(n));
        kept = larger(n);
        kept = downOf(n);
        kept = absolute(n);
        kept = root(n);
        kept = turned(n);
        kept = together(n);
        kept = rounded(n);
    }

    static int up(double n) {
        return (int) Math.ceil(n / 0.75);
    }

    static Object larger(double n) {
        return made((int) Math.max(Math.min(n, 9.5f), Math.max((float) n, 0.25f)) + up(n));
    }

    static Object downOf(double n) {
        return made((int) Math.floor(n));
    }

    static Object absolute(double n) {
        return made((int) Math.abs(n) + Math.abs((int) n) + (int) Math.abs((float) n));
    }

    static Object root(double n) {
        return made((int) Math.sqrt(n));
    }

    static Object turned(double n) {
        return made((int) (Math.sin(n) + Math.cos(n)));
    }

    static Object together(double n) {
        return made((int) Math.fma(n, n, 1.5) + (int) Math.fma((float) n, 0.5f, 0.25f));
    }

    static Object rounded(double n) {
        return made((int) Math.rint(n) + (int) Math.round(n) + Math.floorMod((int) n, 3));
    }

    static Object made(int n) {
        Object made = new int[22 + (n & 7)];
        Check.that(CallContext.current(), new Throwable());
        return made;
    }

    static int loop(int i, String text) {
        int found = 0;
        for (int j = 0; j < text.length(); j++) {
            found += Character.isHighSurrogate((char) (i + j)) ? 1 : 0;
        }
        if (i % 1000 == 0) {
            kept = new byte[21];
            Check.that(CallContext.current(), new Throwable());
        }
        return found + text.length();
    }
}
