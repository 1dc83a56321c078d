/** Numbers of calling contexts, counts and tags for the spans of OpenTelemetry. */
package io.lucce.opentelemetry;
