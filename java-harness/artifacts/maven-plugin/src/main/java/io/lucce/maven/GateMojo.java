package io.lucce.maven;

import io.lucce.agent.build.AllocationGate;
import io.lucce.agent.build.LucceCommand;
import io.lucce.agent.build.TestLogs;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import javax.inject.Inject;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugin.MojoFailureException;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.project.MavenProject;
import org.apache.maven.project.MavenProjectHelper;
import org.eclipse.aether.artifact.Artifact;
import org.eclipse.aether.artifact.DefaultArtifact;
import org.eclipse.aether.repository.RemoteRepository;

/**
 * Fails the build if the tests allocate more than a base did, by {@code lucce gate}; and attaches the log of this build to the
 * project, as the base of later ones.
 *
 * <p>The base is the log of another version of the project ({@code baseVersion}), which a repository has, or a file
 * ({@code baseFile}). Without either, nothing is compared. {@code gate.md} and {@code gate.xml} are beside the log.
 */
@Mojo(name = "gate", defaultPhase = LifecyclePhase.VERIFY, threadSafe = true)
public class GateMojo extends RepositoryMojo {
    /** Classifier and type of an attached log. */
    private static final String CLASSIFIER = "allocations";
    private static final String TYPE = "lucce";

    @Inject
    private MavenProjectHelper projectHelper;

    @Parameter(defaultValue = "${project.remoteProjectRepositories}", readonly = true, required = true)
    private List<RemoteRepository> remotes;

    @Parameter(defaultValue = "${project}", readonly = true, required = true)
    private MavenProject project;

    /** The folder with the log of {@code lucce:prepare-agent}; the results are written into it, too. */
    @Parameter(property = "lucce.logs", defaultValue = "${project.build.directory}/lucce")
    private File logs;

    /** The version of this project whose attached log is the base. */
    @Parameter(property = "lucce.baseVersion")
    private String baseVersion;

    /** A log that is the base, in place of an attached one. */
    @Parameter(property = "lucce.baseFile")
    private File baseFile;

    /** Maximum growth, as {@code 3%}. */
    @Parameter(property = "lucce.maxGrowth", defaultValue = AllocationGate.DEFAULT_GROWTH)
    private String maxGrowth;

    /** Judge only what happens in calls of matching methods: a regular expression of {@code package.Class.method}. */
    @Parameter(property = "lucce.through")
    private String through;

    /** Join stack traces without line numbers, which move when sources are edited. */
    @Parameter(property = "lucce.noLines", defaultValue = "true")
    private boolean noLines;

    /** Attach the log to the project: type {@code lucce}, classifier {@code allocations}. */
    @Parameter(property = "lucce.attach", defaultValue = "true")
    private boolean attach;

    /** Whether nothing is judged or attached. */
    @Parameter(property = "lucce.skip", defaultValue = "false")
    private boolean skip;

    /** Creates the goal; Maven sets its parameters. */
    public GateMojo() {}

    @Override
    public void execute() throws MojoExecutionException, MojoFailureException {
        if (skip || project.getPackaging().equals("pom")) {
            return;
        }
        try {
            Path log = findLog();
            if (log == null) {
                getLog().info("lucce: no test ran under the agent");
                return;
            }
            Path base = findBase();
            if (base == null) {
                getLog().info("lucce: nothing to compare with; lucce.baseVersion or lucce.baseFile names a base");
            } else {
                judge(log, base);
            }
            if (attach) {
                projectHelper.attachArtifact(project, TYPE, CLASSIFIER, log.toFile());
            }
        } catch (IOException | UnsupportedOperationException e) {
            throw new MojoExecutionException("lucce: " + e.getMessage(), e);
        }
    }

    /** The log of the one JVM that has run tests; null: there is none, and no base is named or the project has no tests. */
    private Path findLog() throws IOException, MojoExecutionException {
        Path log = new TestLogs(logs.toPath()).findLog().orElse(null);
        boolean hasBase = baseVersion != null || baseFile != null;
        if (log == null && hasBase && TestLogs.hasClasses(List.of(new File(project.getBuild().getTestOutputDirectory())))) {
            throw new MojoExecutionException("lucce: no log in " + logs
                + ": run the tests after lucce:prepare-agent, and write @{argLine} into an argLine of the project's own");
        }
        return log;
    }

    private Path findBase() throws MojoExecutionException {
        if (baseFile != null) {
            return baseFile.toPath();
        }
        if (baseVersion == null || baseVersion.isEmpty()) {
            return null;
        }
        Artifact base = new DefaultArtifact(project.getGroupId(), project.getArtifactId(), CLASSIFIER, TYPE, baseVersion);
        return resolveFile(base, remotes);
    }

    private void judge(Path log, Path base) throws IOException, MojoExecutionException, MojoFailureException {
        LucceCommand lucce = new LucceCommand(resolveNatives().command());
        AllocationGate gate = new AllocationGate(maxGrowth, through, noLines, logs.toPath());
        if (!gate.passes(lucce, log, base, getLog()::info)) {
            throw new MojoFailureException(gate.failure());
        }
    }
}
