package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.annotation.Annotation;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;

/** Annotations, generic signatures and member lists: proxies and class loading behind the scenes. */
public final class Introspection {
    static Object kept;

    public static void main(String[] args) throws Exception {
        body();
        Fresh.run(Introspection.class, "body", Repeats.of(30));
        Check.done();
    }

    enum Level {
        LOW,
        HIGH;

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    @Retention(RetentionPolicy.RUNTIME)
    @Target({ElementType.TYPE, ElementType.METHOD, ElementType.TYPE_USE})
    @interface Marked {
        String value() default "default";

        Level level() default Level.LOW;

        Class<?> type() default Object.class;

        Tag[] tags() default {};
    }

    @Retention(RetentionPolicy.RUNTIME)
    @Repeatable(Tags.class)
    @interface Tag {
        int value();
    }

    @Retention(RetentionPolicy.RUNTIME)
    @interface Tags {
        Tag[] value();
    }

    @Marked(value = "subject", level = Level.HIGH, type = Named.class, tags = {@Tag(1), @Tag(2)})
    @Tag(3)
    @Tag(4)
    static class Subject<T extends Comparable<T>> implements Comparable<Subject<T>> {
        @Marked T field;

        @Marked
        <E extends Exception> T method(T a, @Marked Argument b) throws E {
            Check.that(CallContext.current(), new Throwable());
            return a;
        }

        @Override
        public int compareTo(Subject<T> other) {
            return 0;
        }
    }

    static final class Named {
        static {
            Check.wrong("is named, not initialised");
        }
    }

    static final class Argument {}

    static void body() throws Exception {
        Marked marked = Subject.class.getAnnotation(Marked.class);
        Check.that(CallContext.current(), new Throwable());
        Check.equal("subject", marked.value());
        Check.equal(Level.HIGH, marked.level());
        Check.equal(Named.class, marked.type());
        Check.equal(2, marked.tags()[1].value());
        Check.that(CallContext.current(), new Throwable());
        Check.equal(2, Subject.class.getAnnotationsByType(Tag.class).length);
        for (Annotation annotation : Subject.class.getAnnotations()) {
            kept = annotation.toString() + annotation.hashCode();
            Check.equal(true, annotation.equals(annotation));
            Check.that(CallContext.current(), new Throwable());
        }
        Method found = null;
        for (Method method : Subject.class.getDeclaredMethods()) {
            kept = method.toGenericString();
            if (method.getName().equals("method")) {
                found = method;
            }
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal("default", found.getAnnotation(Marked.class).value());
        kept = found.getGenericParameterTypes();
        kept = found.getAnnotatedReturnType().getAnnotations();
        Check.equal("x", found.invoke(new Subject<String>(), "x", new Argument()));
        Check.that(CallContext.current(), new Throwable());
        ParameterizedType type = (ParameterizedType) Subject.class.getGenericInterfaces()[0];
        kept = type.getActualTypeArguments()[0].getTypeName();
        kept = Subject.class.getDeclaredField("field").getGenericType();
        Check.equal(Introspection.class, Subject.class.getNestHost());
        Check.equal(true, Introspection.class.getDeclaredClasses().length >= 7);
        Check.that(CallContext.current(), new Throwable());
    }
}
