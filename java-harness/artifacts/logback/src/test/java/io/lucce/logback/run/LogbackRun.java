package io.lucce.logback.run;

import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.joran.JoranConfigurator;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs lines with numbers, and says of each which line of this file has logged it. */
final class LogbackRun {
    private static final String CONFIGURATION = """
        <configuration>
          <conversionRule conversionWord="lucce" class="io.lucce.logback.LucceConverter"/>
          <appender name="direct" class="ch.qos.logback.core.ConsoleAppender">
            <encoder><pattern>direct %msg %lucce%n</pattern></encoder>
          </appender>
          <appender name="late" class="ch.qos.logback.core.ConsoleAppender">
            <encoder><pattern>late %msg %lucce%n</pattern></encoder>
          </appender>
          <appender name="taken" class="ch.qos.logback.core.ConsoleAppender">
            <encoder><pattern>taken %msg %lucce%n</pattern></encoder>
          </appender>
          <appender name="async" class="ch.qos.logback.classic.AsyncAppender"><appender-ref ref="late"/></appender>
          <appender name="own" class="io.lucce.logback.LucceAsyncAppender"><appender-ref ref="taken"/></appender>
          <logger name="direct" level="info"><appender-ref ref="direct"/></logger>
          <logger name="late" level="info"><appender-ref ref="async"/></logger>
          <logger name="taken" level="info"><appender-ref ref="own"/></logger>
        </configuration>
        """;

    private LogbackRun() {}

    public static void main(String[] args) throws Exception {
        LoggerContext context = (LoggerContext) LoggerFactory.getILoggerFactory();
        context.reset();
        JoranConfigurator configurator = new JoranConfigurator();
        configurator.setContext(context);
        configurator.doConfigure(new ByteArrayInputStream(CONFIGURATION.getBytes(StandardCharsets.UTF_8)));
        for (String name : new String[] {"direct", "late", "taken"}) {
            Logger logger = LoggerFactory.getLogger(name);
            logger.info(here());
            new Thread(() -> logger.info(here()), "another").start();
        }
        // Waits for what is written in other threads.
        Thread.sleep(200);
        context.stop();
    }

    /** The line that calls this. */
    private static String here() {
        StackTraceElement caller = new Throwable().getStackTrace()[1];
        return caller.getMethodName() + "=" + caller.getLineNumber();
    }
}
