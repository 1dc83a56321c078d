package io.lucce.netty.run;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;

/** Compares Netty's own paranoid records with those of numbers, in one run. Prints {@code OK} and how many leaks there were. */
final class NettyRun {
    private NettyRun() {}

    public static void main(String[] args) throws Exception {
        List<Set<String>> records = new ArrayList<>();
        for (boolean isOwn : new boolean[] {false, true}) {
            Function<Boolean, List<String>> leaks = load();
            // One line: traces of both are equal.
            List<String> found = leaks.apply(isOwn).stream().map(NettyRun::withoutModules).toList();
            records.add(new TreeSet<>(found));
            if (found.size() != records.get(records.size() - 1).size()) {
                throw new IllegalStateException("a leak was reported twice");
            }
        }
        Set<String> theirs = records.get(0);
        Set<String> own = records.get(1);
        if (theirs.equals(own)) {
            System.out.println("OK " + own.size() + " leaks");
            own.forEach(System.out::println);
            return;
        }
        Set<String> missing = new TreeSet<>(theirs);
        missing.removeAll(own);
        own.removeAll(theirs);
        System.out.println("FAILED\nmissing " + missing.size() + ":\n" + missing + "\nwrong " + own.size() + ":\n" + own);
        System.exit(1);
    }

    /** Frames of contexts name no module. */
    private static String withoutModules(String records) {
        return records.replaceAll("\t[\\w.@]+/", "\t");
    }

    /** The program with a Netty of its own. */
    @SuppressWarnings("unchecked")
    private static Function<Boolean, List<String>> load() throws ReflectiveOperationException {
        Class<?> leaks = Class.forName("io.lucce.netty.run.Leaks", true, new OwnNetty());
        return (Function<Boolean, List<String>>) leaks.getConstructor().newInstance();
    }

    /** Loads Netty, the artifact and the program anew. */
    private static final class OwnNetty extends ClassLoader {
        OwnNetty() {
            super(NettyRun.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("io.netty.") && !name.startsWith("io.lucce.netty.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded != null ? loaded : define(name);
            }
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
                if (in == null) {
                    throw new ClassNotFoundException(name);
                }
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException failure) {
                throw new ClassNotFoundException(name, failure);
            }
        }
    }
}
