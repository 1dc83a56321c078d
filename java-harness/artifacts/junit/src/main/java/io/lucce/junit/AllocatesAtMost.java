package io.lucce.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Fails a test that allocates more than so many bytes or objects, with the stack traces of what it allocates.
 *
 * <pre>{@code
 * @Test
 * @AllocatesAtMost(bytes = 1000, objects = 20, warmUps = 1)
 * void findsWithoutGarbage() {
 *     index.find("word");
 * }
 * }</pre>
 *
 * <p>What the test method allocates, and the threads and tasks that it starts, is counted exactly by the lucce agent
 * ({@code events=alloc+thread}); what JUnit and the methods around the test allocate is not in it. A test that limits nothing but a part of itself calls
 * {@link io.lucce.Allocations#of Allocations.of}.
 *
 * <p>Without the agent such tests are skipped, and the reason says what is missing. With JUnit's configuration parameter
 * {@code lucce.junit.required=true} they fail instead: for continuous integration.
 *
 * <p>On a class: each of its test methods, unless the method has an annotation of its own.
 */
@Target({ElementType.METHOD, ElementType.TYPE, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@ExtendWith(AllocationLimit.class)
public @interface AllocatesAtMost {
    /**
     * Returns the limit of bytes.
     *
     * @return how many bytes the test method may allocate; without: any number
     */
    long bytes() default Long.MAX_VALUE;

    /**
     * Returns the limit of objects.
     *
     * @return how many objects the test method may allocate, arrays too; without: any number
     */
    long objects() default Long.MAX_VALUE;

    /**
     * Returns the limit of bytes that reach the heap, by the VM's own count for the test's thread: objects that the compiler removes
     * are not in it. Code is compiled after some thousand calls, so let {@link #warmUps} call it as often.
     *
     * @return how many bytes the test's thread may take from the heap; without: any number
     */
    long heapBytes() default Long.MAX_VALUE;

    /**
     * Returns how often the test method is called before it is counted. The first call also loads classes and links lambdas,
     * which allocates.
     *
     * @return the number of calls, on the test's instance, without the methods that run before and after each test
     */
    int warmUps() default 0;

    /**
     * Returns whether the threads and tasks that the test method starts count, too. They must have ended when it ends; the test
     * fails if they have not, and if other threads do something that the agent cannot attribute. With {@code false} the test's
     * own thread counts alone.
     *
     * @return whether other threads count
     */
    boolean tasks() default true;
}
