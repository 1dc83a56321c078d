package io.lucce.netty.run;

import io.lucce.netty.TestAccess;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Compares Netty's own paranoid records with those of the artifact, in one run: {@code numbers}; {@code excluded}, where contexts
 * have no frames of Netty; {@code traces}, without the agent. Prints {@code OK} and how many leaks there were.
 */
final class NettyRun {
    private static final String DETECTOR = "io/netty/util/ResourceLeakDetector.class";
    /** Methods that versions before 4.1.95 lack, and one that all have. */
    private static final List<String> NEEDED = List.of("needReport", "getInitialHint", "setLeakListener", "reportTracedLeak");

    private NettyRun() {}

    public static void main(String[] args) throws Exception {
        String compared = args[0];
        if (compared.equals("numbers")) {
            for (String method : NEEDED) {
                load(method).apply("refused");
            }
        }
        List<Set<String>> records = new ArrayList<>();
        for (String mode : List.of("netty", compared)) {
            Function<String, List<String>> leaks = load(null);
            // One line: traces of both are equal.
            List<String> found = leaks.apply(mode).stream().map(NettyRun::withoutModules).toList();
            if (found.size() != Set.copyOf(found).size()) {
                throw new IllegalStateException("a leak was reported twice");
            }
            boolean isExcluded = compared.equals("excluded");
            records.add(new TreeSet<>(isExcluded ? found.stream().map(NettyRun::withoutNetty).toList() : found));
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

    /** The different parts of a report without Netty's frames: parts that differ in these alone are one. */
    private static String withoutNetty(String records) {
        Set<String> parts = new LinkedHashSet<>();
        for (String part : records.split("#\\d+:\\R|Created at:\\R")) {
            parts.add(part.lines()
                    .filter(line -> line.startsWith("\t") && !line.startsWith("\tio.netty."))
                    .collect(Collectors.joining("\n")));
        }
        return String.join("\n---\n", parts);
    }

    /** The program with a Netty of its own. {@code lacking}: the method that its detector lacks, or null. */
    @SuppressWarnings("unchecked")
    private static Function<String, List<String>> load(String lacking) throws ReflectiveOperationException {
        Class<?> leaks = Class.forName("io.lucce.netty.run.Leaks", true, new OwnNetty(lacking));
        return (Function<String, List<String>>) leaks.getConstructor().newInstance();
    }

    /** Loads Netty, the artifact and the program anew. */
    private static final class OwnNetty extends ClassLoader {
        private final String lacking;

        OwnNetty(String lacking) {
            super(NettyRun.class.getClassLoader());
            this.lacking = lacking;
        }

        @Override
        public InputStream getResourceAsStream(String name) {
            InputStream file = super.getResourceAsStream(name);
            if (file == null || lacking == null || !name.equals(DETECTOR)) {
                return file;
            }
            try (file) {
                return new ByteArrayInputStream(TestAccess.withoutMethod(file.readAllBytes(), lacking));
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
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
