package java.lang;

import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of named methods, and of resources, in a JVM that the agent was attached to, where other classes have none: the agent walks the
 * stack. See `session/method_hooks` in the agent.
 */
public final class LucceRtNamed {
    private LucceRtNamed() {}

    /** At the entry of the method with this number; 0 does nothing. Returns what its end hands over; 0: nothing. */
    @Hidden
    public static native long begin(int number);

    @Hidden
    public static native void end(long open);

    /** The method has opened the resource. The numbers mean nothing. */
    @Hidden
    public static native void openResource(Object resource, long p, int site);

    /** The method closes the object, if it is a resource. */
    @Hidden
    public static native void closeResource(Object resource, long p, int site);

    /** The method ends by an exception. */
    @Hidden
    public static native void endThrown(long open);
}
