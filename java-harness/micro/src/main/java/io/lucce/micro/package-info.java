/**
 * What tracking costs, construct by construct. {@code cargo xtask bench --micro} runs each benchmark with
 * and without the agent, in turns.
 */
package io.lucce.micro;
