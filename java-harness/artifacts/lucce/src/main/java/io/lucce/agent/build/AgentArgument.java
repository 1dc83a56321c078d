package io.lucce.agent.build;

import java.nio.file.Path;

/** The argument with which a JVM that a tool starts records into a log of its own. */
public final class AgentArgument {
    private AgentArgument() {}

    /**
     * Returns the argument. The agent prints warnings only. A percent sign in the folder is no pattern.
     *
     * @param library the agent's library
     * @param folder the folder for logs
     * @param prefix what a log's name begins with; behind it comes the JVM's process id and {@code .lucce}
     * @param events kinds of events, joined by {@code +}
     * @param options more options of the agent, separated by commas; null or empty: none
     * @return {@code -agentpath:…}
     */
    public static String forLogs(Path library, Path folder, String prefix, String events, String options) {
        String log = folder.toString().replace("%", "%%") + "/" + prefix + "%p.lucce";
        String more = options == null || options.isEmpty() ? "" : "," + options;
        return "-agentpath:" + library + "=events=" + events + ",log=warn,out=" + log + more;
    }
}
