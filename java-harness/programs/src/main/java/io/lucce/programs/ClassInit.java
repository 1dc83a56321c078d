package io.lucce.programs;

import io.lucce.CallContext;

/** Class initialisers that the VM runs in the middle of a method, also of one without calls. */
public final class ClassInit {
    static Object kept;

    public static void main(String[] args) throws Exception {
        body();
        Fresh.run(ClassInit.class, "body", Repeats.of(30));
        Check.done();
    }

    static void body() {
        kept = new byte[1];
        Check.equal(7, leafGet());
        Check.that(CallContext.current(), new Throwable());
        leafPut();
        Check.that(CallContext.current(), new Throwable());
        Check.equal(13, leafSum(2));
        kept = newInstance();
        Check.that(CallContext.current(), new Throwable());
        Check.equal(21, viaStatic());
        Check.that(CallContext.current(), new Throwable());
        nested();
        failing();
        interfaces();
        superclasses();
        inLoop();
        inHandler();
        byReflection();
        Check.that(CallContext.current(), new Throwable());
    }

    static int leafGet() {
        return ByGet.value;
    }

    static void leafPut() {
        ByPut.value = 4;
    }

    /** Allocates before and after, but calls nothing. */
    static int leafSum(int n) {
        kept = new int[n];
        int sum = ByLeafSum.first;
        kept = new long[n];
        sum += ByLeafSum2.second;
        kept = new Object[n];
        return sum;
    }

    static Object newInstance() {
        kept = new byte[2];
        Object made = new ByNew(new byte[3]);
        Check.that(CallContext.current(), new Throwable());
        return made;
    }

    static int viaStatic() {
        int result = ByStatic.twice(ByStatic2.base());
        Check.that(CallContext.current(), new Throwable());
        return result;
    }

    static final class ByGet {
        static int value = 7;

        static {
            kept = new byte[10];
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class ByPut {
        static int value = start();

        static int start() {
            kept = new byte[11];
            Check.that(CallContext.current(), new Throwable());
            return 3;
        }
    }

    static final class ByLeafSum {
        static int first = 5;

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class ByLeafSum2 {
        static int second = ByLeafSum.first + 3;

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class ByNew {
        static final Object SHARED = new Object[] {new byte[4]};
        final Object held;

        static {
            Check.that(CallContext.current(), new Throwable());
        }

        ByNew(Object held) {
            this.held = held;
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class ByStatic {
        static {
            kept = new byte[12];
            Check.that(CallContext.current(), new Throwable());
        }

        static int twice(int n) {
            Check.that(CallContext.current(), new Throwable());
            return 2 * n + 1;
        }
    }

    static final class ByStatic2 {
        static final int TEN = Integer.parseInt("10");

        static {
            Check.that(CallContext.current(), new Throwable());
        }

        static int base() {
            return TEN;
        }
    }

    static void nested() {
        kept = Outer1.value;
        Check.that(CallContext.current(), new Throwable());
    }

    static final class Outer1 {
        static Object value = Outer2.make();

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class Outer2 {
        static final Object[] VALUES = new Object[3];

        static {
            VALUES[0] = Outer3.value;
            Check.that(CallContext.current(), new Throwable());
        }

        static Object make() {
            VALUES[1] = new byte[5];
            Check.that(CallContext.current(), new Throwable());
            return VALUES;
        }
    }

    /** Its initialiser comes back to a class that is being initialised. */
    static final class Outer3 {
        static Object value = "three";

        static {
            kept = Outer2.VALUES;
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void failing() {
        int errors = 0;
        for (int i = 0; i < 3; i++) {
            try {
                kept = new byte[6];
                kept = leafFail();
                Check.wrong("the initialiser must fail");
            } catch (ExceptionInInitializerError e) {
                Check.that(CallContext.current(), new Throwable());
                Check.equal("thrown deep inside", e.getCause().getMessage());
                errors++;
            } catch (NoClassDefFoundError e) {
                Check.that(CallContext.current(), new Throwable());
                errors += 10;
            }
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(21, errors);
        Check.equal(1, leafFailCaught());
        Check.equal(2, leafFailCaught());
    }

    static Object leafFail() {
        return Failing.value;
    }

    /** No call, but handlers. */
    static int leafFailCaught() {
        try {
            kept = new byte[7];
            kept = Failing2.value;
            return 0;
        } catch (ExceptionInInitializerError e) {
            kept = new byte[8];
            return 1;
        } catch (NoClassDefFoundError e) {
            kept = new byte[9];
            return 2;
        }
    }

    static final class Failing {
        static Object value = new byte[13];

        static {
            Check.that(CallContext.current(), new Throwable());
            fail(5);
        }
    }

    static final class Failing2 {
        static Object value = new byte[14];

        static {
            fail(2);
        }
    }

    static void fail(int depth) {
        if (depth == 0) {
            Check.that(CallContext.current(), new Throwable());
            throw new IllegalStateException("thrown deep inside");
        }
        fail(depth - 1);
    }

    interface WithDefault {
        Object SEEN = mark();

        static Object mark() {
            Check.that(CallContext.current(), new Throwable());
            return new byte[15];
        }

        default Object answer() {
            Check.that(CallContext.current(), new Throwable());
            return SEEN;
        }
    }

    /** Has no default method, so it is initialised only when its field is used. */
    interface WithoutDefault {
        Object LATE = WithDefault.mark();
    }

    static final class Implements implements WithDefault, WithoutDefault {
        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void interfaces() {
        Implements made = new Implements();
        Check.that(CallContext.current(), new Throwable());
        kept = made.answer();
        kept = leafInterface();
        Check.that(CallContext.current(), new Throwable());
    }

    static Object leafInterface() {
        return WithoutDefault.LATE;
    }

    static class Base {
        static int order = 1;

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static class Middle extends Base {
        static {
            order = order * 2 + 1;
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class Derived extends Middle {
        static int last = order * 2 + 1;

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void superclasses() {
        Check.equal(7, Derived.last);
        Check.that(CallContext.current(), new Throwable());
    }

    /** The initialiser runs in one of many rounds; the rounds after it must be right. */
    static void inLoop() {
        for (int i = 0; i < 10; i++) {
            kept = new byte[16];
            if (i == 6) {
                kept = InLoop.value;
            }
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class InLoop {
        static Object value = new Object();

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void inHandler() {
        try {
            fail(3);
        } catch (IllegalStateException e) {
            kept = InHandler.value;
            Check.that(CallContext.current(), new Throwable());
        } finally {
            kept = InFinally.value;
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class InHandler {
        static Object value = new Object();

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class InFinally {
        static Object value = new Object();

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void byReflection() {
        try {
            Class.forName(ByName.class.getName(), true, ClassInit.class.getClassLoader());
            Check.that(CallContext.current(), new Throwable());
            ByField.class.getDeclaredField("value").get(null);
            Check.that(CallContext.current(), new Throwable());
            ByConstructor.class.getDeclaredConstructor().newInstance();
            Check.that(CallContext.current(), new Throwable());
        } catch (ReflectiveOperationException e) {
            Check.wrong(e.toString());
        }
    }

    static final class ByName {
        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class ByField {
        static Object value = new byte[17];

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class ByConstructor {
        static {
            Check.that(CallContext.current(), new Throwable());
        }

        ByConstructor() {
            Check.that(CallContext.current(), new Throwable());
        }
    }
}
