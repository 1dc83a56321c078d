package jdk.internal.access;

/** What the helper classes need of it when it is compiled; JDK 21 and later have it. Never part of the product. */
public interface JavaLangAccess {
    void parkVirtualThread();

    void parkVirtualThread(long nanos);
}
