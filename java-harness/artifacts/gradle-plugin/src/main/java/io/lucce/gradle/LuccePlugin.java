package io.lucce.gradle;

import java.io.File;
import org.gradle.api.Plugin;
import org.gradle.api.Project;
import org.gradle.api.file.FileCollection;
import org.gradle.api.publish.PublishingExtension;
import org.gradle.api.publish.maven.MavenPublication;
import org.gradle.api.publish.maven.tasks.AbstractPublishToMaven;
import org.gradle.api.tasks.testing.Test;

/**
 * The plugin {@code io.lucce}: runs the task {@code test} under the agent, and adds {@code lucceGate} to {@code check}.
 *
 * <p>With the plugin {@code maven-publish}, it adds a publication of the log: {@code NAME-allocations}, type {@code lucce}. That name is
 * not the project's: a project cannot resolve an older version of itself.
 */
public class LuccePlugin implements Plugin<Project> {
    private static final String PUBLICATION = "lucceAllocations";

    /** Creates the plugin; Gradle does. */
    public LuccePlugin() {}

    @Override
    public void apply(Project project) {
        LucceExtension extension = project.getExtensions().create("lucce", LucceExtension.class, project);
        project.getPluginManager().withPlugin("java", java -> addGate(project, extension));
    }

    private static void addGate(Project project, LucceExtension extension) {
        LucceGate gate = project.getTasks().create("lucceGate", LucceGate.class);
        gate.setGroup("verification");
        gate.setDescription("Fails if the tests allocate more than a base did.");
        Test test = (Test) project.getTasks().getByName("test");
        gate.dependsOn(test);
        project.getTasks().getByName("check").dependsOn(gate);
        // The build script has set the values by then.
        project.afterEvaluate(evaluated -> complete(project, extension, test, gate));
    }

    private static void complete(Project project, LucceExtension extension, Test test, LucceGate gate) {
        if (extension.getSkip().get()) {
            gate.setEnabled(false);
            return;
        }
        File reports = project.getLayout().getBuildDirectory().dir("lucce").get().getAsFile();
        File logs = new File(reports, test.getName());
        File log = new File(reports, "allocations.lucce");
        AgentJar agent = AgentJar.findIn(project);
        TestRecording recording = new TestRecording(agent, logs, extension);
        // Tests that have run with other options run again.
        test.getInputs().property("lucce", recording.describe());
        test.getOutputs().dir(logs);
        test.doFirst(recording);
        gate.configure(agent, extension, reports, logs, log, test.getTestClassesDirs());
        gate.compareWith(findBase(project, extension));
        if (project.getPluginManager().hasPlugin("maven-publish")) {
            addPublication(project, gate, log);
        }
    }

    /** The log to compare with; null: none. */
    private static FileCollection findBase(Project project, LucceExtension extension) {
        File file = extension.getBaseFile().getOrNull();
        if (file != null) {
            return project.files(file);
        }
        String version = extension.getBaseVersion().getOrNull();
        if (version == null || version.isEmpty()) {
            return null;
        }
        String base = project.getGroup() + ":" + project.getName() + "-allocations:" + version + "@lucce";
        return project.getConfigurations().detachedConfiguration(project.getDependencies().create(base));
    }

    private static void addPublication(Project project, LucceGate gate, File log) {
        PublishingExtension publishing = project.getExtensions().getByType(PublishingExtension.class);
        publishing.getPublications().create(PUBLICATION, MavenPublication.class, publication -> {
            publication.setArtifactId(project.getName() + "-allocations");
            publication.artifact(log, artifact -> {
                artifact.setExtension("lucce");
                artifact.builtBy(gate);
            });
        });
        // Where no test has recorded, there is no file to publish.
        project.getTasks().withType(AbstractPublishToMaven.class).all(task -> {
            if (task.getName().startsWith("publishLucceAllocationsPublication")) {
                task.onlyIf(any -> log.exists());
            }
        });
    }
}
