/** A class of the boot loader without its native method: the VM asks the linker for it at each call. */
public class BootNatives {
    static native void missing();

    public static boolean isMissing() {
        try {
            missing();
            return false;
        } catch (UnsatisfiedLinkError e) {
            return true;
        }
    }
}
