package java.lang;

/**
 * What the helper classes need to know of Thread when it is compiled: the fields are added to the real class
 * by the agent. Never part of the product.
 */
public class Thread implements Runnable {
    /** Where the slot of the method is that is about to be called, relative to BASE of the agent's `shared_layout.rs`. */
    public long $fp;
    /** Address of the index of this thread's events; 0: none yet. */
    public long $ev;
    /** Address of the agent's record of this thread; 0: none yet. */
    public long $ts;
    /** For the recording of calls: who starts this thread. */
    public long $rc;
    /** Until it begins: the number of the context that started it. */
    public long $cx;

    public static native Thread currentThread();

    /** Only where there are virtual threads. */
    static native Thread currentCarrierThread();

    @Override
    public void run() {}
}
