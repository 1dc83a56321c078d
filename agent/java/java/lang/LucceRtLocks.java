package java.lang;

import static java.lang.LucceRtContexts.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;
import static java.lang.LucceRtCounting.*;

import java.util.concurrent.locks.AbstractOwnableSynchronizer;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of locks: who holds a lock for which another thread waits. See `events/lock_holders` in the agent.
 *
 * <p>While no thread waits, a hook reads one word. A thread that waits publishes the lock's object in `contended`, then its
 * bit. A hook that meets the object reports it together with the turn that it read before. The agent ignores the report if
 * the turn is over.
 */
public final class LucceRtLocks {
    private LucceRtLocks() {}

    /** The locks that threads wait for. The agent stores the array. */
    static Object[] contended;

    /** Offsets of fields of the JDK. Initialized when a thread first parks, or a lock first changes its owner while threads wait. */
    private static final class Fields {
        static final long OWNER =
                Memory.U.objectFieldOffset(AbstractOwnableSynchronizer.class, "exclusiveOwnerThread");
        static final long BLOCKER = Memory.U.objectFieldOffset(Thread.class, "parkBlocker");
    }

    /** The current thread has just acquired the lock. */
    @Hidden @ForceInline
    public static void acquireLock(Object lock, long p, int site) {
        if (LIVE && waits() != 0) reportLock(lock, p, site, false);
    }

    /** The current thread, which holds the lock, releases it next. */
    @Hidden @ForceInline
    public static void releaseLock(Object lock, long p, int site) {
        if (LIVE && waits() != 0) reportLock(lock, p, site, true);
    }

    /** The lock has another owner now. Only the owner changes it, and the lock is still taken. */
    @Hidden @ForceInline
    public static void changeOwner(Object lock, long p, int site) {
        if (LIVE && waits() != 0) reportOwner(lock, p, site);
    }

    @Hidden @DontInline
    private static void reportOwner(Object lock, long p, int site) {
        reportLock(lock, p, site, Memory.U.getReference(lock, Fields.OWNER) == null);
    }

    /** Reports the lock to each wait for it. */
    @Hidden @DontInline
    private static void reportLock(Object lock, long p, int site, boolean isReleased) {
        Object[] locks = contended;
        if (locks == null || lock == null) return;
        long bits = waits();
        for (int slot = 0; bits != 0; slot++, bits >>>= 1) {
            if ((bits & 1) == 0) continue;
            long turn = turnOf(slot);
            if (locks[slot] != lock) continue;
            Thread t = Thread.currentThread();
            if (!hasState(t)) continue;
            if (isReleased) {
                countRelease(t, slot, turn, p, site);
            } else {
                noteAcquired(t.$lucceState, slot, turn);
            }
        }
    }

    @Hidden
    private static void countRelease(Thread t, int slot, long turn, long p, int site) {
        // Out of scope the agent asks the VM for the context.
        long number = site < 0 ? 0 : contextId(t, p, site);
        if (number == 0 && site >= 0) return;
        noteReleased(t.$lucceState, slot, turn, number);
        if (VERIFY && site >= 0) verifyContext(t, number, 0);
    }

    /** Before the current thread parks: returns the slot of its wait for a lock with an owner, plus 1; 0: there is none. */
    @Hidden
    static int startOwnedWait(long p, int site) {
        if (!LIVE || site < 0 || !isCounted(LOCK)) return 0;
        Thread t = Thread.currentThread();
        Object lock = Memory.U.getReference(t, Fields.BLOCKER);
        if (!(lock instanceof AbstractOwnableSynchronizer) || !hasState(t)) return 0;
        if (Memory.U.getReference(lock, Fields.OWNER) == null) return 0;
        long number = contextId(t, p, site);
        return number == 0 ? 0 : beginOwnedWait(t.$lucceState, lock, number);
    }

    /** The wait ends, even if waits are not counted any more. */
    @Hidden
    static void stopOwnedWait(int wait) {
        if (LIVE && wait != 0) endOwnedWait(wait);
    }

    /** Acquire: the object and the turn are read behind the bit. */
    @ForceInline
    private static long waits() {
        return Memory.U.getLongAcquire(null, waitsOffset() + BASE);
    }

    @ForceInline
    private static long turnOf(int slot) {
        return Memory.U.getLongAcquire(null, turnsOffset() + 8L * slot + BASE);
    }

    // Not constants for the Java compiler, which would add them to BASE.

    @ForceInline
    private static long waitsOffset() {
        return -LOCK_WAITS;
    }

    @ForceInline
    private static long turnsOffset() {
        return -LOCK_TURNS;
    }
}
