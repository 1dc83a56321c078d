package io.lucce.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.lucce.Allocations;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests whose allocations are known beforehand. {@link LimitedRun} runs them, and says which must fail. */
@Tag("limited")
@TestMethodOrder(MethodOrderer.MethodName.class)
class Limited {
    static Object sink;

    /** Not counted: it is not in the test method. */
    @BeforeEach
    @AfterEach
    void around() {
        sink = new byte[100_000];
    }

    /** 16 bytes of header, 100 bytes, filled up to a multiple of 8. */
    static void make(int arrays) {
        for (int i = 0; i < arrays; i++) {
            sink = new byte[100];
        }
    }

    @Test
    @AllocatesAtMost(bytes = 360, objects = 3)
    void fits() {
        make(3);
    }

    @Test
    @AllocatesAtMost(bytes = 359)
    void failsByOneByte() {
        make(3);
    }

    @Test
    @AllocatesAtMost(objects = 2)
    void failsByOneObject() {
        make(3);
    }

    @Test
    @AllocatesAtMost(bytes = 1, objects = 1)
    void failsByBoth() {
        sink = new Node(new int[2]);
    }

    record Node(int[] numbers) {}

    @Test
    @AllocatesAtMost(bytes = -1)
    void failsForALimitBelowNothing() {}

    @Test
    @AllocatesAtMost(objects = 0, warmUps = -1)
    void failsForFewerWarmUpsThanNone() {}

    @Test
    @AllocatesAtMost(objects = 0)
    void allocatesNothing() {
        sink = null;
    }

    /** The VM counts the arrays, and little else in this thread. */
    @Test
    @AllocatesAtMost(heapBytes = 1_100_000, warmUps = 1)
    void fitsTheHeap() {
        make(8_000);
    }

    @Test
    @AllocatesAtMost(heapBytes = 959_999, warmUps = 1)
    void failsByTheHeap() {
        make(8_000);
    }

    private static Object once;

    /** The first call makes what the second one finds. */
    @Test
    @AllocatesAtMost(objects = 0, warmUps = 1)
    void fitsBehindAWarmUp() {
        if (once == null) {
            once = new Object();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    @AllocatesAtMost(objects = 2)
    void failsForThree(int arrays) {
        make(arrays);
    }

    /** The test's own thread alone. */
    @Test
    @AllocatesAtMost(objects = 100_000, tasks = false)
    void fitsBesideAnotherThread() throws InterruptedException {
        other();
    }

    /** What the test starts is in it, or it is said that it may not be. */
    @Test
    @AllocatesAtMost(objects = 100_000)
    void failsByAnotherThread() throws InterruptedException {
        other();
    }

    private static void other() throws InterruptedException {
        Thread other = new Thread(() -> {
            List<Object> all = new ArrayList<>();
            for (int i = 0; i < 1_000_000; i++) {
                all.add(new Object());
            }
            sink = all;
        });
        other.start();
        other.join();
    }

    @Test
    @AllocatesAtMost
    void failsWithoutALimit() {}

    @Test
    @AllocatesAtMost(bytes = 0)
    void failsForAReasonOfItsOwn() {
        throw new IllegalStateException("its own");
    }

    /** The class's limit holds, unless a method has its own. */
    @Nested
    @AllocatesAtMost(objects = 1)
    class OfAClass {
        @Test
        void fitsItsClass() {
            make(1);
        }

        @Test
        void failsByItsClass() {
            make(2);
        }

        @Test
        @AllocatesAtMost(objects = 5)
        void fitsItsOwn() {
            make(5);
        }
    }

    /** Without an annotation. */
    @Test
    void countsAPart() {
        if (Allocations.unavailable().isPresent()) {
            org.junit.jupiter.api.Assumptions.abort(Allocations.unavailable().get());
        }
        for (int round = 0; round < 3; round++) {
            Allocations found = Allocations.of(() -> make(7));
            assertEquals(7, found.objects());
            assertEquals(7 * 120, found.bytes());
            assertEquals(1, found.places().size());
            Allocations.Place place = found.places().get(0);
            assertEquals("byte[]", place.type());
            assertEquals("make", place.trace().get(0).getMethodName());
            // And no frame of JUnit's.
            assertEquals("io.lucce.junit.Limited", place.trace().get(place.trace().size() - 1).getClassName());
        }
        // One within the other, and what is thrown passes through.
        Allocations outer = Allocations.of(() -> {
            make(1);
            assertEquals(2, Allocations.of(() -> make(2)).through(Limited.class, "make").objects());
        });
        assertEquals(3, outer.through(Limited.class, "make").objects());
        RuntimeException thrown = null;
        try {
            Allocations.of(() -> {
                throw new IllegalStateException("passes");
            });
        } catch (IllegalStateException e) {
            thrown = e;
        }
        assertEquals("passes", thrown.getMessage());
    }
}
