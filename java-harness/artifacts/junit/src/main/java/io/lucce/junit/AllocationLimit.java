package io.lucce.junit;

import io.lucce.Allocations;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Locale;
import java.util.Optional;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.AssertionFailedError;

/** What {@link AllocatesAtMost} does. */
final class AllocationLimit implements ExecutionCondition, InvocationInterceptor {
    /** With {@code true} a test whose allocations cannot be counted fails. */
    private static final String REQUIRED = "lucce.junit.required";

    AllocationLimit() {}

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        Optional<String> reason = Allocations.unavailable();
        if (reason.isEmpty()) {
            return ConditionEvaluationResult.enabled("allocations are counted");
        }
        String message = "@AllocatesAtMost cannot count: " + reason.get();
        if (context.getConfigurationParameter(REQUIRED).map(Boolean::parseBoolean).orElse(false)) {
            throw new ExtensionConfigurationException(message);
        }
        return ConditionEvaluationResult.disabled(message);
    }

    @Override
    public void interceptTestMethod(
            Invocation<Void> invocation, ReflectiveInvocationContext<Method> call, ExtensionContext context)
            throws Throwable {
        limited(invocation, call, context);
    }

    @Override
    public void interceptTestTemplateMethod(
            Invocation<Void> invocation, ReflectiveInvocationContext<Method> call, ExtensionContext context)
            throws Throwable {
        limited(invocation, call, context);
    }

    private static void limited(
            Invocation<Void> invocation, ReflectiveInvocationContext<Method> call, ExtensionContext context)
            throws Throwable {
        Optional<AllocatesAtMost> found = limit(call.getExecutable(), context);
        if (found.isEmpty()) {
            invocation.proceed();
            return;
        }
        AllocatesAtMost limit = found.get();
        whole(limit, call.getExecutable());
        for (int i = 0; i < limit.warmUps(); i++) {
            warmUp(call);
        }
        Allocations all = limit.tasks() ? Allocations.of(invocation::proceed) : Allocations.ofThread(invocation::proceed);
        Method test = call.getExecutable();
        check(limit, all.through(test.getDeclaringClass(), test.getName()));
    }

    /** The method's own, else that of its class or of a class around it. */
    private static Optional<AllocatesAtMost> limit(Method test, ExtensionContext context) {
        Optional<AllocatesAtMost> own = AnnotationSupport.findAnnotation(test, AllocatesAtMost.class);
        Class<?> type = context.getRequiredTestClass();
        while (own.isEmpty() && type != null) {
            own = AnnotationSupport.findAnnotation(type, AllocatesAtMost.class);
            type = type.getEnclosingClass();
        }
        return own;
    }

    private static void whole(AllocatesAtMost limit, Method test) {
        String wrong = null;
        long least = Math.min(limit.bytes(), Math.min(limit.objects(), limit.heapBytes()));
        if (least == Long.MAX_VALUE) {
            wrong = "wants a limit: bytes = …, objects = …, heapBytes = …";
        } else if (least < 0 || limit.warmUps() < 0) {
            wrong = "wants bytes, objects, heapBytes and warmUps of 0 and more";
        }
        if (wrong != null) {
            String of = test.getDeclaringClass().getSimpleName() + "." + test.getName();
            throw new ExtensionConfigurationException("@AllocatesAtMost of " + of + " " + wrong);
        }
    }

    private static void warmUp(ReflectiveInvocationContext<Method> call) throws Throwable {
        Method test = call.getExecutable();
        test.setAccessible(true);
        try {
            test.invoke(call.getTarget().orElse(null), call.getArguments().toArray());
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    private static void check(AllocatesAtMost limit, Allocations found) {
        StringBuilder over = new StringBuilder();
        if (found.bytes() > limit.bytes()) {
            over.append(over(found.bytes(), limit.bytes(), "bytes"));
        }
        if (found.objects() > limit.objects()) {
            over.append(over.length() == 0 ? "" : ", and ").append(over(found.objects(), limit.objects(), "objects"));
        }
        if (limit.heapBytes() != Long.MAX_VALUE) {
            long heap = found.heapBytes().orElseThrow(() -> new ExtensionConfigurationException(
                    "@AllocatesAtMost(heapBytes): the VM does not count what this thread allocates"));
            if (heap > limit.heapBytes()) {
                over.append(over.length() == 0 ? "" : ", and ").append(over(heap, limit.heapBytes(), "bytes of the heap"));
            }
        }
        if (over.length() > 0) {
            throw new AssertionFailedError("allocates " + over + "\n" + found);
        }
    }

    private static String over(long found, long limit, String what) {
        return String.format(Locale.ROOT, "%,d %s, %,d more than the limit of %,d", found, what, found - limit, limit);
    }
}
