package io.lucce.agents;

import java.lang.instrument.Instrumentation;

/** A Java agent that does nothing. */
public final class Empty {
    private Empty() {}

    public static void premain(String argument, Instrumentation instrumentation) {}

    public static void agentmain(String argument, Instrumentation instrumentation) {}
}
