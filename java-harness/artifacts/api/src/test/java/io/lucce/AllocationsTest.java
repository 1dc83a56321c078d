package io.lucce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Without the agent. */
class AllocationsTest {
    @Test
    void nothingIsCountedAndTheReasonIsSaid() {
        assertTrue(Allocations.unavailable().orElseThrow().contains("agent is not in this JVM"));
        boolean[] ran = {false};
        IllegalStateException thrown =
            assertThrows(IllegalStateException.class, () -> Allocations.of(() -> ran[0] = true));
        assertTrue(thrown.getMessage().contains("agent is not in this JVM"));
        assertFalse(ran[0]);
    }

    @Test
    void typesAreNamedAsInJava() {
        assertEquals("java.lang.String", Allocations.type("Ljava/lang/String;"));
        assertEquals("a.B$C[][]", Allocations.type("[[La/B$C;"));
        assertEquals("long[]", Allocations.type("[J"));
        assertEquals("byte[] (clone)", Allocations.type("[B (clone)"));
        assertEquals("", Allocations.type(""));
    }
}
