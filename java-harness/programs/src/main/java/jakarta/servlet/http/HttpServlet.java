package jakarta.servlet.http;

import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;

/** Of the same name as the library's, for programs that need no library. */
public abstract class HttpServlet {
    public void service(ServletRequest request, ServletResponse response) {
        service((HttpServletRequest) request, (HttpServletResponse) response);
    }

    protected void service(HttpServletRequest request, HttpServletResponse response) {
        throw new UnsupportedOperationException();
    }
}
