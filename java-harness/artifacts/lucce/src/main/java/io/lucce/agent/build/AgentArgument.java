package io.lucce.agent.build;

import io.lucce.agent.LucceAgent;
import java.io.IOException;
import java.nio.file.Path;

/** The argument with which a JVM that a tool starts records into a log of its own. */
public final class AgentArgument {
    private AgentArgument() {}

    /**
     * Returns the argument. The agent prints warnings only.
     *
     * @param folder the folder for logs
     * @param prefix what a log's name begins with; behind it comes the JVM's process id and {@code .lucce}
     * @param events kinds of events, joined by {@code +}
     * @param options more options of the agent, separated by commas; null or empty: none
     * @return {@code -agentpath:…}
     * @throws IOException if the agent cannot be unpacked
     * @throws UnsupportedOperationException if there is no agent for this system
     */
    public static String forLogs(Path folder, String prefix, String events, String options) throws IOException {
        return forLogs(LucceAgent.library(), folder, prefix, events, options);
    }

    /** A percent sign in a path of the agent's options is doubled. */
    static String forLogs(Path library, Path folder, String prefix, String events, String options) {
        String log = folder.toString().replace("%", "%%") + "/" + prefix + "%p.lucce";
        String more = options == null || options.isEmpty() ? "" : "," + options;
        return "-agentpath:" + library + "=events=" + events + ",log=warn,out=" + log + more;
    }
}
