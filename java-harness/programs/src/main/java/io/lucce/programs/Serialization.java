package io.lucce.programs;

import io.lucce.CallContext;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Externalizable;
import java.io.IOException;
import java.io.InvalidObjectException;
import java.io.ObjectInput;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectInputValidation;
import java.io.ObjectOutput;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** Serialization, which calls methods and constructors that no class refers to. */
public final class Serialization {
    static Object kept;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Repeats.of(50); i++) {
            objects(i);
            failures();
            Check.that(CallContext.current(), new Throwable());
        }
        Check.done();
    }

    /** Not serializable: its constructor runs while a subclass is read. */
    static class Base {
        transient Object made;

        Base() {
            made = new byte[200];
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static class Node extends Base implements Serializable, ObjectInputValidation {
        private static final long serialVersionUID = 1;
        final int value;
        transient Node next;

        Node(int value, Node next) {
            this.value = value;
            this.next = next;
            Check.that(CallContext.current(), new Throwable());
        }

        private void writeObject(ObjectOutputStream out) throws IOException {
            kept = new byte[201];
            Check.that(CallContext.current(), new Throwable());
            out.defaultWriteObject();
            out.writeObject(next);
            Check.that(CallContext.current(), new Throwable());
        }

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            kept = new byte[202];
            Check.that(CallContext.current(), new Throwable());
            in.defaultReadObject();
            in.registerValidation(this, value);
            next = (Node) in.readObject();
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        public void validateObject() throws InvalidObjectException {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class Replaced implements Serializable {
        private static final long serialVersionUID = 1;
        static final Replaced ONLY = new Replaced();

        private Object writeReplace() {
            Check.that(CallContext.current(), new Throwable());
            return this;
        }

        private Object readResolve() {
            Check.that(CallContext.current(), new Throwable());
            return ONLY;
        }
    }

    public static final class External implements Externalizable {
        private Object content;

        public External() {
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        public void writeExternal(ObjectOutput out) throws IOException {
            Check.that(CallContext.current(), new Throwable());
            out.writeObject(content);
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        public void readExternal(ObjectInput in) throws IOException, ClassNotFoundException {
            Check.that(CallContext.current(), new Throwable());
            content = in.readObject();
            Check.that(CallContext.current(), new Throwable());
        }
    }

    enum Color {
        RED,
        GREEN
    }

    record Point(int x, int y) implements Serializable {
        Point {
            Check.that(CallContext.current(), new Throwable());
            if (x > 1000) {
                throw new IllegalArgumentException("too far");
            }
        }
    }

    static final class Failing implements Serializable {
        private static final long serialVersionUID = 1;
        private final boolean onWrite;

        Failing(boolean onWrite) {
            this.onWrite = onWrite;
        }

        private void writeObject(ObjectOutputStream out) throws IOException {
            out.defaultWriteObject();
            if (onWrite) {
                Check.that(CallContext.current(), new Throwable());
                throw new IOException("on write");
            }
        }

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.defaultReadObject();
            Check.that(CallContext.current(), new Throwable());
            throw new IllegalStateException("on read");
        }
    }

    static byte[] write(Object object) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(object);
        }
        Check.that(CallContext.current(), new Throwable());
        return bytes.toByteArray();
    }

    static Object read(byte[] bytes) throws IOException, ClassNotFoundException {
        try (ObjectInputStream in = new CheckingInput(bytes)) {
            Object read = in.readObject();
            Check.that(CallContext.current(), new Throwable());
            return read;
        }
    }

    private static final class CheckingInput extends ObjectInputStream {
        CheckingInput(byte[] bytes) throws IOException {
            super(new ByteArrayInputStream(bytes));
            setObjectInputFilter(info -> {
                Check.that(CallContext.current(), new Throwable());
                return ObjectInputFilter.Status.ALLOWED;
            });
        }

        @Override
        protected Class<?> resolveClass(ObjectStreamClass description) throws IOException, ClassNotFoundException {
            Check.that(CallContext.current(), new Throwable());
            return super.resolveClass(description);
        }
    }

    static void objects(int n) throws Exception {
        Node list = null;
        for (int i = 0; i < 10; i++) {
            list = new Node(i, list);
        }
        Node read = (Node) read(write(list));
        int sum = 0;
        for (Node node = read; node != null; node = node.next) {
            sum += node.value;
        }
        Check.equal(45, sum);
        Check.equal(true, read(write(Replaced.ONLY)) == Replaced.ONLY);
        External external = new External();
        external.content = List.of(n, new Point(n, 2));
        Check.equal(external.content, ((External) read(write(external))).content);
        Check.equal(Color.GREEN, read(write(Color.GREEN)));
        Check.equal(new Point(3, n), read(write(new Point(3, n))));
        kept = read(write(new ArrayList<>(List.of(new Point(1, 2), "text", new int[] {1, 2}))));
        Check.that(CallContext.current(), new Throwable());
    }

    static void failures() throws Exception {
        try {
            write(new Failing(true));
            Check.wrong("must throw");
        } catch (IOException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        byte[] bytes = write(new Failing(false));
        try {
            read(bytes);
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        try {
            write(new Object[] {new Point(1, 1), new Object()});
            Check.wrong("must throw");
        } catch (java.io.NotSerializableException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }
}
