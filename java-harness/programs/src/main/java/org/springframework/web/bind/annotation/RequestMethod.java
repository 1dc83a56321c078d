package org.springframework.web.bind.annotation;

/** Of the same name as the library's. */
public enum RequestMethod {
    GET,
    POST
}
