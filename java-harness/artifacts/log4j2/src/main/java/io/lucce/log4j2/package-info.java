/** Numbers of calling contexts in lines of Log4j 2. */
package io.lucce.log4j2;
