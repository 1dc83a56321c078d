package io.lucce.agents;

import java.lang.instrument.Instrumentation;
import java.util.List;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;

/**
 * ByteBuddy's advice around each method of {@link Work} and of what it makes, loaded before or after this agent. With the
 * argument {@code once} it is asked for classes that are loaded later, and never again for one.
 */
public final class Advising {
    private static final String[] OF_JDK = {
        "java.util.ArrayDeque", "java.util.concurrent.FutureTask", "sun.nio.ch.FileChannelImpl"
    };

    private Advising() {}

    public static void premain(String argument, Instrumentation instrumentation) {
        boolean once = "once".equals(argument);
        new AgentBuilder.Default()
                .with(once
                        ? AgentBuilder.RedefinitionStrategy.DISABLED
                        : AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
                .disableClassFormatChanges()
                .ignore(ElementMatchers.none())
                .type(ElementMatchers.nameStartsWith("io.lucce.agents.Work")
                        .or(ElementMatchers.nameContains("Proxy").and(
                                ElementMatchers.isSubTypeOf(Work.Service.class)))
                        .or(ElementMatchers.namedOneOf(OF_JDK)))
                .transform((builder, type, loader, module, domain) ->
                        builder.visit(Advice.to(List.of(OF_JDK).contains(type.getName()) ? OfJdk.class : Around.class).on(
                                ElementMatchers.isMethod().and(ElementMatchers.not(ElementMatchers.isAbstract())))))
                .installOn(instrumentation);
    }

    public static void agentmain(String argument, Instrumentation instrumentation) {
        premain(argument, instrumentation);
    }

    /** Calls that allocate, before anything else that the method does and after all of it. */
    public static final class Around {
        private Around() {}

        @Advice.OnMethodEnter
        static String enter() {
            return Long.toString(System.nanoTime()).concat("ns");
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(@Advice.Enter String since) {
            if (since.substring(1).hashCode() == 42) {
                System.out.println(new Object[] {since});
            }
        }
    }

    /** The boot loader knows no class of ours. */
    public static final class OfJdk {
        private OfJdk() {}

        @Advice.OnMethodEnter
        static void enter() {
            Integer.toHexString(1234567).concat("h");
        }
    }
}
