package io.lucce.apps;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Compiles the Java sources below a directory with javac, into memory. If the size is below 1, it compiles that share of
 * them, and finds the other classes on the class path.
 */
public final class JavacCompile {
    private final Driver driver;
    private final List<Path> files;

    private JavacCompile(Driver driver) {
        this.driver = driver;
        List<Path> all = Driver.files(driver.directory(), ".java").stream()
                .filter(file -> !file.endsWith("module-info.java"))
                .collect(Collectors.toList());
        int share = driver.share(all.size());
        // From all packages.
        files = IntStream.range(0, share)
                .mapToObj(at -> all.get((int) ((long) at * all.size() / share)))
                .collect(Collectors.toList());
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("JavacCompile", args);
        driver.run(new JavacCompile(driver)::iteration);
    }

    /** Keeps class files instead of writing them. */
    private static final class Memory extends ForwardingJavaFileManager<StandardJavaFileManager> {
        final Map<String, ByteArrayOutputStream> classes = new TreeMap<>();

        Memory(StandardJavaFileManager files) {
            super(files);
        }

        StandardJavaFileManager files() {
            return fileManager;
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                JavaFileManager.Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
            return new SimpleJavaFileObject(URI.create("memory:///" + name.replace('.', '/') + kind.extension), kind) {
                @Override
                public OutputStream openOutputStream() {
                    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                    synchronized (classes) {
                        classes.put(name, bytes);
                    }
                    return bytes;
                }
            };
        }
    }

    private String iteration(CRC32 checksum) throws Exception {
        int passes = driver.scaled(1);
        int classes = 0;
        for (int pass = 0; pass < passes; pass++) {
            classes = compile(checksum);
        }
        return files.size() + " files compiled to " + classes + " classes, " + passes + " times";
    }

    private int compile(CRC32 checksum) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> diagnostics = new DiagnosticCollector<>();
        try (Memory memory = new Memory(compiler.getStandardFileManager(diagnostics, null, StandardCharsets.UTF_8))) {
            var units = memory.files().getJavaFileObjectsFromPaths(files);
            List<String> options = List.of("-proc:none", "-nowarn", "-g", "--release", "17");
            boolean fine = compiler.getTask(null, memory, diagnostics, options, null, units).call();
            if (!fine) {
                for (Diagnostic<? extends JavaFileObject> diagnostic : diagnostics.getDiagnostics()) {
                    if (diagnostic.getKind() == Diagnostic.Kind.ERROR) {
                        System.out.println(diagnostic);
                    }
                }
                throw new IllegalStateException("not compiled");
            }
            for (Map.Entry<String, ByteArrayOutputStream> written : memory.classes.entrySet()) {
                checksum.update(written.getKey().getBytes(StandardCharsets.UTF_8));
                checksum.update(written.getValue().toByteArray());
            }
            return memory.classes.size();
        }
    }
}
