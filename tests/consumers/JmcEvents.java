import java.io.File;
import java.util.List;
import org.openjdk.jmc.common.IMCFrame;
import org.openjdk.jmc.common.IMCMethod;
import org.openjdk.jmc.common.IMCStackTrace;
import org.openjdk.jmc.common.IMCThread;
import org.openjdk.jmc.common.IMCType;
import org.openjdk.jmc.common.item.IAccessorKey;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemCollection;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.common.item.IType;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;

/**
 * The events of a recording as JDK Mission Control reads it, one a line, between tabs: type, context, count, value (bytes; ticks for
 * what lasts, of which a second has a thousand million), class, thread, frames as `CLASS.METHOD:LINE` with a `;` between them, the innermost first.
 */
class JmcEvents {
    public static void main(String[] args) throws Exception {
        IItemCollection events = JfrLoaderToolkit.loadEvents(new File(args[0]));
        StringBuilder text = new StringBuilder();
        for (IItemIterable items : events) {
            for (IItem item : items) {
                append(text, items.getType(), item);
            }
        }
        System.out.print(text);
    }

    private static void append(StringBuilder text, IType<IItem> type, IItem item) {
        IMCType made = get(type, item, "objectClass");
        IMCType waited = get(type, item, "monitorClass");
        IQuantity weight = get(type, item, "weight");
        IQuantity lasted = get(type, item, "duration");
        IMCThread thread = get(type, item, "eventThread");
        long value = weight != null ? weight.longValue() : lasted != null ? lasted.longValue() : 0;
        IMCType about = made != null ? made : waited;
        text.append(type.getIdentifier());
        IQuantity context = get(type, item, "context");
        Number count = get(type, item, "count");
        text.append('\t').append(Long.toHexString(context.longValue()));
        text.append('\t').append(count.longValue()).append('\t').append(value);
        text.append('\t').append(about == null ? "" : about.getFullName());
        text.append('\t').append(thread == null ? "" : thread.getThreadName()).append('\t');
        IMCStackTrace trace = get(type, item, "stackTrace");
        List<? extends IMCFrame> frames = trace == null ? List.of() : trace.getFrames();
        String between = "";
        for (IMCFrame frame : frames) {
            IMCMethod method = frame.getMethod();
            text.append(between).append(method.getType().getFullName()).append('.').append(method.getMethodName());
            text.append(':').append(frame.getFrameLineNumber());
            between = ";";
        }
        text.append('\n');
    }

    @SuppressWarnings("unchecked")
    private static <T> T get(IType<IItem> type, IItem item, String name) {
        for (IAccessorKey<?> key : type.getAccessorKeys().keySet()) {
            if (key.getIdentifier().equals(name)) {
                IMemberAccessor<?, IItem> accessor = type.getAccessor(key);
                return (T) accessor.getMember(item);
            }
        }
        return null;
    }
}
