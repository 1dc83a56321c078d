package jdk.internal.misc;

/**
 * The part that the helper classes are compiled against, with what only JDK 11 has. Not part of the product; see
 * `older_names` in the crate `lucce-instrument` for methods with another name there.
 */
public final class Unsafe {
    private Unsafe() {}

    public static native Unsafe getUnsafe();

    /** JDK 11. */
    public native Class<?> defineAnonymousClass(Class<?> host, byte[] bytes, Object[] patches);

    public native void park(boolean absolute, long time);

    public native void loadFence();

    public native long objectFieldOffset(Class<?> type, String field);

    public native byte getByte(long address);

    public native byte getByte(Object object, long offset);

    public native int getInt(long address);

    public native int getInt(Object object, long offset);

    public native int getIntOpaque(Object object, long offset);

    public native int getIntVolatile(Object object, long offset);

    public native void putInt(long address, int value);

    public native void putInt(Object object, long offset, int value);

    public native void putIntVolatile(Object object, long offset, int value);

    public native boolean compareAndSetInt(Object object, long offset, int expected, int value);

    public native long getLong(long address);

    public native long getLong(Object object, long offset);

    public native long getLongAcquire(Object object, long offset);

    public native long getLongVolatile(Object object, long offset);

    public native void putLong(long address, long value);

    public native void putLong(Object object, long offset, long value);

    public native void putLongRelease(Object object, long offset, long value);

    public native void putLongVolatile(Object object, long offset, long value);

    public native boolean compareAndSetLong(Object object, long offset, long expected, long value);

    public native Object getReference(Object object, long offset);
}
