package io.lucce.jmh;

import org.openjdk.jmh.infra.BenchmarkParams;

/**
 * The calls that JMH measures. JMH generates a method for each benchmark whose loop makes just these calls: its name ends with
 * {@link #STUB}. Calls that only keep other threads busy are made elsewhere.
 */
final class MeasuredCalls {
    static final String STUB = "_jmhStub";

    private MeasuredCalls() {}

    /**
     * Returns the pattern of the methods with the measured loops, for {@code lucce report --through}.
     *
     * @param params the benchmark
     * @return a regular expression
     */
    static String pattern(BenchmarkParams params) {
        String target = params.generatedBenchmark();
        String type = target.substring(0, target.lastIndexOf('.'));
        return "^" + type.replaceAll("[.$]", "\\\\$0") + "\\.\\w+" + STUB + "$";
    }
}
