package io.lucce.agents;

import java.lang.instrument.Instrumentation;

/** A Java agent that uses method handles, which may be before the hooks are live; the program uses the code that is made then. */
public final class Early {
    private Early() {}

    public static void premain(String argument, Instrumentation instrumentation) throws Throwable {
        Work.handles();
    }
}
