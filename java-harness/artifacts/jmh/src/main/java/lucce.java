import io.lucce.jmh.LucceProfiler;
import org.openjdk.jmh.profile.ProfilerException;

/**
 * {@link LucceProfiler} under a short name: JMH finds profilers by their whole class names, so {@code -prof lucce} needs a class
 * of this name without a package.
 */
public final class lucce extends LucceProfiler {
    /** Creates the profiler with its default options: JMH loads each profiler so to learn its name. */
    public lucce() {}

    /**
     * Creates the profiler, as JMH does.
     *
     * @param options what stands behind {@code -prof lucce:}
     * @throws ProfilerException if an option is unknown or malformed, or this system has no agent
     */
    public lucce(String options) throws ProfilerException {
        super(options);
    }
}
