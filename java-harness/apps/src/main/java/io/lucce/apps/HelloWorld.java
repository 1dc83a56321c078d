package io.lucce.apps;

/** Nothing but a start. */
public final class HelloWorld {
    private HelloWorld() {}

    public static void main(String[] args) {
        System.out.println("Hello, world");
    }
}
