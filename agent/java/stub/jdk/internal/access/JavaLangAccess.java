package jdk.internal.access;

/** The part that the helper classes are compiled against; JDK 21 and later have it. Not part of the product. */
public interface JavaLangAccess {
    void parkVirtualThread();

    void parkVirtualThread(long nanos);
}
