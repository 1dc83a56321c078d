package io.lucce.log4j2.run;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.ConfigurationSource;
import org.apache.logging.log4j.core.config.Configurator;

/** Logs lines with numbers, and says of each which line of this file has logged it. */
final class Log4jRun {
    private static final String CONFIGURATION = """
        <Configuration status="WARN">
          <Appenders>
            <Console name="direct"><PatternLayout pattern="direct %msg %lucce%n"/></Console>
            <Console name="behind"><PatternLayout pattern="taken %msg %lucce%n"/></Console>
            <Async name="async"><AppenderRef ref="behind"/></Async>
          </Appenders>
          <Loggers>
            <Logger name="direct" level="info" additivity="false"><AppenderRef ref="direct"/></Logger>
            <Logger name="taken" level="info" additivity="false"><AppenderRef ref="async"/></Logger>
            <Root level="error"><AppenderRef ref="direct"/></Root>
          </Loggers>
        </Configuration>
        """;

    private Log4jRun() {}

    public static void main(String[] args) throws Exception {
        byte[] bytes = CONFIGURATION.getBytes(StandardCharsets.UTF_8);
        ConfigurationSource source = new ConfigurationSource(new ByteArrayInputStream(bytes));
        try (LoggerContext context = Configurator.initialize(Log4jRun.class.getClassLoader(), source)) {
            for (String name : new String[] {"direct", "taken"}) {
                Logger logger = context.getLogger(name);
                logger.info(here());
                Thread other = new Thread(() -> logger.info(here()), "another");
                other.start();
                other.join();
            }
        }
        LogManager.shutdown();
    }

    /** The line that calls this. */
    private static String here() {
        StackTraceElement caller = new Throwable().getStackTrace()[1];
        return caller.getMethodName() + "=" + caller.getLineNumber();
    }
}
