package io.lucce.gradle;

import io.lucce.agent.build.AllocationGate;
import io.lucce.agent.build.TestLogs;
import java.io.File;
import javax.inject.Inject;
import org.gradle.api.Project;
import org.gradle.api.provider.Property;

/**
 * The block {@code lucce} of a build script.
 *
 * <p>Each value begins with the project's property of its name, as {@code -Plucce.maxGrowth=5%}.
 */
public class LucceExtension {
    private final Property<String> events;
    private final Property<String> options;
    private final Property<String> baseVersion;
    private final Property<File> baseFile;
    private final Property<String> maxGrowth;
    private final Property<String> through;
    private final Property<Boolean> noLines;
    private final Property<Boolean> skip;

    /**
     * Creates the block; Gradle does.
     *
     * @param project the project that applies the plugin
     */
    @Inject
    public LucceExtension(Project project) {
        events = readText(project, "events", TestLogs.DEFAULT_EVENTS);
        options = readText(project, "options", null);
        baseVersion = readText(project, "baseVersion", null);
        baseFile = project.getObjects().property(File.class);
        Object file = project.findProperty("lucce.baseFile");
        baseFile.set(file == null ? null : project.file(file));
        maxGrowth = readText(project, "maxGrowth", AllocationGate.DEFAULT_GROWTH);
        through = readText(project, "through", null);
        noLines = readFlag(project, "noLines", true);
        skip = readFlag(project, "skip", false);
    }

    /**
     * Kinds of events to record, joined by {@code +}.
     *
     * @return {@code alloc+thread} by default
     */
    public Property<String> getEvents() {
        return events;
    }

    /**
     * More options of the agent, {@code key=value}, separated by commas.
     *
     * @return none by default
     */
    public Property<String> getOptions() {
        return options;
    }

    /**
     * The version of this project whose published log is the base: {@code GROUP:NAME-allocations:VERSION@lucce}.
     *
     * @return none by default
     */
    public Property<String> getBaseVersion() {
        return baseVersion;
    }

    /**
     * A log that is the base, in place of a published one.
     *
     * @return none by default
     */
    public Property<File> getBaseFile() {
        return baseFile;
    }

    /**
     * Maximum growth.
     *
     * @return {@code 3%} by default
     */
    public Property<String> getMaxGrowth() {
        return maxGrowth;
    }

    /**
     * Judge only what happens in calls of matching methods: a regular expression of {@code package.Class.method}.
     *
     * @return none by default
     */
    public Property<String> getThrough() {
        return through;
    }

    /**
     * Join stack traces without line numbers, which move when sources are edited.
     *
     * @return true by default
     */
    public Property<Boolean> getNoLines() {
        return noLines;
    }

    /**
     * Whether tests run without the agent, and nothing is judged or published.
     *
     * @return false by default
     */
    public Property<Boolean> getSkip() {
        return skip;
    }

    private static Property<String> readText(Project project, String name, String otherwise) {
        Property<String> property = project.getObjects().property(String.class);
        Object value = project.findProperty("lucce." + name);
        property.set(value == null ? otherwise : value.toString());
        return property;
    }

    private static Property<Boolean> readFlag(Project project, String name, boolean otherwise) {
        Property<Boolean> property = project.getObjects().property(Boolean.class);
        Object value = project.findProperty("lucce." + name);
        property.set(value == null ? otherwise : Boolean.parseBoolean(value.toString()));
        return property;
    }
}
