package io.lucce.jmh;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.openjdk.jmh.profile.ProfilerException;
import org.openjdk.jmh.results.Result;

/** Reports as the command prints them: one line of own code with two types, and one whose objects the compiler removed. */
class KindReportTest {
    private static final String STUB = frame("com.acme.jmh_generated.B_b_jmhTest", "b_thrpt_jmhStub", "B_b_jmhTest.java", 99, true);
    private static final String INNER = frame("java.lang.String", "concat", "String.java", 7, false);
    private static final String CONCAT = frame("com.acme.B", "b", "B.java", 12, true);
    private static final String POINT = frame("com.acme.B", "point", "B.java", 20, true);

    @Test
    void sumsByOwnLine() {
        KindReport report = KindReport.parse(allocations(), 100);
        assertEquals(List.of("lucce.alloc.norm 88.0 B/op", "lucce.objects.norm 3.0 #/op", "lucce.heap.norm 64.5 B/op"),
            report.results().stream().map(KindReportTest::describe).toList());
        StringBuilder text = new StringBuilder();
        report.write(text, 50, 1);
        assertEquals("""
            alloc: 88.000 B in 3.000 objects; on the heap 64.500 B ±10.0%
              outside of the measured calls (other threads, JMH itself): 0.500 B
              #1 72.73%  64.000 B in 2.000 objects: byte[] and 1 more type; on the heap 64.500 B
            \tat java.lang.String.concat(String.java:7)
            \tat com.acme.B.b(B.java:12)
              lines that are not shown: 1 (top=0 shows all)
            """, text.toString());
        text.setLength(0);
        report.write(text, 0, 0);
        assertTrue(text.toString().endsWith("""
              #2 27.27%  24.000 B in 1.000 objects: com.acme.Point; removed by the compiler
            \tat com.acme.B.point(B.java:20)
            """), text.toString());
        assertEquals("", report.gaps());
    }

    @Test
    void countsEventsWithoutValues() {
        String json = report("exception", "", "[" + context("java.lang.Error", 5, 0, "", CONCAT) + "]", 5, 0, "", 3);
        KindReport report = KindReport.parse(json, 10);
        assertEquals(List.of("lucce.exception.norm 0.5 #/op"), report.results().stream().map(KindReportTest::describe).toList());
        StringBuilder text = new StringBuilder();
        report.write(text, 0, 3);
        assertTrue(text.toString().startsWith("exception: 0.500 events\n  #1 100.00%  0.500 events: java.lang.Error\n"),
            text.toString());
        assertEquals("3 events were dropped", report.gaps());
    }

    @Test
    void takesTheLongestName() throws Exception {
        BenchmarkLimits limits = BenchmarkLimits.parse("Parser.parse:120+24");
        assertEquals(120, limits.limitOf("com.acme.Parser.parse").getAsDouble());
        assertEquals(24, limits.limitOf("com.acme.OtherParser.parse").getAsDouble());
        assertTrue(BenchmarkLimits.parse("a.b:1").limitOf("c.d").isEmpty());
        assertFalse(BenchmarkLimits.isExceeded(24.004, 24));
        assertTrue(BenchmarkLimits.isExceeded(24.006, 24));
    }

    @Test
    void refusesOptions() {
        for (String wrong : List.of("tops=3", "top", "top=x", "limit=few", "limit=-1", "limit=NaN", "events=lock;limit=3",
                "events=alloc=64k;limit=3")) {
            assertThrows(ProfilerException.class, () -> ProfilerOptions.parse(wrong), wrong);
        }
    }

    private static String describe(Result<?> result) {
        return result.getLabel() + " " + result.getScore() + " " + result.getScoreUnit();
    }

    private static String allocations() {
        String contexts = String.join(",",
            context("byte[]", 100, 4000, heap(4050, false), INNER + "," + CONCAT),
            context("java.lang.String", 100, 2400, heap(2400, false), CONCAT),
            context("com.acme.Point", 100, 2400, heap(0, true), POINT));
        return report("alloc", "bytes", "[" + contexts + "]", 300, 8800, ",\"heap\":{\"bytes\":6450,\"error_bytes\":645}", 0);
    }

    private static String report(String kind, String unit, String contexts, long count, long value, String heap, long lost) {
        return """
            {"schema":"lucce-report","version":1,"event":"%s","unit":"%s","others":{},"totals":{"count":%d,"value":%d},
            "lost":%d,"damage":null,"contexts":%s%s}""".formatted(kind, unit, count, value, lost, contexts, heap);
    }

    private static String context(String type, long count, long value, String heap, String frames) {
        return "{\"class\":\"%s\",\"count\":%d,\"value\":%d%s,\"frames\":[%s,%s]}"
            .formatted(type, count, value, heap, frames, STUB);
    }

    private static String heap(long bytes, boolean removed) {
        return ",\"heap\":{\"bytes\":%d,\"removed\":%b}".formatted(bytes, removed);
    }

    private static String frame(String type, String method, String file, int line, boolean own) {
        return "{\"class\":\"%s\",\"method\":\"%s\",\"file\":\"%s\",\"line\":%d%s}"
            .formatted(type, method, file, line, own ? ",\"own\":true" : "");
    }
}
