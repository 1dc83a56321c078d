package io.lucce.netty;

/** What tests need of this package. */
public final class TestAccess {
    private TestAccess() {}

    /**
     * Replaces Netty's detector, also without the agent: then no context is known.
     *
     * @return whether it is replaced
     */
    public static boolean replaceDetector() {
        return LucceLeakDetection.replaceDetector();
    }

    /**
     * Gives methods of a class another name.
     *
     * @param classFile the class
     * @param name the methods' name
     * @return the class without methods of this name
     */
    public static byte[] withoutMethod(byte[] classFile, String name) {
        return new ClassFileEdit(classFile).renameMethod(name, "absent").bytes();
    }
}
