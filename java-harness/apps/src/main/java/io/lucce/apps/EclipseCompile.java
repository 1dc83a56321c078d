package io.lucce.apps;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import org.eclipse.jdt.core.compiler.batch.BatchCompiler;

/** Compiles the Java sources below a directory with Eclipse's compiler. */
public final class EclipseCompile {
    private final Driver driver;
    private final List<Path> files;

    private EclipseCompile(Driver driver) {
        this.driver = driver;
        files = Driver.files(driver.directory(), ".java").stream()
                .filter(file -> !file.endsWith("module-info.java"))
                .collect(Collectors.toList());
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("EclipseCompile", args);
        driver.run(new EclipseCompile(driver)::iteration);
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
        Path target = Files.createTempDirectory("ecj");
        try {
            List<String> arguments = new ArrayList<>(List.of("-proc:none", "-nowarn", "-g", "--release", "17",
                    "-encoding", "UTF-8", "-d", target.toString()));
            files.forEach(file -> arguments.add(file.toString()));
            StringWriter messages = new StringWriter();
            PrintWriter out = new PrintWriter(messages);
            if (!BatchCompiler.compile(arguments.toArray(new String[0]), out, out, null)) {
                System.out.println(messages);
                throw new IllegalStateException("not compiled");
            }
            List<Path> classes = Driver.files(target, ".class");
            for (Path written : classes) {
                checksum.update(target.relativize(written).toString().getBytes(StandardCharsets.UTF_8));
                checksum.update(Files.readAllBytes(written));
            }
            return classes.size();
        } finally {
            Driver.deleteTree(target);
        }
    }
}
