import io.lucce.CallContext;
import io.lucce.agent.LucceAgent;

class App {
    static long inner() {
        return CallContext.current();
    }

    public static void main(String[] args) throws java.io.IOException {
        System.out.println(CallContext.toString(inner()));
        if (!java.nio.file.Files.isRegularFile(LucceAgent.library())) throw new AssertionError();
    }
}
