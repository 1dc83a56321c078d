/** Numbers of calling contexts in lines of Logback. */
package io.lucce.logback;
