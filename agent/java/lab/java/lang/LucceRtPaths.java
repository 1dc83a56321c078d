package java.lang;

import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** With `tracking=cct` and `tracking=paper`, frames have their contexts already: no call path is looked up. */
public final class LucceRtPaths extends LucceRtProductPaths {
    private LucceRtPaths() {}

    @Hidden @ForceInline
    static long findCounter(Thread t, long p, int site) {
        if (TREE || PAPER) return findContextCounter(t, LucceRtComparison.context(t, p, site), site);
        return LucceRtProductPaths.findCounter(t, p, site);
    }
}
