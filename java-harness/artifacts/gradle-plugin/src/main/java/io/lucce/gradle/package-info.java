/**
 * The plugin {@code io.lucce} of Gradle.
 */
package io.lucce.gradle;
