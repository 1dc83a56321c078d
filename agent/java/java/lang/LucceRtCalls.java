package java.lang;

import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtVmEntries.*;

import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** The hooks at entries of methods, if entries are counted; `site` stands for the entry. */
public final class LucceRtCalls {
    private LucceRtCalls() {}

    @Hidden @ForceInline
    public static long enterCounted(int site) {
        long p = enter();
        countEntry(p, site);
        return p;
    }

    @Hidden @ForceInline
    public static long enterFirstCounted(int site) {
        long p = enterFirst();
        countFirstEntry(p, site);
        return p;
    }

    @Hidden @ForceInline
    public static long enterThreadCounted(int site) {
        long p = threadSlot();
        countEntry(p, site);
        return p;
    }

    @Hidden @ForceInline
    public static long enterPremainCounted(int site) {
        long p = enterPremain();
        countEntry(p, site);
        return p;
    }

    @Hidden @ForceInline
    public static long enterVmCounted(int site) {
        long p = enterVm();
        countEntry(p, site);
        return p;
    }
}
