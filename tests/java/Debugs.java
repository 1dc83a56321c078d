import com.sun.jdi.Bootstrap;
import com.sun.jdi.IntegerValue;
import com.sun.jdi.Location;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StackFrame;
import com.sun.jdi.StringReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.LaunchingConnector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.VMDeathEvent;
import com.sun.jdi.event.VMDisconnectEvent;
import com.sun.jdi.request.ClassPrepareRequest;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * A debugger: starts a JVM ({@code HOME 'OPTION …' 'MAIN ARGUMENT …'}) and does what {@link Popped} asks for, or what
 * {@link GainsHooks} does: gives a class the code of a file. Ends as that JVM does.
 */
public final class Debugs {
    private static VirtualMachine vm;
    private static boolean hasCalledAgain;

    public static void main(String[] args) throws Exception {
        LaunchingConnector connector = Bootstrap.virtualMachineManager().defaultConnector();
        Map<String, Connector.Argument> arguments = connector.defaultArguments();
        arguments.get("home").setValue(args[0]);
        arguments.get("options").setValue(args[1]);
        arguments.get("main").setValue(args[2]);
        vm = connector.launch(arguments);
        Process process = vm.process();
        Thread out = copy(process.getInputStream(), System.out);
        Thread err = copy(process.getErrorStream(), System.err);
        for (String name : List.of("Popped", "Popped$Returned", "GainsHooks")) {
            ClassPrepareRequest request = vm.eventRequestManager().createClassPrepareRequest();
            request.addClassFilter(name);
            request.enable();
        }
        debug();
        int code = process.waitFor();
        out.join();
        err.join();
        System.exit(code);
    }

    private static Thread copy(InputStream from, OutputStream to) {
        Thread thread = new Thread(() -> {
            try {
                from.transferTo(to);
                to.flush();
            } catch (IOException e) {
                e.printStackTrace();
            }
        });
        thread.start();
        return thread;
    }

    private static void debug() throws Exception {
        while (true) {
            EventSet events = vm.eventQueue().remove();
            for (Event event : events) {
                if (event instanceof VMDeathEvent || event instanceof VMDisconnectEvent) {
                    events.resume();
                    return;
                }
                if (event instanceof ClassPrepareEvent prepared) {
                    prepared(prepared.referenceType());
                } else if (event instanceof BreakpointEvent reached) {
                    reached(reached.thread(), reached.location());
                }
            }
            events.resume();
        }
    }

    private static void prepared(ReferenceType type) throws Exception {
        switch (type.name()) {
            case "Popped", "GainsHooks" -> stopAt(type.methodsByName("stop").get(0).location());
            default -> {
                List<Location> lines = type.methodsByName("<clinit>").get(0).allLineLocations();
                stopAt(lines.get(lines.size() - 2));
            }
        }
    }

    private static void stopAt(Location location) {
        vm.eventRequestManager().createBreakpointRequest(location).enable();
    }

    private static void reached(ThreadReference thread, Location location) throws Exception {
        StackFrame top = thread.frame(0);
        if (location.method().name().equals("<clinit>")) {
            thread.forceEarlyReturn(vm.mirrorOfVoid());
            return;
        }
        if (location.declaringType().name().equals("GainsHooks")) {
            String file = ((StringReference) top.getArgumentValues().get(0)).value();
            ReferenceType changed = vm.classesByName("GainsHooks$Code").get(0);
            vm.redefineClasses(Map.of(changed, Files.readAllBytes(Path.of(file))));
            return;
        }
        int what = ((IntegerValue) top.getArgumentValues().get(0)).value();
        if (what < 0) {
            thread.forceEarlyReturn(vm.mirrorOfVoid());
        } else if (what > 1 || !hasCalledAgain) {
            // Called again, this very method comes here again.
            hasCalledAgain |= what == 1;
            thread.popFrames(thread.frame(what - 1));
        }
    }
}
