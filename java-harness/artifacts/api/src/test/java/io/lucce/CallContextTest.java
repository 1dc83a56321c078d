package io.lucce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Constructor;
import java.lang.reflect.Modifier;
import org.junit.jupiter.api.Test;

/** What a program sees that was started without the agent. */
class CallContextTest {
    @Test
    void currentIsZero() {
        assertEquals(0, CallContext.current());
    }

    @Test
    void isNotActive() {
        assertFalse(CallContext.isActive());
    }

    @Test
    void decodeOfAnythingIsEmpty() {
        long[] ids = {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE, CallContext.current()};
        for (long id : ids) {
            assertEquals(0, CallContext.decode(id).length);
        }
    }

    @Test
    void contentIdOfAnythingIsEmpty() {
        for (long id : new long[] {0, 1, -1, CallContext.current()}) {
            assertEquals("", CallContext.contentId(id));
        }
    }

    @Test
    void textsNameNoRun() {
        assertEquals("0x0", CallContext.toString(CallContext.current()));
        assertEquals("0xffffffffffffffff", CallContext.toString(-1));
    }

    @Test
    void activityIsReadOnce() {
        assertFalse(CallContext.isActive());
        System.setProperty("lucce.version", "set too late");
        try {
            assertFalse(CallContext.isActive());
            assertEquals(0, CallContext.decode(1).length);
        } finally {
            System.clearProperty("lucce.version");
        }
    }

    @Test
    void hasNoInstancesAndNoSubclasses() {
        assertTrue(Modifier.isFinal(CallContext.class.getModifiers()));
        Constructor<?>[] constructors = CallContext.class.getDeclaredConstructors();
        assertEquals(1, constructors.length);
        assertTrue(Modifier.isPrivate(constructors[0].getModifiers()));
    }
}
