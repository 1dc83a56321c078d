import java.io.File;
import java.util.ArrayList;
import java.util.List;

/** Starts as many JVMs at once as it is told, each of which allocates; they inherit its environment. */
public final class Children {
    static Object kept;

    public static void main(String[] args) throws Exception {
        List<Process> children = new ArrayList<>();
        for (int child = 0; child < Integer.parseInt(args[0]); child++) {
            String java = System.getProperty("java.home") + File.separator + "bin" + File.separator + "java";
            String classes = System.getProperty("java.class.path");
            children.add(new ProcessBuilder(java, "-cp", classes, "Children$Child").inheritIO().start());
        }
        for (Process child : children) {
            System.out.println("child ended with " + child.waitFor());
        }
    }

    static final class Child {
        public static void main(String[] args) {
            for (int made = 0; made < 1000; made++) {
                kept = new int[made];
            }
            System.out.println("child of " + ProcessHandle.current().pid());
        }
    }
}
