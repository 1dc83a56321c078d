package java.lang;

/**
 * What LucceRt needs to know of Thread when it is compiled: the fields are added to the real class
 * by the agent. Never part of the product.
 */
public class Thread implements Runnable {
    /** Address of the next free slot of the shadow stack; 0: none yet. */
    public long $fp;
    /** Address of the index of this thread's events; 0: none yet. */
    public long $ev;
    /** Address of the agent's record of this thread; 0: none yet. */
    public long $ts;
    /** Slot of the innermost frame that the VM entered by itself. */
    public long $vm;

    public static native Thread currentThread();

    @Override
    public void run() {}
}
