package io.lucce.maven;

import io.lucce.agent.build.TestLogs;
import java.io.File;
import java.io.IOException;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.project.MavenProject;

/**
 * Lets the JVM of the tests run under the lucce agent: puts {@code -agentpath:…} in front of the property {@code argLine}, which
 * Surefire and Failsafe read.
 *
 * <p>A project that configures {@code argLine} itself writes {@code @{argLine}} into it. Logs of earlier builds are deleted.
 */
@Mojo(name = "prepare-agent", defaultPhase = LifecyclePhase.INITIALIZE, threadSafe = true)
public class PrepareAgentMojo extends RepositoryMojo {
    @Parameter(defaultValue = "${project}", readonly = true, required = true)
    private MavenProject project;

    /** Kinds of events to record, joined by {@code +}. */
    @Parameter(property = "lucce.events", defaultValue = TestLogs.DEFAULT_EVENTS)
    private String events;

    /** More options of the agent, {@code key=value}, separated by commas. */
    @Parameter(property = "lucce.options")
    private String options;

    /** The folder for logs, one for each JVM. */
    @Parameter(property = "lucce.logs", defaultValue = "${project.build.directory}/lucce")
    private File logs;

    /** The property that gets the JVM's argument. */
    @Parameter(property = "lucce.propertyName", defaultValue = "argLine")
    private String propertyName;

    /** Whether tests run without the agent. */
    @Parameter(property = "lucce.skip", defaultValue = "false")
    private boolean skip;

    /** Creates the goal; Maven sets its parameters. */
    public PrepareAgentMojo() {}

    @Override
    public void execute() throws MojoExecutionException {
        if (skip || project.getPackaging().equals("pom")) {
            return;
        }
        try {
            TestLogs testLogs = new TestLogs(logs.toPath());
            testLogs.clear();
            String argument = quote(testLogs.agentArgument(resolveNatives().library(), events, options));
            String present = project.getProperties().getProperty(propertyName, "");
            project.getProperties().setProperty(propertyName, (argument + " " + present).strip());
            getLog().debug(propertyName + " begins with " + argument);
        } catch (IOException | UnsupportedOperationException e) {
            throw new MojoExecutionException("lucce: " + e.getMessage(), e);
        }
    }

    /** Surefire splits the text at white space outside of quotes. */
    static String quote(String argument) {
        return argument.chars().anyMatch(Character::isWhitespace) ? "\"" + argument + "\"" : argument;
    }
}
