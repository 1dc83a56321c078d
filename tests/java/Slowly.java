import java.lang.module.ModuleFinder;
import java.util.List;
import java.util.stream.Collectors;

/** Loads classes of the JDK, some each second: a program that takes long to start. */
public final class Slowly {
    private static final int STEPS = 8;
    private static final int EACH = 30;

    private Slowly() {}

    public static void main(String[] args) throws Exception {
        List<String> names;
        try (var base = ModuleFinder.ofSystem().find("java.base").orElseThrow().open()) {
            names = base.list()
                    .filter(name -> name.startsWith("java/time/") || name.startsWith("java/util/concurrent/"))
                    .filter(name -> name.endsWith(".class"))
                    .sorted()
                    .limit(STEPS * EACH)
                    .collect(Collectors.toList());
        }
        int loaded = 0;
        for (String name : names) {
            String className = name.substring(0, name.length() - ".class".length()).replace('/', '.');
            Class.forName(className, false, null);
            if (++loaded % (names.size() / STEPS) == 0) {
                Thread.sleep(1_000);
            }
        }
        System.out.println("loaded " + loaded);
    }
}
