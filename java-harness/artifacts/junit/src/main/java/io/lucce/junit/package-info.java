/** Limits of what tests allocate, for JUnit 5. */
package io.lucce.junit;
