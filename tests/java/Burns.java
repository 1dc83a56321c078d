import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;

/**
 * Threads that burn a known amount of CPU time: {@code Burns MILLISECONDS FILE}. Some are short-lived. Into the file
 * it writes what all its threads say that they took, in milliseconds.
 */
public final class Burns {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final AtomicLong TAKEN = new AtomicLong();

    public static void main(String[] args) throws InterruptedException, IOException {
        long milliseconds = Long.parseLong(args[0]);
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 2; n++) {
            threads.add(new Thread(() -> burn(milliseconds)));
        }
        for (Thread thread : threads) {
            thread.start();
        }
        for (int n = 0; n < 40; n++) {
            Thread thread = new Thread(() -> burn(milliseconds / 40));
            thread.start();
            thread.join();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long nanoseconds = TAKEN.get() + THREADS.getCurrentThreadCpuTime();
        Files.writeString(Path.of(args[1]), Long.toString(nanoseconds / 1_000_000));
    }

    private static void burn(long milliseconds) {
        long end = milliseconds * 1_000_000;
        int found = 0;
        while (THREADS.getCurrentThreadCpuTime() < end) {
            for (int n = 0; n < 100; n++) {
                found += Pattern.compile("(a|b)*" + n + "[c-f]+").matcher("abab" + n + "cdef").find() ? 1 : 0;
            }
        }
        if (found == 0) {
            throw new AssertionError();
        }
        TAKEN.addAndGet(THREADS.getCurrentThreadCpuTime());
    }
}
