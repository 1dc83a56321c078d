package io.lucce.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;

/** Without the agent; the whole-system tests run {@link LimitedRun} with it. */
class AllocatesAtMostTest {
    @Test
    void testsAreSkippedWithAReason() {
        Map<String, String> ends = LimitedRun.run(false);
        assertTrue(ends.size() >= 10, ends::toString);
        String reason = "skipped: @AllocatesAtMost cannot count: the lucce agent is not in this JVM (-agentpath:/path/to/liblucce.so)";
        assertEquals(reason, ends.get("fits()"));
        assertEquals(reason, ends.get("failsByOneByte()"));
        assertTrue(ends.get("countsAPart()").startsWith("ABORTED"), ends::toString);
        assertTrue(ends.values().stream().noneMatch(end -> end.startsWith("FAILED")), ends::toString);
    }

    @Test
    void testsFailWhereTheAgentIsRequired() {
        Map<String, String> ends = LimitedRun.run(true);
        String end = ends.get("fits()");
        assertTrue(end.startsWith("FAILED") && end.contains("the lucce agent is not in this JVM"), ends::toString);
    }
}
