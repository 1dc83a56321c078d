package io.lucce.programs;

import io.lucce.CallContext;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;

/** Default, private and static interface methods; super-default calls; diamonds. */
public final class DefaultMethods {
    static Object kept;

    public static void main(String[] args) {
        for (int i = 0; i < Repeats.of(500); i++) {
            calls(i);
            diamonds(i);
            exceptions(i);
            library(i);
            Check.that(CallContext.current(), new Throwable());
        }
        Check.done();
    }

    interface A {
        default Object name() {
            kept = new byte[180];
            Check.that(CallContext.current(), new Throwable());
            return secret(1) + shared(2);
        }

        private String secret(int n) {
            Check.that(CallContext.current(), new Throwable());
            return "A" + n;
        }

        private static String shared(int n) {
            Check.that(CallContext.current(), new Throwable());
            return "a" + n;
        }

        static A create(int n) {
            Check.that(CallContext.current(), new Throwable());
            return n % 2 == 0 ? new A() {} : new OnlyB();
        }
    }

    interface B extends A {
        @Override
        default Object name() {
            Object above = A.super.name();
            Check.that(CallContext.current(), new Throwable());
            return "B" + above;
        }
    }

    interface C extends A {
        @Override
        default Object name() {
            Object above = A.super.name();
            Check.that(CallContext.current(), new Throwable());
            return "C" + above;
        }

        default int fails(int n) {
            if (n == 0) {
                Check.that(CallContext.current(), new Throwable());
                throw new IllegalStateException("in a default method");
            }
            return fails(n - 1);
        }
    }

    static final class OnlyB implements B {}

    static class Both implements B, C {
        @Override
        public Object name() {
            Object left = B.super.name();
            Check.that(CallContext.current(), new Throwable());
            Object right = C.super.name();
            Check.that(CallContext.current(), new Throwable());
            return "" + left + right;
        }
    }

    static final class Lower extends Both {
        @Override
        public Object name() {
            kept = new byte[181];
            return super.name();
        }

        @Override
        public int fails(int n) {
            try {
                return super.fails(n);
            } finally {
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    static void calls(int n) {
        A made = A.create(n);
        Check.equal(n % 2 == 0 ? "A1a2" : "BA1a2", made.name());
        Check.that(CallContext.current(), new Throwable());
    }

    static void diamonds(int n) {
        A made = n % 3 == 0 ? new Lower() : new Both();
        Check.equal("BA1a2CA1a2", made.name());
        Check.that(CallContext.current(), new Throwable());
        C other = new C() {};
        Check.equal("CA1a2", other.name());
        Check.that(CallContext.current(), new Throwable());
    }

    static void exceptions(int n) {
        C made = n % 2 == 0 ? new Lower() : new Both();
        try {
            made.fails(n % 5);
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void library(int n) {
        List<Integer> list = new ArrayList<>(List.of(3, 1, 2));
        Comparator<Integer> order = (a, b) -> {
            Check.that(CallContext.current(), new Throwable());
            return a - b;
        };
        list.sort(order.reversed().thenComparing(Comparator.naturalOrder()));
        Check.equal(List.of(3, 2, 1), list);
        Check.that(CallContext.current(), new Throwable());
        Iterator<Integer> iterator = list.iterator();
        iterator.forEachRemaining(x -> Check.that(CallContext.current(), new Throwable()));
        Collections.unmodifiableList(list).forEach(x -> Check.that(CallContext.current(), new Throwable()));
        list.removeIf(x -> {
            kept = new byte[x];
            Check.that(CallContext.current(), new Throwable());
            return x == n % 4;
        });
    }
}
