/**
 * What one operation of a JMH benchmark allocates, by line: {@code -prof lucce}.
 */
package io.lucce.jmh;
