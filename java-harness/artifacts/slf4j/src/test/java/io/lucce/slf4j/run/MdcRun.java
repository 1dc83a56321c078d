package io.lucce.slf4j.run;

import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.joran.JoranConfigurator;
import io.lucce.slf4j.LucceMdc;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs lines with numbers of the MDC, and says of each which line of this file has put the number there. */
final class MdcRun {
    private static final String CONFIGURATION = """
        <configuration>
          <appender name="direct" class="ch.qos.logback.core.ConsoleAppender">
            <encoder><pattern>%msg %X{lucce:-0x0}%n</pattern></encoder>
          </appender>
          <root level="info"><appender-ref ref="direct"/></root>
        </configuration>
        """;

    private MdcRun() {}

    public static void main(String[] args) throws Exception {
        LoggerContext context = (LoggerContext) LoggerFactory.getILoggerFactory();
        context.reset();
        JoranConfigurator configurator = new JoranConfigurator();
        configurator.setContext(context);
        configurator.doConfigure(new ByteArrayInputStream(CONFIGURATION.getBytes(StandardCharsets.UTF_8)));
        Logger logger = LoggerFactory.getLogger("mdc");
        logger.info("late before");
        String outer = here(); LucceMdc.Entry first = LucceMdc.open();
        logger.info("direct {}", outer);
        String inner = here(); LucceMdc.Entry second = LucceMdc.open();
        logger.info("direct {}", inner);
        second.close();
        logger.info("direct {}", outer);
        Thread other = new Thread(() -> {
            String place = here(); LucceMdc.Entry third = LucceMdc.open();
            logger.info("direct {}", place);
            third.close();
        }, "another");
        other.start();
        other.join();
        first.close();
        logger.info("late after");
        context.stop();
    }

    /** The line that calls this. */
    private static String here() {
        StackTraceElement caller = new Throwable().getStackTrace()[1];
        return caller.getMethodName() + "=" + caller.getLineNumber();
    }
}
