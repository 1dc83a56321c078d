package java.lang;

/** The agent's functions that hooks call: slow paths. Each does nothing for thread 0: see `bind_natives` in the agent. */
final class LucceRtNatives {
    private LucceRtNatives() {}

    // ---- threads and frames

    /** Gives `t` a record, and a stack unless it has one. */
    static native void addThread(Thread t, long pointer);

    /** Whether a Java method called the method whose hook asks. */
    static native boolean hasCaller();

    /** The VM is initialized; it may not have reported this to the agent yet. */
    static native void onVmInitialized(boolean really);

    static native long enterFromVm(long ts, long p);

    static native long deferVmEntry(long ts, long p);

    static native boolean locateVmEntry(long ts, long slot, long top, int method);

    static native long leaveToVm(long ts, long q);

    static native boolean repairSlots(long ts, long slot, long top, int method);

    /** Called before code without hooks calls. */
    static native void countUntracked(boolean really);

    static native void forgetCode();

    static native void setUnmounting(Thread virtual, boolean really);

    static native byte[] hookHiddenClass(ClassLoader loader, byte[] b, int off, int len);

    // ---- contexts and counters

    static native long rootContext(long ts, int method);

    static native long addTransition(long c, int site, int callee);

    static native long insertCounter(long ts, long c, int site);

    static native void dropEvents(int events);

    static native void compareContext(long ts, long number, int returned);

    static native void makeStreamRoom(long ts, long now);

    // ---- events

    static native long countEventFromVm(String kind, long value);

    static native long currentContextFromVm();

    /** Reports an event of a kind of the event mask: see `HookEvent` in the agent. */
    static native void recordHookEvent(
            long ts, int kind, long number, int site, Object object, long amount, long passed);

    /** A wait for a lock with an owner begins: returns its slot plus 1; 0: it has none. */
    static native int beginOwnedWait(long ts, Object lock, long number);

    /** The wait with this slot plus 1 ends. */
    static native void endOwnedWait(int wait);

    /** The thread acquires the lock of a wait's slot; ignored if the slot has another turn. */
    static native void noteAcquired(long ts, int slot, long turn);

    /** The thread releases the lock of a wait's slot, in this context; 0: the agent asks the VM. */
    static native void noteReleased(long ts, int slot, long turn, long number);

    /** The current thread closes the object, which may be an open resource. */
    static native void closeResource(Object resource);

    /** A method that receives requests begins, in the frame with slot `p`. */
    static native void openRequest(long ts, long number, int site, Object argument, long p);

    /** The method with the open request ends. */
    static native void closeRequest(long ts);

    /** Makes room for one more method in progress. Returns the block's address. */
    static native long growTimes(long ts);

    /** The counter for times with this index in the context; 0: none. */
    static native long addTimeCounter(long ts, long number, int index);

    static native int resolveTrace(long ts, Object thrown, Object trace, long bytes, long text);

    static native long resolveObjectWord(Class<?> type, Object made);

    static native long resolveClassWord(Class<?> type);

    static native long resolveTypedSite(int site, int type);

    // ---- tasks

    static native void submitTask(long ts, Object task, long number);

    static native void rejectTask(Object task);

    /** While allocations are measured (FOLLOW): a thread is started or a task submitted in this context. */
    static native void handTask(Object task, long number, int isPlain);

    /** While allocations are measured (FOLLOW): a task that shows whether it has run is rejected. */
    static native void takeBackTask(Object task);

    /** While allocations are measured (FOLLOW): the frame with slot `p` starts to run a task. */
    static native void beginTask(long ts, Object task, long number, long p);

    /** While allocations are measured (FOLLOW): the frame has finished the task. */
    static native void endTask(long ts, long p);

    static native long taskContext(long ts, Object task, long number, long p, int method);

    /** The frame with slot `p` starts to run a task that was submitted under these tags. */
    static native void beginTaggedTask(long ts, int tags, long p);

    /** The frame has finished the task. */
    static native void endTaggedTask(long ts, long p);

    /** The context of the frame of `method`, which resumes a continuation that keeps this number. */
    static native long resumedContext(long number, int method);

    /** The context of the frame that separates an operator's code from what made it. {@code context}: that of its constructor. */
    static native long assemblyContext(long context, int constructor);

    /** The site of that frame. */
    static native int assemblySite();

    static native long scopeContext(long number, int method);
}
