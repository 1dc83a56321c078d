package io.lucce.gradle;

import io.lucce.agent.build.AllocationGate;
import io.lucce.agent.build.LucceCommand;
import io.lucce.agent.build.TestLogs;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import org.gradle.api.DefaultTask;
import org.gradle.api.GradleException;
import org.gradle.api.file.FileCollection;
import org.gradle.api.tasks.TaskAction;

/**
 * Fails the build if the tests allocate more than a base did, by {@code lucce gate}; and keeps the log of this build, as the base of
 * later ones.
 *
 * <p>Without a base, nothing is compared. {@code gate.md} and {@code gate.xml} are in {@code build/lucce}.
 */
public class LucceGate extends DefaultTask {
    private AgentJar agent;
    private LucceExtension extension;
    private File reports;
    private File logs;
    private File baseLog;
    private FileCollection testClasses;
    private FileCollection base;

    /** Creates the task; the plugin sets what it works on. */
    public LucceGate() {}

    /**
     * {@code logs}: of the tests; {@code baseLog}: the file that the log of this build is copied to; {@code testClasses}: folders
     * of compiled tests.
     */
    void configure(AgentJar agent, LucceExtension extension, File reports, File logs, File baseLog, FileCollection testClasses) {
        this.agent = agent;
        this.extension = extension;
        this.reports = reports;
        this.logs = logs;
        this.baseLog = baseLog;
        this.testClasses = testClasses;
    }

    /** The base, one file; null: none. */
    void compareWith(FileCollection base) {
        this.base = base;
    }

    /** Judges the log. Without tests there is none, and no base is looked for: such a project has published none. */
    @TaskAction
    public void judge() {
        try {
            Optional<Path> log = new TestLogs(logs.toPath()).findLog();
            if (log.isPresent()) {
                keepBase();
                Files.deleteIfExists(baseLog.toPath());
                judge(log.get());
                Files.copy(log.get(), baseLog.toPath(), StandardCopyOption.REPLACE_EXISTING);
            } else if (base != null && TestLogs.hasClasses(testClasses)) {
                throw new GradleException("lucce: no log in " + logs + ": no test ran under the agent");
            } else {
                Files.deleteIfExists(baseLog.toPath());
                getLogger().lifecycle("lucce: no test ran under the agent");
            }
        } catch (IOException | UnsupportedOperationException e) {
            throw new GradleException("lucce: " + e.getMessage(), e);
        }
    }

    /** Refuses a base that this build overwrites. */
    private void keepBase() {
        if (base != null && base.getSingleFile().equals(baseLog)) {
            throw new GradleException("lucce: " + baseLog + " is overwritten by this build: copy it, and name the copy as the base");
        }
    }

    private void judge(Path log) throws IOException {
        if (base == null) {
            getLogger().lifecycle("lucce: nothing to compare with; lucce.baseVersion or lucce.baseFile names a base");
            return;
        }
        AllocationGate gate = new AllocationGate(extension.getMaxGrowth().get(), extension.getThrough().getOrNull(),
            extension.getNoLines().get(), reports.toPath());
        LucceCommand lucce = new LucceCommand(agent.unpack().command());
        if (!gate.passes(lucce, log, base.getSingleFile().toPath(), getLogger()::lifecycle)) {
            throw new GradleException(gate.failure());
        }
    }
}
