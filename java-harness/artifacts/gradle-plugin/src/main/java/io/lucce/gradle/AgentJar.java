package io.lucce.gradle;

import io.lucce.agent.NativeFiles;
import java.io.IOException;
import org.gradle.api.Project;
import org.gradle.api.artifacts.Dependency;
import org.gradle.api.file.FileCollection;

/** The jar with the agent and the command of the system that builds. A project resolves it when a task needs it. */
final class AgentJar {
    /** One file; null: there is no jar for this system. */
    private final FileCollection jar;

    private AgentJar(FileCollection jar) {
        this.jar = jar;
    }

    /** In the project's repositories. */
    static AgentJar findIn(Project project) {
        String system;
        try {
            system = NativeFiles.findClassifier();
        } catch (UnsupportedOperationException e) {
            // The task that needs it says so.
            return new AgentJar(null);
        }
        String jar = "io.lucce:lucce:" + NativeFiles.version() + ":" + system + "@jar";
        Dependency dependency = project.getDependencies().create(jar);
        return new AgentJar(project.getConfigurations().detachedConfiguration(dependency));
    }

    /** Throws an UnsupportedOperationException if there is none for this system. */
    NativeFiles unpack() throws IOException {
        NativeFiles.findClassifier();
        return NativeFiles.fromJar(jar.getSingleFile().toPath());
    }
}
