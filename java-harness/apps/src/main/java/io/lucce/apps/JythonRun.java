package io.lucce.apps;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.zip.CRC32;
import org.python.core.Options;
import org.python.core.PyInteger;
import org.python.core.PyObject;
import org.python.core.PySystemState;
import org.python.util.PythonInterpreter;

/** Runs a Python program in Jython, which compiles it to classes at run time. */
public final class JythonRun {
    private final Driver driver;
    private final String program;

    private JythonRun(Driver driver) throws Exception {
        this.driver = driver;
        try (var in = JythonRun.class.getResourceAsStream("workload.py")) {
            program = new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
        Properties properties = new Properties();
        properties.setProperty("python.cachedir.skip", "true");
        properties.setProperty("python.console.encoding", "UTF-8");
        PySystemState.initialize(System.getProperties(), properties);
        Options.importSite = true;
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("JythonRun", args);
        driver.run(new JythonRun(driver)::iteration);
    }

    private String iteration(CRC32 checksum) throws Exception {
        int runs = driver.scaled(6);
        List<Callable<String>> tasks = new ArrayList<>();
        for (int i = 0; i < runs; i++) {
            int n = 4 + i % 3;
            tasks.add(() -> runProgram(n));
        }
        for (String result : driver.parallel(tasks)) {
            checksum.update(result.getBytes(StandardCharsets.UTF_8));
        }
        return runs + " runs of workload.py";
    }

    private String runProgram(int n) {
        try (PythonInterpreter python = new PythonInterpreter(null, new PySystemState())) {
            python.exec(program);
            PyObject run = python.get("run");
            return run.__call__(new PyInteger(n)).toString();
        }
    }
}
