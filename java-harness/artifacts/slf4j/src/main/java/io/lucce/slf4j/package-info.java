/** Numbers of calling contexts in SLF4J's MDC. */
package io.lucce.slf4j;
