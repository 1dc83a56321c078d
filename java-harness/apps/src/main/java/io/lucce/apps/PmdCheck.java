package io.lucce.apps;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.zip.CRC32;
import net.sourceforge.pmd.PMDConfiguration;
import net.sourceforge.pmd.PmdAnalysis;
import net.sourceforge.pmd.lang.LanguageRegistry;
import net.sourceforge.pmd.reporting.Report;

/** Checks the Java sources below a directory with PMD's quick-start rules. */
public final class PmdCheck {
    private final Driver driver;
    private final Path directory;
    private final List<Path> files;

    private PmdCheck(Driver driver) {
        this.driver = driver;
        directory = driver.directory();
        files = Driver.files(directory, ".java");
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("PmdCheck", args);
        driver.run(new PmdCheck(driver)::iteration);
    }

    private String iteration(CRC32 checksum) {
        PMDConfiguration configuration = new PMDConfiguration();
        configuration.setDefaultLanguageVersion(LanguageRegistry.PMD.getLanguageById("java").getVersion("17"));
        configuration.setThreads(driver.threads());
        configuration.setIgnoreIncrementalAnalysis(true);
        configuration.addRuleSet("rulesets/java/quickstart.xml");
        int checked = Math.min(files.size(), driver.scaled(50));
        try (PmdAnalysis analysis = PmdAnalysis.create(configuration)) {
            files.subList(0, checked).forEach(file -> analysis.files().addFile(file));
            Report report = analysis.performAnalysisAndCollectReport();
            report.getViolations().stream()
                    .map(violation -> violation.getRule().getName() + " " + violation.getFileId().getFileName() + " " + violation.getBeginLine())
                    .sorted()
                    .forEach(line -> checksum.update(line.getBytes(StandardCharsets.UTF_8)));
            return checked + " files, " + report.getViolations().size() + " violations";
        }
    }
}
