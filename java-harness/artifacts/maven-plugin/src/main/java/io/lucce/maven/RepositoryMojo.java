package io.lucce.maven;

import io.lucce.agent.NativeFiles;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import javax.inject.Inject;
import org.apache.maven.plugin.AbstractMojo;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugins.annotations.Parameter;
import org.eclipse.aether.RepositorySystem;
import org.eclipse.aether.RepositorySystemSession;
import org.eclipse.aether.artifact.Artifact;
import org.eclipse.aether.artifact.DefaultArtifact;
import org.eclipse.aether.repository.RemoteRepository;
import org.eclipse.aether.resolution.ArtifactRequest;
import org.eclipse.aether.resolution.ArtifactResolutionException;

/** A goal that gets files from repositories. */
abstract class RepositoryMojo extends AbstractMojo {
    @Inject
    private RepositorySystem repositories;

    @Parameter(defaultValue = "${repositorySystemSession}", readonly = true, required = true)
    private RepositorySystemSession session;

    /** Repositories of plugins: one of them has this one. */
    @Parameter(defaultValue = "${project.remotePluginRepositories}", readonly = true, required = true)
    private List<RemoteRepository> pluginRemotes;

    /** The agent and the command, out of the jar of the system that builds. */
    final NativeFiles resolveNatives() throws IOException, MojoExecutionException {
        String system = NativeFiles.findClassifier();
        Artifact jar = new DefaultArtifact("io.lucce", "lucce", system, "jar", NativeFiles.version());
        return NativeFiles.fromJar(resolveFile(jar, pluginRemotes));
    }

    final Path resolveFile(Artifact artifact, List<RemoteRepository> remotes) throws MojoExecutionException {
        try {
            ArtifactRequest request = new ArtifactRequest(artifact, remotes, null);
            return repositories.resolveArtifact(session, request).getArtifact().getFile().toPath();
        } catch (ArtifactResolutionException e) {
            throw new MojoExecutionException("lucce: no " + artifact + ": " + e.getMessage(), e);
        }
    }
}
