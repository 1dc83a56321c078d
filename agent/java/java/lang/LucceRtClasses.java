package java.lang;

import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;

import java.security.ProtectionDomain;
import jdk.internal.misc.Unsafe;
import jdk.internal.misc.VM;
import jdk.internal.vm.annotation.Hidden;

/** Classes that the VM does not report to the agent, or that Java agents change. */
public final class LucceRtClasses {
    private LucceRtClasses() {}

    /** A flag of `ClassLoader.defineClass0`: the VM does not report the class to agents. */
    private static final int HIDDEN_CLASS = 2;

    /**
     * Replaces ClassLoader.defineClass0: hidden classes that call must restore the pointer. Other classes reach the
     * agent.
     */
    @Hidden
    public static Class<?> defineClass0(
            ClassLoader loader, Class<?> lookup, String name, byte[] b, int off, int len,
            ProtectionDomain pd, boolean initialize, int flags, Object classData) {
        // A Java agent that is first on the command line runs before the hooks are live.
        if ((LIVE || VM.isModuleSystemInited()) && (flags & HIDDEN_CLASS) != 0) {
            byte[] hooked = hookHiddenClass(loader, b, off, len);
            if (hooked != null) {
                b = hooked;
                off = 0;
                len = hooked.length;
            }
        }
        return ClassLoader.defineClass0(loader, lookup, name, b, off, len, pd, initialize, flags, classData);
    }

    /** As defineClass0, in place of Unsafe.defineAnonymousClass of JDK 11. {@code patches} are of constants by their index. */
    @Hidden
    public static Class<?> defineAnonymousClass(Unsafe u, Class<?> host, byte[] b, Object[] patches) {
        if ((LIVE || VM.isModuleSystemInited()) && host != null && b != null) {
            byte[] hooked = hookHiddenClass(host.getClassLoader0(), b, 0, b.length);
            if (hooked != null) b = hooked;
        }
        return u.defineAnonymousClass(host, b, patches);
    }

    /**
     * Replaces TransformerManager.transform: Java agents get classes without hooks. See `classes/java_agents` in the
     * agent.
     */
    @Hidden
    public static native byte[] transform(
            Object manager, Module module, ClassLoader loader, String name, Class<?> changed,
            ProtectionDomain domain, byte[] bytes);
}
