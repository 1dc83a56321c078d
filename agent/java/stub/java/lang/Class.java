package java.lang;

/**
 * What the helper classes need to know of Class when it is compiled: the field is added to the real class by the
 * agent. Never part of the product.
 */
public final class Class<T> {
    /**
     * Number and size of the class's objects, see {@code types} in the agent; 0: none was made yet of which the
     * place does not say the class.
     */
    public long $lc;
}
