package org.springframework.web.bind.annotation;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** Of the same name as the library's, for programs that need no library. */
@Retention(RetentionPolicy.RUNTIME)
public @interface RequestMapping {
    String[] value() default {};

    String[] path() default {};

    RequestMethod[] method() default {};
}
