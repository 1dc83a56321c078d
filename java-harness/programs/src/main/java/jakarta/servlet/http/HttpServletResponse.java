package jakarta.servlet.http;

import jakarta.servlet.ServletResponse;

/** Of the same name as the library's, for programs that need no library. */
public interface HttpServletResponse extends ServletResponse {}
