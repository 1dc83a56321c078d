/**
 * The goals {@code lucce:prepare-agent} and {@code lucce:gate} of Maven.
 */
package io.lucce.maven;
