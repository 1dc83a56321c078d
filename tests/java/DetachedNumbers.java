import io.lucce.CallContext;

/** Takes a number, prints {@code working} until the number has no frames, and then whether the agent answers at all. */
public final class DetachedNumbers {
    private DetachedNumbers() {}

    public static void main(String[] args) throws InterruptedException {
        long number = CallContext.current();
        while (CallContext.decode(number).length > 0) {
            System.out.println("working");
            Thread.sleep(20);
        }
        boolean isDetached = CallContext.current() == 0 && CallContext.contentId(number).isEmpty();
        System.out.println(isDetached ? "detached" : "FAILED");
        Thread.sleep(Long.MAX_VALUE);
    }
}
