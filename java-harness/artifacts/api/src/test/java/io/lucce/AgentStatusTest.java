package io.lucce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Without the agent. */
class AgentStatusTest {
    @Test
    void nothingIsKnown() {
        assertTrue(AgentStatus.json().isEmpty());
        assertTrue(AgentStatus.lostEvents().isEmpty());
        assertTrue(AgentStatus.openResources().isEmpty());
        assertEquals(List.of(), AgentStatus.allocatedByLine(List.of("com.acme.*")));
    }

    @Test
    void nothingIsCounted() {
        ThreadCounts.Measurement measurement = ThreadCounts.begin();
        assertTrue(measurement.end().isEmpty());
        assertTrue(measurement.end().isEmpty());
        CallContext.requestTag("GET /orders").close();
    }
}
