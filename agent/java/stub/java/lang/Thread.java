package java.lang;

/**
 * The part of Thread that the helper classes are compiled against. The agent adds the fields to the real class. Not part
 * of the product.
 */
public class Thread implements Runnable {
    /** Slot of the next callee, relative to BASE in `shared_layout.rs`. */
    public long $lucceStack;
    /** Address of the index of this thread's events; 0: none yet. */
    public long $lucceCounters;
    /** Address of the agent's record of this thread; 0: none yet. */
    public long $lucceState;
    /** Until the thread begins: the context id that started it. */
    public long $lucceOrigin;
    /** Until the thread begins: the tags that it begins with. */
    public long $lucceTags;

    public static native Thread currentThread();

    /** Exists only in JDKs with virtual threads. */
    static native Thread currentCarrierThread();

    @Override
    public void run() {}
}
