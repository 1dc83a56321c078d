/** Meters, tags and an endpoint of the agent for Spring Boot; each is off unless a property asks for it. */
package io.lucce.spring.boot;
