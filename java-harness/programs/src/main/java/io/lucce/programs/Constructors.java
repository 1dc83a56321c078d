package io.lucce.programs;

import io.lucce.CallContext;
import java.util.function.Supplier;

/** Constructors: calls and allocations before {@code super(...)}, chains, exceptions, initialisers. */
public final class Constructors {
    static Object kept;

    public static void main(String[] args) {
        for (int i = 0; i < Repeats.of(200); i++) {
            arguments(i);
            chains(i);
            exceptions(i);
            nestedNews(i);
            inner(i);
            anonymous(i);
            Check.that(CallContext.current(), new Throwable());
        }
        Check.done();
    }

    static int call(int n) {
        kept = new byte[90];
        Check.that(CallContext.current(), new Throwable());
        return n;
    }

    static int refuse(int n) {
        kept = new byte[91];
        if (n % 3 == 0) {
            Check.that(CallContext.current(), new Throwable());
            throw new IllegalStateException("refused");
        }
        return n;
    }

    static class Base {
        final int value;
        final Object initial = made();

        {
            kept = new byte[92];
            Check.that(CallContext.current(), new Throwable());
        }

        Base(int value) {
            this.value = value;
            Check.that(CallContext.current(), new Throwable());
            overridden();
        }

        Object made() {
            Check.that(CallContext.current(), new Throwable());
            return new byte[93];
        }

        void overridden() {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static class Derived extends Base {
        final Object later = new byte[94];

        Derived(int a, int b) {
            super(call(a) + call(call(b)));
            Check.that(CallContext.current(), new Throwable());
        }

        /** A branch, an allocation and a nested construction before super(). */
        Derived(int a) {
            super(a % 2 == 0 ? call(new Base(a).value) : new int[] {a, call(a)}[1]);
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        void overridden() {
            Check.equal(null, later);
            Check.that(CallContext.current(), new Throwable());
        }
    }

    /** Has a constructor with nothing but super(). */
    static class Empty extends Derived {
        Empty() {
            super(1, 2);
        }
    }

    static class Emptier extends Empty {}

    static void arguments(int n) {
        Check.equal(2 * n, new Derived(n, n).value);
        Check.that(CallContext.current(), new Throwable());
        Check.equal(n, new Derived(n).value);
        Check.that(CallContext.current(), new Throwable());
        Check.equal(3, new Emptier().value);
        Check.that(CallContext.current(), new Throwable());
        Object leaf = leafArguments(n);
        Check.equal(n, ((Leaf) leaf).array.length % 1000);
    }

    static final class Leaf {
        final Object[] array;

        Leaf(Object[] array) {
            this.array = array;
        }
    }

    static Object leafArguments(int n) {
        return new Leaf(new Object[n]);
    }

    static class Chain {
        final int depth;

        Chain() {
            this(call(1));
            Check.that(CallContext.current(), new Throwable());
        }

        Chain(int a) {
            this(a, call(a) + 1);
            Check.that(CallContext.current(), new Throwable());
        }

        Chain(int a, int b) {
            this(a, b, () -> new byte[call(95)]);
            Check.that(CallContext.current(), new Throwable());
        }

        Chain(int a, int b, Supplier<Object> supplier) {
            Check.that(CallContext.current(), new Throwable());
            kept = supplier.get();
            depth = a + b;
        }
    }

    static void chains(int n) {
        Check.equal(3, new Chain().depth);
        Check.that(CallContext.current(), new Throwable());
        Check.equal(2 * n + 1, new Chain(n).depth);
        Check.that(CallContext.current(), new Throwable());
    }

    static class Refusing extends Base {
        Refusing(int n) {
            super(refuse(n));
            Check.that(CallContext.current(), new Throwable());
            kept = new Base(refuse(n + 1));
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static class Handling extends Base {
        final Object result;

        Handling(int n) {
            super(n);
            Object made;
            try {
                made = new Refusing(n);
                Check.that(CallContext.current(), new Throwable());
            } catch (IllegalStateException e) {
                Check.that(CallContext.current(), new Throwable());
                made = new byte[96];
            } finally {
                Check.that(CallContext.current(), new Throwable());
            }
            result = made;
        }
    }

    static void exceptions(int n) {
        try {
            kept = new Refusing(n);
            Check.that(CallContext.current(), new Throwable());
        } catch (IllegalStateException e) {
            kept = new byte[97];
            Check.that(CallContext.current(), new Throwable());
        }
        kept = new Handling(n).result;
        Check.that(CallContext.current(), new Throwable());
        try {
            kept = new Leaf(new Object[-1 - n]);
        } catch (NegativeArraySizeException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class Pair {
        private final Object left;
        private final Object right;

        Pair(Object left, Object right) {
            Check.that(CallContext.current(), new Throwable());
            this.left = left;
            this.right = right;
        }

        Object right() {
            return right;
        }
    }

    /** Several objects that are not yet constructed lie on the operand stack at once. */
    static void nestedNews(int n) {
        kept = new Pair(new Pair(new Base(n), new Derived(n, n)), new Pair(n > 100 ? new Chain() : new Base(call(n)), new Object[] {new Pair(1, new Base(2))}));
        Check.that(CallContext.current(), new Throwable());
        kept = new String(new char[] {(char) ('a' + n % 26)}) + new StringBuilder(new String("x"));
        Check.that(CallContext.current(), new Throwable());
        for (Object o = new Pair(new byte[n], null); o != null; o = n % 2 == 0 ? null : ((Pair) o).right()) {
            kept = new Pair(o, call(n) == n ? new Base(call(n)) : new Pair(o, o));
            Check.that(CallContext.current(), new Throwable());
        }
    }

    private final int outer;

    private Constructors(int outer) {
        this.outer = outer;
    }

    private class Inner {
        private final int sum;

        private Inner(int n) {
            sum = n + call(outer);
            Check.that(CallContext.current(), new Throwable());
        }

        private class Innermost extends Inner {
            private Innermost() {
                super(call(sum) + new Inner(1).sum);
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    static void inner(int n) {
        Constructors around = new Constructors(n);
        Inner inner = around.new Inner(1);
        Check.equal(n + 1, inner.sum);
        Inner innermost = inner.new Innermost();
        Check.equal(3 * n + 2, innermost.sum);
        Check.that(CallContext.current(), new Throwable());
    }

    static void anonymous(int n) {
        Base made = new Base(call(n)) {
            final Object field = new byte[98];

            {
                Check.that(CallContext.current(), new Throwable());
            }

            @Override
            void overridden() {
                kept = new byte[n];
                Check.that(CallContext.current(), new Throwable());
            }
        };
        made.overridden();
        Check.that(CallContext.current(), new Throwable());
    }
}
