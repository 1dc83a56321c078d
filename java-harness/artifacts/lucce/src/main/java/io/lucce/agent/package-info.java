/**
 * The agent and the command as files of this machine: for {@code -agentpath}, and for {@code java -jar}.
 */
package io.lucce.agent;
