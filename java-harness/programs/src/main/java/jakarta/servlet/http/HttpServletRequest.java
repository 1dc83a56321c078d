package jakarta.servlet.http;

import jakarta.servlet.ServletRequest;

/** Of the same name as the library's, for programs that need no library. */
public interface HttpServletRequest extends ServletRequest {
    String getMethod();

    HttpServletMapping getHttpServletMapping();
}
