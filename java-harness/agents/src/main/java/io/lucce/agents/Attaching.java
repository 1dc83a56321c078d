package io.lucce.agents;

import java.io.File;
import net.bytebuddy.agent.ByteBuddyAgent;

/** Attaches a Java agent to this JVM, as another process would: another process does it. */
final class Attaching {
    private Attaching() {}

    static void attach(String jar) {
        ByteBuddyAgent.attach(new File(jar), Long.toString(ProcessHandle.current().pid()));
    }
}
