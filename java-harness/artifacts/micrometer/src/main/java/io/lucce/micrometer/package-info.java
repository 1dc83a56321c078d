/** Figures of the agent as meters of Micrometer, and tags for its observations. */
package io.lucce.micrometer;
