package io.lucce.junit;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs {@link Limited} with JUnit's own launcher and prints how each test ended, sorted by name. */
final class LimitedRun {
    private LimitedRun() {}

    /** Names and ends of all tests, those that are skipped too. */
    static Map<String, String> run(boolean required) {
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
            .selectors(selectClass(Limited.class))
            .configurationParameter("lucce.junit.required", Boolean.toString(required))
            .build();
        Map<String, String> ends = new TreeMap<>();
        Launcher launcher = LauncherFactory.create();
        launcher.execute(request, new TestExecutionListener() {
            @Override
            public void executionSkipped(TestIdentifier test, String reason) {
                ends.put(name(test), "skipped: " + reason);
            }

            @Override
            public void executionFinished(TestIdentifier test, TestExecutionResult result) {
                if (test.isTest()) {
                    String thrown = result.getThrowable().map(Throwable::toString).orElse("");
                    ends.put(name(test), result.getStatus() + " " + thrown);
                }
            }
        });
        return ends;
    }

    private static String name(TestIdentifier test) {
        return test.getLegacyReportingName();
    }

    public static void main(String[] args) {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        run(args.length > 0).forEach((name, end) -> out.println("== " + name + "\n" + end));
    }
}
