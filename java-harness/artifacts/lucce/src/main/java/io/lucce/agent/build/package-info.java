/**
 * What plugins of build tools share: the agent's argument for the JVM of the tests, their logs, and {@code lucce gate}.
 */
package io.lucce.agent.build;
