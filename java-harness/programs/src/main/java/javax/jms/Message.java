package javax.jms;

/** Of the same name as the library's, for programs that need no library. */
public interface Message {}
