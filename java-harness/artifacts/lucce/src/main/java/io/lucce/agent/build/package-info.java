/**
 * What plugins of build tools and of JMH share: the agent's argument for a JVM, the logs of tests, and runs of {@code lucce}.
 */
package io.lucce.agent.build;
