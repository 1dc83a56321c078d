package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.RecordComponent;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.stream.Stream;

/** Records whose code the library calls: as keys, by reflection, as texts; and what javac and the JDK write for them. */
public final class Records {
    static Object kept;

    private Records() {}

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Repeats.of(15); i++) {
            constructors(i);
            sorted(i);
            hashed(i);
            reflection(i);
            texts(i);
            streams(i);
        }
        Fresh.run(Records.class, "once", Repeats.of(10));
        Check.done();
    }

    static void once() throws Exception {
        constructors(3);
        hashed(3);
        reflection(3);
        texts(3);
    }

    private static void look() {
        kept = new byte[260];
        Check.that(CallContext.current(), new Throwable());
    }

    record Pair(Object left, Object right) {
        Pair {
            look();
        }
    }

    /** A component's value calls in its own methods, which the record's generated ones call. */
    static final class Part {
        private final int number;

        Part(int number) {
            this.number = number;
        }

        @Override
        public boolean equals(Object other) {
            look();
            return other instanceof Part part && part.number == number;
        }

        @Override
        public int hashCode() {
            look();
            return number;
        }

        @Override
        public String toString() {
            look();
            return "part" + number;
        }
    }

    record Key(Part part, int value) implements Comparable<Key> {
        Key {
            if (value < 0) {
                look();
                throw new IllegalArgumentException();
            }
            look();
        }

        Key(int value) {
            this(new Part(value), value);
            look();
        }

        @Override
        public Part part() {
            look();
            return part;
        }

        @Override
        public int compareTo(Key other) {
            look();
            return value - other.value;
        }
    }

    record Text(String text) implements CharSequence {
        @Override
        public int length() {
            look();
            return text.length();
        }

        @Override
        public char charAt(int index) {
            return text.charAt(index);
        }

        @Override
        public CharSequence subSequence(int start, int end) {
            look();
            return new Text(text.substring(start, end));
        }

        @Override
        public String toString() {
            look();
            return text;
        }
    }

    private static void constructors(int n) {
        Pair pair = new Pair(new Pair(new byte[n], n), new Pair(null, new Key(n)));
        Check.equal(n, ((Key) ((Pair) pair.right()).right()).value());
        look();
        try {
            kept = new Pair(n, new Key(-1 - n));
            Check.wrong("must throw");
        } catch (IllegalArgumentException e) {
            look();
        }
    }

    private static void sorted(int n) {
        PriorityQueue<Key> queue = new PriorityQueue<>();
        Map<Key, Object> tree = new TreeMap<>();
        Map<Key, Object> skips = new ConcurrentSkipListMap<>();
        for (int i = 0; i < 6; i++) {
            Key key = new Key((i * 5 + n) % 6);
            queue.add(key);
            tree.put(key, key);
            skips.merge(key, key, (old, now) -> now);
        }
        Check.equal(0, queue.poll().value());
        Check.equal(6, tree.size() + skips.size() - 6);
        look();
    }

    /** hashCode and equals are method handles of `ObjectMethods`. */
    private static void hashed(int n) {
        Map<Object, Object> map = new HashMap<>();
        for (int i = 0; i < 4; i++) {
            map.put(new Key(i), i);
            map.computeIfPresent(new Key(i), (key, old) -> {
                look();
                return new Pair(key, old);
            });
        }
        Check.equal(4, map.size());
        Check.equal(true, new Key(n).equals(new Key(n)));
        Check.equal(true, List.of(new Key(n), new Key(n + 1)).contains(new Key(n + 1)));
        look();
    }

    private static void reflection(int n) throws Exception {
        Constructor<Key> constructor = Key.class.getDeclaredConstructor(Part.class, int.class);
        Key key = constructor.newInstance(new Part(n), n);
        for (RecordComponent component : Key.class.getRecordComponents()) {
            component.getAccessor().setAccessible(true);
            kept = component.getAccessor().invoke(key);
        }
        Check.equal(n, kept);
        try {
            constructor.newInstance(null, -1);
            Check.wrong("must throw");
        } catch (InvocationTargetException e) {
            look();
        }
    }

    private static void texts(int n) {
        Check.equal("Key[part=part" + n + ", value=" + n + "]", new Key(n).toString());
        Check.equal("ab" + n, new StringBuilder("a").append(new Text("b"), 0, 1).append(n).toString());
        Check.equal("x-y", String.join("-", new Text("x"), new Text("y")));
        Check.equal("of Key[part=part1, value=1]", "of " + new Key(1));
        look();
    }

    private static void streams(int n) {
        List<Pair> pairs = Stream.of(3, 1, 2).map(Key::new).sorted().map(key -> new Pair(key, n)).toList();
        Check.equal(3, pairs.size());
        Check.equal(3L, pairs.stream().map(Pair::left).distinct().count());
        look();
    }
}
