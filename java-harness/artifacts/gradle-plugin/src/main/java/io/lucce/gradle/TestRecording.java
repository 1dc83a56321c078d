package io.lucce.gradle;

import io.lucce.agent.build.TestLogs;
import java.io.File;
import java.io.IOException;
import java.util.Optional;
import org.gradle.api.Action;
import org.gradle.api.GradleException;
import org.gradle.api.Task;
import org.gradle.api.provider.Property;
import org.gradle.api.tasks.testing.Test;

/** Lets the JVM of a test task record, before the task starts it. */
final class TestRecording implements Action<Task> {
    private final AgentJar agent;
    private final File logs;
    private final Property<String> events;
    private final Property<String> options;

    TestRecording(AgentJar agent, File logs, LucceExtension extension) {
        this.agent = agent;
        this.logs = logs;
        this.events = extension.getEvents();
        this.options = extension.getOptions();
    }

    @Override
    public void execute(Task task) {
        TestLogs testLogs = new TestLogs(logs.toPath());
        try {
            testLogs.clear();
            ((Test) task).jvmArgs(testLogs.agentArgument(agent.unpack().library(), events.get(), options.getOrNull()));
        } catch (IOException | UnsupportedOperationException e) {
            throw new GradleException("lucce: " + e.getMessage(), e);
        }
    }

    /** What the agent records. */
    String describe() {
        return events.get() + "," + Optional.ofNullable(options.getOrNull()).orElse("");
    }
}
