package io.lucce.apps;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.CRC32;

/**
 * Runs an application's work several times and prints for each iteration its wall and process CPU
 * time, a checksum of its result and the bytes that the VM allocated for its threads. The exit code is 1 if two iterations
 * have different results.
 *
 * <p>CPU time is counted from the end of the iteration before: compilers go on while nothing else does.
 *
 * <pre>… [--iterations N] [--size FACTOR] [--threads N] [--turns] [operands]</pre>
 *
 * With {@code --turns} each iteration waits for a line of the standard input, so that several JVMs can take
 * turns; at its end no client waits any more.
 */
final class Driver {
    /** One iteration of an application. */
    interface Work {
        /** Does the work and adds what it computed to the checksum; returns what to print once. */
        String run(CRC32 checksum) throws Exception;
    }

    private int iterations = 5;
    private double size = 1;
    private int threads = 2;
    private boolean turns;
    private final List<String> operands = new ArrayList<>();
    private final String name;

    Driver(String name, String[] args) {
        Locale.setDefault(Locale.ROOT);
        System.setProperty("java.awt.headless", "true");
        this.name = name;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--iterations":
                    iterations = Integer.parseInt(value(args, ++i));
                    break;
                case "--size":
                    size = Double.parseDouble(value(args, ++i));
                    break;
                case "--threads":
                    threads = Integer.parseInt(value(args, ++i));
                    break;
                case "--turns":
                    turns = true;
                    break;
                default:
                    if (args[i].startsWith("--")) {
                        throw usage("unknown option " + args[i]);
                    }
                    operands.add(args[i]);
            }
        }
    }

    private String value(String[] args, int i) {
        if (i == args.length) {
            throw usage("a value is missing after " + args[i - 1]);
        }
        return args[i];
    }

    private Error usage(String what) {
        System.err.println(name + ": " + what);
        System.err.println("usage: " + name + " [--iterations N] [--size FACTOR] [--threads N] [--turns] [operands]");
        System.exit(2);
        return new AssertionError();
    }

    /** The amount of work that is {@code base} at size 1. */
    int scaled(int base) {
        return Math.max(1, (int) Math.round(base * size));
    }

    /** So many of {@code all} as a size below 1 says. */
    int share(int all) {
        return size < 1 ? Math.max(1, (int) Math.round(all * size)) : all;
    }

    int threads() {
        return threads;
    }

    /** The first operand, a directory. */
    Path directory() {
        if (operands.isEmpty()) {
            throw usage("a directory is missing");
        }
        Path directory = Path.of(operands.get(0));
        if (!Files.isDirectory(directory)) {
            throw usage("no directory: " + directory);
        }
        return directory;
    }

    void run(Work work) throws Exception {
        var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        Long first = null;
        long before = system.getProcessCpuTime();
        for (int i = 1; i <= iterations; i++) {
            if (turns) {
                waitForTurn();
            }
            CRC32 checksum = new CRC32();
            long bytes = AllocatedBytes.now();
            long wall = System.nanoTime();
            String what = work.run(checksum);
            wall = System.nanoTime() - wall;
            bytes = AllocatedBytes.now() - bytes;
            long now = system.getProcessCpuTime();
            long cpu = now - before;
            before = now;
            if (i == 1) {
                System.out.println(name + ": " + what);
            }
            System.out.printf("iteration %d: %d ms wall, %d ms cpu, checksum %08x, %d bytes%n",
                    i, wall / 1_000_000, cpu / 1_000_000, checksum.getValue(), bytes);
            if (first != null && first != checksum.getValue()) {
                System.out.println("FAILED the results of two iterations differ");
                System.exit(1);
            }
            first = checksum.getValue();
        }
    }

    private static void waitForTurn() throws IOException {
        int read;
        do {
            read = System.in.read();
        } while (read != '\n' && read >= 0);
    }

    /** Runs the tasks side by side and returns their results in order. */
    <T> List<T> parallel(List<Callable<T>> tasks) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads, AllocatedBytes::newThread);
        try {
            List<T> results = new ArrayList<>();
            for (Future<T> future : pool.invokeAll(tasks)) {
                results.add(future.get());
            }
            return results;
        } catch (ExecutionException e) {
            throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
        } finally {
            pool.shutdown();
        }
    }

    /** The files below a directory whose names end in one of the suffixes, in a fixed order. */
    static List<Path> files(Path directory, String... suffixes) {
        try (Stream<Path> walk = Files.walk(directory)) {
            return walk.filter(Files::isRegularFile)
                    .filter(file -> !built(directory.relativize(file)))
                    .filter(file -> Stream.of(suffixes).anyMatch(file.toString()::endsWith))
                    .sorted()
                    .collect(Collectors.toList());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static boolean built(Path file) {
        for (Path part : file) {
            if (part.toString().equals("target") || part.toString().startsWith(".")) {
                return true;
            }
        }
        return false;
    }

    static void add(CRC32 checksum, long number) {
        for (int shift = 0; shift < 64; shift += 8) {
            checksum.update((int) (number >>> shift) & 0xff);
        }
    }

    static void deleteTree(Path directory) throws IOException {
        try (Stream<Path> walk = Files.walk(directory)) {
            for (Path path : walk.sorted((a, b) -> b.compareTo(a)).collect(Collectors.toList())) {
                Files.delete(path);
            }
        }
    }
}
