package io.lucce.programs;

import io.lucce.CallContext;
import java.util.EnumMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Objects;

/** Records, enums, switches, inner classes, iteration: what javac writes by itself. */
public final class Language {
    static Object kept;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Repeats.of(20); i++) {
            body(i);
        }
        Fresh.run(Language.class, "once", Repeats.of(10));
        Check.done();
    }

    static void once() {
        body(3);
    }

    static void body(int n) {
        records(n);
        enums(n);
        switches(n);
        new Language(n).inner();
        operators(n);
        assertions();
        Check.that(CallContext.current(), new Throwable());
    }

    private final int field;

    private Language(int field) {
        this.field = field;
    }

    static final class Key {
        private final int n;

        Key(int n) {
            this.n = n;
        }

        @Override
        public boolean equals(Object other) {
            Check.that(CallContext.current(), new Throwable());
            return other instanceof Key key && key.n == n;
        }

        @Override
        public int hashCode() {
            Check.that(CallContext.current(), new Throwable());
            return n;
        }

        @Override
        public String toString() {
            kept = new byte[240];
            Check.that(CallContext.current(), new Throwable());
            return "key" + n;
        }
    }

    record Entry(Key key, int value) {
        Entry {
            Objects.requireNonNull(key);
            Check.that(CallContext.current(), new Throwable());
        }

        Entry(int n) {
            this(new Key(n), n);
            Check.that(CallContext.current(), new Throwable());
        }

        static Entry of(int n) {
            Check.that(CallContext.current(), new Throwable());
            return new Entry(n);
        }
    }

    /** equals, hashCode and toString of records are invokedynamic. */
    static void records(int n) {
        Entry entry = Entry.of(n);
        Check.equal(true, entry.equals(new Entry(n)));
        Check.that(CallContext.current(), new Throwable());
        Check.equal(31 * n + n, entry.hashCode());
        Check.that(CallContext.current(), new Throwable());
        Check.equal("Entry[key=key" + n + ", value=" + n + "]", entry.toString());
        Check.that(CallContext.current(), new Throwable());
        try {
            kept = new Entry(null, n);
            Check.wrong("must throw");
        } catch (NullPointerException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    enum Operation {
        PLUS {
            @Override
            int apply(int a, int b) {
                Check.that(CallContext.current(), new Throwable());
                return a + b;
            }
        },
        TIMES(new Key(2)) {
            @Override
            int apply(int a, int b) {
                kept = new byte[241];
                Check.that(CallContext.current(), new Throwable());
                return a * b;
            }
        };

        static {
            Check.that(CallContext.current(), new Throwable());
        }

        final Object held;

        Operation() {
            this(null);
            Check.that(CallContext.current(), new Throwable());
        }

        Operation(Object held) {
            this.held = held;
            Check.that(CallContext.current(), new Throwable());
        }

        abstract int apply(int a, int b);
    }

    static void enums(int n) {
        Map<Operation, Integer> results = new EnumMap<>(Operation.class);
        for (Operation operation : Operation.values()) {
            results.put(operation, operation.apply(n, 3));
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(n + 3, results.get(Operation.valueOf("PLUS")));
        Check.that(CallContext.current(), new Throwable());
        try {
            Operation.valueOf("MINUS");
            Check.wrong("must throw");
        } catch (IllegalArgumentException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void switches(int n) {
        for (Operation operation : Operation.values()) {
            int result = switch (operation) {
                case PLUS -> {
                    kept = new byte[242];
                    Check.that(CallContext.current(), new Throwable());
                    yield 1;
                }
                case TIMES -> table(n);
            };
            Check.that(CallContext.current(), new Throwable());
            Check.equal(true, result > 0);
        }
        for (String text : new String[] {"one", "two", "Aa", "BB", "other"}) {
            switch (text) {
                case "one":
                    Check.that(CallContext.current(), new Throwable());
                    // falls through
                case "two":
                    Check.that(CallContext.current(), new Throwable());
                    break;
                case "Aa":
                    Check.that(CallContext.current(), new Throwable());
                    break;
                case "BB":
                    Check.that(CallContext.current(), new Throwable());
                    break;
                default:
                    Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    static int table(int n) {
        switch (n % 6) {
            case 0, 1:
                kept = new int[1];
                return 1;
            case 2:
                Check.that(CallContext.current(), new Throwable());
                return 2;
            case 3:
                kept = new int[3];
                break;
            default:
                return lookup(n * 1000) + 1;
        }
        Check.that(CallContext.current(), new Throwable());
        return 3;
    }

    static int lookup(int n) {
        return switch (n) {
            case 4000 -> {
                Check.that(CallContext.current(), new Throwable());
                yield 4;
            }
            case 10_000, -5 -> new int[10].length;
            case 1_000_000 -> 6;
            default -> {
                kept = new Object[] {n};
                Check.that(CallContext.current(), new Throwable());
                yield 7;
            }
        };
    }

    private class Inner implements Iterable<Integer> {
        private final int local = field + 1;

        @Override
        public Iterator<Integer> iterator() {
            Check.that(CallContext.current(), new Throwable());
            class Local implements Iterator<Integer> {
                private int left = 3;

                @Override
                public boolean hasNext() {
                    return left > 0;
                }

                @Override
                public Integer next() {
                    kept = new byte[243];
                    Check.that(CallContext.current(), new Throwable());
                    return local + secret(left--);
                }
            }
            return new Local();
        }
    }

    private int secret(int n) {
        Check.that(CallContext.current(), new Throwable());
        return field + n;
    }

    private void inner() {
        int sum = 0;
        for (int value : new Inner()) {
            sum += value;
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(6 * field + 9, sum);
    }

    private static int index(int n) {
        Check.that(CallContext.current(), new Throwable());
        return n;
    }

    static void operators(int n) {
        int[] array = new int[n + 1];
        array[index(n)] += index(2) * index(3);
        Check.equal(6, array[n]);
        long[][] matrix = {{index(1)}, {index(2), index(3)}};
        matrix[index(1)][index(0)]++;
        Check.equal(3L, matrix[1][0]);
        Integer boxed = index(1000);
        boxed++;
        boxed += index(n);
        Check.equal(1001 + n, boxed);
        kept = index(n) > 5 && index(n) < 10 || index(n) == 3 ? new byte[244] : new Object[] {boxed, (Object) array};
        Check.that(CallContext.current(), new Throwable());
        label:
        for (int i = 0; ; i++) {
            do {
                if (i > n) {
                    break label;
                }
                kept = new byte[245];
                i += index(2);
            } while (i % 3 != 0);
        }
        Check.that(CallContext.current(), new Throwable());
    }

    static void assertions() {
        boolean enabled = false;
        assert enabled = index(1) == 1 : "called only with -ea";
        Check.that(CallContext.current(), new Throwable());
    }
}
