package io.lucce.spring.boot;

import io.lucce.AgentStatus;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.json.JsonParserFactory;

/**
 * {@code /actuator/lucce}: the agent's state and statistics, as {@code lucce ctl PID status --json} prints them.
 * {@code /actuator/lucce/explain}: what the program does wastefully, as {@code lucce explain --json} prints it.
 *
 * <p>The answers name files, classes and lines of the program. The second one runs the command {@code lucce} on the log of the
 * running agent, one at a time.
 */
@Endpoint(id = "lucce", defaultAccess = Access.NONE)
public class LucceEndpoint {
    /** How long the command may take. */
    private static final long MOST_SECONDS = 120;

    private final String command;
    private final ReentrantLock running = new ReentrantLock();

    /**
     * Makes an endpoint.
     *
     * @param command the command {@code lucce}: a path, or a name on {@code PATH}
     */
    public LucceEndpoint(String command) {
        this.command = command;
    }

    /**
     * Answers with the agent's state.
     *
     * @return the status; 503 without the agent
     */
    @ReadOperation
    public WebEndpointResponse<Map<String, Object>> status() {
        return AgentStatus.json().map(text -> new WebEndpointResponse<>(parse(text))).orElseGet(LucceEndpoint::absent);
    }

    /**
     * Answers with what the program does wastefully.
     *
     * @param part {@code explain}
     * @return the findings; 404 for another part, 409 while the command runs for another client, 503 without the agent or the
     *     command
     */
    @ReadOperation
    public WebEndpointResponse<Map<String, Object>> explain(@Selector String part) {
        if (!part.equals("explain")) {
            return failed(WebEndpointResponse.STATUS_NOT_FOUND, "there is explain");
        }
        Optional<String> status = AgentStatus.json();
        if (status.isEmpty()) {
            return absent();
        }
        if (!running.tryLock()) {
            return failed(409, "lucce explain runs already");
        }
        try {
            return explained(parse(status.get()));
        } finally {
            running.unlock();
        }
    }

    private WebEndpointResponse<Map<String, Object>> explained(Map<String, Object> status) {
        if (!(status.get("log") instanceof Map<?, ?> log) || !(log.get("file") instanceof String file)) {
            return failed(WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE, "the agent does not say where its log is");
        }
        Process process;
        try {
            ProcessBuilder builder = new ProcessBuilder(command, "explain", "--json", file);
            process = builder.redirectError(ProcessBuilder.Redirect.DISCARD).start();
            process.getOutputStream().close();
        } catch (IOException e) {
            return failed(WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE, "the property lucce.command names no command: " + e.getMessage());
        }
        try {
            process.onExit().orTimeout(MOST_SECONDS, TimeUnit.SECONDS).exceptionally(late -> process.destroyForcibly());
            String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            int code = process.waitFor();
            if (code != 0) {
                return failed(WebEndpointResponse.STATUS_INTERNAL_SERVER_ERROR, "lucce explain has ended with " + code);
            }
            return new WebEndpointResponse<>(parse(text));
        } catch (IOException e) {
            return failed(WebEndpointResponse.STATUS_INTERNAL_SERVER_ERROR, "lucce explain: " + e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return failed(WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE, "interrupted");
        } finally {
            process.destroyForcibly();
        }
    }

    private static Map<String, Object> parse(String json) {
        return JsonParserFactory.getJsonParser().parseMap(json);
    }

    private static WebEndpointResponse<Map<String, Object>> absent() {
        return failed(WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE, "the lucce agent is not in this JVM");
    }

    private static WebEndpointResponse<Map<String, Object>> failed(int status, String reason) {
        return new WebEndpointResponse<>(Map.of("error", reason), status);
    }
}
