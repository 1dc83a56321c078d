/**
 * What a program can ask of the lucce agent: the number of the calling context that it is in, and
 * the stack trace behind a number.
 */
package io.lucce;
