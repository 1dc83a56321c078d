package io.lucce.apps;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.zip.CRC32;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** A Tomcat on 127.0.0.1 and clients that ask it: pages, forms, sessions, errors. */
public final class TomcatServe {
    private final Driver driver;
    private final int port;

    private TomcatServe(Driver driver, int port) {
        this.driver = driver;
        this.port = port;
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("TomcatServe", args);
        java.util.logging.LogManager.getLogManager().reset();
        Path base = Files.createTempDirectory("tomcat");
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(base.toString());
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("", base.toString());
        Tomcat.addServlet(context, "pages", new Pages());
        context.addServletMappingDecoded("/pages/*", "pages");
        addFilter(context);
        tomcat.start();
        try {
            driver.run(new TomcatServe(driver, tomcat.getConnector().getLocalPort())::iteration);
        } finally {
            tomcat.stop();
            tomcat.destroy();
            Driver.deleteTree(base);
        }
    }

    private static void addFilter(Context context) {
        FilterDef definition = new FilterDef();
        definition.setFilterName("count");
        definition.setFilter(new CountingFilter());
        context.addFilterDef(definition);
        FilterMap map = new FilterMap();
        map.setFilterName("count");
        map.addURLPattern("/*");
        context.addFilterMap(map);
    }

    private static final class CountingFilter implements Filter {
        @Override
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain) throws IOException, ServletException {
            ((HttpServletResponse) response).setHeader("X-Length", String.valueOf(((HttpServletRequest) request).getRequestURI().length()));
            chain.doFilter(request, response);
        }
    }

    private static final class Pages extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException, ServletException {
            String page = request.getPathInfo();
            if (page.endsWith("7")) {
                response.sendError(404, "no page ends in 7");
                return;
            }
            if (page.endsWith("3")) {
                throw new ServletException("a page that fails");
            }
            response.setContentType("text/html;charset=UTF-8");
            StringBuilder rows = new StringBuilder();
            new TreeMap<>(request.getParameterMap()).forEach((name, values) ->
                    rows.append("<tr><td>").append(name).append("</td><td>").append(String.join(", ", values)).append("</td></tr>\n"));
            for (int i = 0; i < 40; i++) {
                rows.append(String.format("<tr><td>%d</td><td>%s</td></tr>%n", i, page.repeat(i % 4)));
            }
            response.getWriter().printf("<html><h1>%s</h1><table>%s</table></html>", page, rows);
        }

        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            byte[] body = request.getInputStream().readAllBytes();
            Integer visits = (Integer) request.getSession().getAttribute("visits");
            request.getSession().setAttribute("visits", visits == null ? 1 : visits + 1);
            response.setContentType("application/octet-stream");
            response.getOutputStream().write(body);
        }
    }

    private String iteration(CRC32 checksum) throws Exception {
        int clients = 4;
        int requests = driver.scaled(500);
        List<Callable<Long>> tasks = new ArrayList<>();
        for (int c = 0; c < clients; c++) {
            int client = c;
            tasks.add(() -> client(client, requests));
        }
        for (long seen : driver.parallel(tasks)) {
            Driver.add(checksum, seen);
        }
        return clients + " clients, " + requests + " requests each";
    }

    private long client(int client, int requests) throws Exception {
        CRC32 seen = new CRC32();
        HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        for (int i = 0; i < requests; i++) {
            String text = URLEncoder.encode("v\u00e4lue " + i, StandardCharsets.UTF_8);
            URI uri = URI.create("http://127.0.0.1:" + port + "/pages/c" + client + "p" + i + "?a=" + text + "&b=" + i * i);
            HttpRequest.Builder request = HttpRequest.newBuilder(uri);
            if (i % 4 == 1) {
                request.POST(HttpRequest.BodyPublishers.ofString(("body " + i + "\n").repeat(1 + i % 50)));
            }
            HttpResponse<byte[]> response = http.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
            Driver.add(seen, response.statusCode());
            if (response.statusCode() == 200) {
                seen.update(response.body());
            }
        }
        return seen.getValue();
    }
}
