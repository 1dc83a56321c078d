package io.lucce.programs;

import io.lucce.CallContext;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A tool attaches and has the VM run Java, more than once: jcmd. */
public final class Attaching {
    private static final String[] COMMANDS = {
        "VM.system_properties", "GC.finalizer_info", "VM.system_properties", "GC.run_finalization",
        "ManagementAgent.status", "JFR.check", "help JFR.start",
    };

    public static void main(String[] args) throws Exception {
        Check.that(CallContext.current(), new Throwable());
        for (String command : COMMANDS) {
            String said = jcmd(command);
            Check.equal(true, said.startsWith(ProcessHandle.current().pid() + ":"));
            Check.that(CallContext.current(), new Throwable());
        }
        Check.done();
    }

    private static String jcmd(String command) throws IOException, InterruptedException {
        List<String> line = new ArrayList<>();
        line.add(Path.of(System.getProperty("java.home"), "bin", "jcmd").toString());
        line.add(Long.toString(ProcessHandle.current().pid()));
        line.addAll(List.of(command.split(" ")));
        ProcessBuilder builder = new ProcessBuilder(line).redirectErrorStream(true);
        builder.environment().remove("JAVA_TOOL_OPTIONS");
        Process process = builder.start();
        String said = new String(process.getInputStream().readAllBytes());
        Check.equal(0, process.waitFor());
        return said;
    }
}
