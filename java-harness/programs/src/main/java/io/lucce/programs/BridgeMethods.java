package io.lucce.programs;

import io.lucce.CallContext;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Iterator;
import java.util.concurrent.Callable;
import java.util.function.Function;

/** Bridges: covariant results, generics, package-private supers made public. */
public final class BridgeMethods {
    static Object kept;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Repeats.of(500); i++) {
            covariant(i);
            generic(i);
            chain(i);
            library(i);
            Check.that(CallContext.current(), new Throwable());
        }
        Check.done();
    }

    static class Animal implements Cloneable {
        Object young() {
            Check.that(CallContext.current(), new Throwable());
            return new byte[160];
        }

        @Override
        protected Animal clone() throws CloneNotSupportedException {
            Check.that(CallContext.current(), new Throwable());
            return (Animal) super.clone();
        }
    }

    static class Cat extends Animal {
        @Override
        String young() {
            kept = super.young();
            Check.that(CallContext.current(), new Throwable());
            return "kitten";
        }

        @Override
        public Cat clone() throws CloneNotSupportedException {
            Check.that(CallContext.current(), new Throwable());
            return (Cat) super.clone();
        }
    }

    static void covariant(int n) throws Exception {
        Animal animal = n % 3 == 0 ? new Animal() : new Cat();
        kept = animal.young();
        Check.that(CallContext.current(), new Throwable());
        Check.equal(animal.getClass(), animal.clone().getClass());
        Check.that(CallContext.current(), new Throwable());
    }

    interface Transform<A, B> {
        B apply(A a);
    }

    abstract static class Step<T extends Number> implements Transform<T, String>, Comparable<Step<T>> {
        @Override
        public int compareTo(Step<T> other) {
            Check.that(CallContext.current(), new Throwable());
            return 0;
        }
    }

    static final class IntStep extends Step<Integer> {
        @Override
        public String apply(Integer n) {
            kept = new byte[161];
            Check.that(CallContext.current(), new Throwable());
            if (n % 7 == 0) {
                throw new IllegalStateException("through a bridge");
            }
            return "n" + n;
        }
    }

    static void generic(int n) {
        Transform<Integer, String> transform = new IntStep();
        try {
            Check.equal("n" + n, transform.apply(n));
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        Comparable<Step<Integer>> step = new IntStep();
        Check.equal(0, step.compareTo(new IntStep()));
        Check.that(CallContext.current(), new Throwable());
        @SuppressWarnings({"unchecked", "rawtypes"})
        Transform<Object, Object> raw = (Transform) transform;
        try {
            raw.apply("no number");
            Check.wrong("must throw");
        } catch (ClassCastException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static class Level0<T> {
        Object get(T t) {
            Check.that(CallContext.current(), new Throwable());
            return t;
        }
    }

    static class Level1<T extends Comparable<T>> extends Level0<T> {
        @Override
        Comparable<T> get(T t) {
            kept = super.get(t);
            Check.that(CallContext.current(), new Throwable());
            return t;
        }
    }

    static class Level2 extends Level1<String> {
        @Override
        String get(String t) {
            kept = super.get(t);
            Check.that(CallContext.current(), new Throwable());
            return t + "!";
        }
    }

    static void chain(int n) {
        Level0<String> level = new Level2();
        Check.equal("x" + n + "!", level.get("x" + n));
        Check.that(CallContext.current(), new Throwable());
    }

    static class Package {
        public Object visible() {
            Check.that(CallContext.current(), new Throwable());
            return new byte[162];
        }
    }

    /** javac gives it a bridge for visible(). */
    public static final class Public extends Package {}

    static void library(int n) throws Exception {
        Integer[] numbers = {3, 1, 2};
        Arrays.sort(numbers, new Comparator<Integer>() {
            @Override
            public int compare(Integer a, Integer b) {
                Check.that(CallContext.current(), new Throwable());
                return a - b;
            }
        });
        Check.equal("[1, 2, 3]", Arrays.toString(numbers));
        kept = new Public().visible();
        Check.that(CallContext.current(), new Throwable());
        Callable<byte[]> callable = new Callable<>() {
            @Override
            public byte[] call() {
                Check.that(CallContext.current(), new Throwable());
                return new byte[163];
            }
        };
        kept = ((Callable<?>) callable).call();
        Iterable<String> iterable = () -> new Iterator<>() {
            private int left = 2;

            @Override
            public boolean hasNext() {
                return left > 0;
            }

            @Override
            public String next() {
                Check.that(CallContext.current(), new Throwable());
                return "item" + left--;
            }
        };
        for (String item : iterable) {
            kept = item;
            Check.that(CallContext.current(), new Throwable());
        }
        Function<Object, String> text = Object::toString;
        kept = text.apply(n);
    }
}
