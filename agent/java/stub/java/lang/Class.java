package java.lang;

/**
 * The part of Class that the helper classes are compiled against. The agent adds the field to the real class. Not part of
 * the product.
 */
public final class Class<T> {
    /**
     * Type number and object size of the class, see {@code object_types} in the agent. 0: no object was allocated yet at a
     * place that does not name its class.
     */
    public long $lucceType;

    native ClassLoader getClassLoader0();
}
