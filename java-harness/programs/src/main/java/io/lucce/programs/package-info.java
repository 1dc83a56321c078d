/**
 * One small program per hard case of context tracking. Each checks itself: at every place that
 * matters it takes a context number and the JVM's own trace on one line, and {@link
 * io.lucce.programs.Check} compares the two. Without the agent a program still runs its case and
 * checks what it computes.
 */
package io.lucce.programs;
