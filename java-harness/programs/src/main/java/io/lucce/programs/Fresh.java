package io.lucce.programs;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;

/** Runs a class again and again in loaders of its own, so that what happens once happens often. */
public final class Fresh extends ClassLoader {
    private final String prefix;

    /** Defines anew each class whose name begins with {@code prefix}; shares all others. */
    public Fresh(String prefix) {
        super(Fresh.class.getClassLoader());
        this.prefix = prefix;
    }

    /** Calls the static method {@code name} of {@code times} fresh copies of {@code type}. */
    public static void run(Class<?> type, String name, int times) throws Exception {
        for (int i = 0; i < times; i++) {
            call(new Fresh(type.getName()).loadClass(type.getName()), name);
        }
    }

    public static Object call(Class<?> type, String name) throws Exception {
        try {
            var method = type.getDeclaredMethod(name);
            method.setAccessible(true);
            return method.invoke(null);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Error) {
                throw (Error) e.getCause();
            }
            throw (Exception) e.getCause();
        }
    }

    public static byte[] bytes(String className) {
        String resource = className.replace('.', '/') + ".class";
        try (InputStream in = Fresh.class.getClassLoader().getResourceAsStream(resource)) {
            return in == null ? null : in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        synchronized (getClassLoadingLock(name)) {
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            byte[] bytes = name.startsWith(prefix) ? bytes(name) : null;
            return bytes == null ? super.loadClass(name, resolve) : defineClass(name, bytes, 0, bytes.length);
        }
    }
}
