import io.lucce.CallContext;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Prints numbers and, below each, the trace of a Throwable made on the same line. */
public final class Known implements Comparable<Known> {
    private static boolean compared;

    public static void main(String[] args) throws Exception {
        show(CallContext.current(), new Throwable());
        new Known().outer(3);
        Known.class.getDeclaredMethod("reflected").invoke(null);
        Collections.sort(new ArrayList<>(List.of(new Known(), new Known())));
        if (args.length > 0) {
            System.exit(Integer.parseInt(args[0]));
        }
    }

    private void outer(int depth) {
        if (depth == 0) {
            show(CallContext.current(), new Throwable());
            return;
        }
        outer(depth - 1);
    }

    static void reflected() {
        show(CallContext.current(), new Throwable());
    }

    @Override
    public int compareTo(Known other) {
        if (!compared) {
            compared = true;
            show(CallContext.current(), new Throwable());
        }
        return 0;
    }

    private static void show(long id, Throwable here) {
        StringBuilder text = new StringBuilder("id=" + CallContext.toString(id));
        for (StackTraceElement frame : here.getStackTrace()) {
            String file = frame.getFileName();
            String place = frame.isNativeMethod() ? "Native Method" : file == null ? "Unknown Source"
                    : frame.getLineNumber() < 0 ? file : file + ":" + frame.getLineNumber();
            text.append("\n\tat ").append(frame.getClassName()).append('.').append(frame.getMethodName())
                    .append('(').append(place).append(')');
        }
        System.out.println(text);
    }
}
