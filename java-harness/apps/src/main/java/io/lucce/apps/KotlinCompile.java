package io.lucce.apps;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32;
import kotlin.Unit;
import org.jetbrains.kotlin.cli.common.ExitCode;
import org.jetbrains.kotlin.cli.jvm.K2JVMCompiler;

/** Compiles generated Kotlin sources with the Kotlin compiler. */
public final class KotlinCompile {
    private final Driver driver;
    /** A source, in the syntax of {@code String.format}; the argument is its number. */
    private final String template;

    private KotlinCompile(Driver driver) throws IOException {
        this.driver = driver;
        try (InputStream in = KotlinCompile.class.getResourceAsStream("workload.kt")) {
            template = new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("KotlinCompile", args);
        driver.run(new KotlinCompile(driver)::iteration);
    }

    private String iteration(CRC32 checksum) throws Exception {
        Path directory = Files.createTempDirectory("kotlin");
        try {
            Path sources = Files.createDirectory(directory.resolve("src"));
            Path classes = Files.createDirectory(directory.resolve("classes"));
            int files = driver.scaled(8);
            for (int i = 0; i < files; i++) {
                Files.writeString(sources.resolve("File" + i + ".kt"), String.format(template, i));
            }
            ByteArrayOutputStream messages = new ByteArrayOutputStream();
            ExitCode code = new K2JVMCompiler().exec(new PrintStream(messages, true, StandardCharsets.UTF_8),
                    "-no-stdlib", "-no-reflect", "-nowarn", "-jvm-target", "17", "-module-name", "generated",
                    "-cp", library(), "-d", classes.toString(), sources.toString());
            if (code != ExitCode.OK) {
                System.out.println(messages.toString(StandardCharsets.UTF_8));
                throw new IllegalStateException("not compiled: " + code);
            }
            var written = Driver.files(classes, ".class");
            for (Path file : written) {
                checksum.update(classes.relativize(file).toString().getBytes(StandardCharsets.UTF_8));
                checksum.update(Files.readAllBytes(file));
            }
            return files + " files compiled to " + written.size() + " classes";
        } finally {
            Driver.deleteTree(directory);
        }
    }

    private static String library() throws Exception {
        return Path.of(Unit.class.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
    }
}
