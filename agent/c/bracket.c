/*
 * JNI functions that call Java, with a bracket around each: the native method's frame gets a slot
 * on the shadow stack, and the pointer is put back when the call returns, whatever was thrown.
 *
 * In C because half of these functions take variable arguments. The function table is used as an
 * array: the indices are those of the JNI specification, chapter 4.
 */
#include <stdarg.h>
#include <stdint.h>

typedef void *env_t;
typedef void **table_t;

/* The table as it was before. */
static table_t original;

/* In the agent: returns what to give to close; 0: nothing to close. */
extern int64_t lucce_bracket_open(env_t env);
extern void lucce_bracket_close(env_t env, int64_t pointer);

#define CALL(index, type, ...) ((type)original[index])(__VA_ARGS__)

#define BODY(T, call)                          \
    int64_t pointer = lucce_bracket_open(env); \
    T result = call;                           \
    lucce_bracket_close(env, pointer);         \
    return result;

#define VOID_BODY(call)                        \
    int64_t pointer = lucce_bracket_open(env); \
    call;                                      \
    lucce_bracket_close(env, pointer);

/* Receiver (or class) and method: CallXMethod, CallStaticXMethod, NewObject. */
#define THREE(name, T, index)                                                                   \
    static T name##V(env_t env, void *a, void *m, va_list args) {                               \
        BODY(T, CALL(index + 1, T (*)(env_t, void *, void *, va_list), env, a, m, args))        \
    }                                                                                           \
    static T name##A(env_t env, void *a, void *m, void *args) {                                 \
        BODY(T, CALL(index + 2, T (*)(env_t, void *, void *, void *), env, a, m, args))         \
    }                                                                                           \
    static T name(env_t env, void *a, void *m, ...) {                                           \
        va_list args;                                                                           \
        va_start(args, m);                                                                      \
        T result = name##V(env, a, m, args);                                                    \
        va_end(args);                                                                           \
        return result;                                                                          \
    }

#define THREE_VOID(name, index)                                                                 \
    static void name##V(env_t env, void *a, void *m, va_list args) {                            \
        VOID_BODY(CALL(index + 1, void (*)(env_t, void *, void *, va_list), env, a, m, args))   \
    }                                                                                           \
    static void name##A(env_t env, void *a, void *m, void *args) {                              \
        VOID_BODY(CALL(index + 2, void (*)(env_t, void *, void *, void *), env, a, m, args))    \
    }                                                                                           \
    static void name(env_t env, void *a, void *m, ...) {                                        \
        va_list args;                                                                           \
        va_start(args, m);                                                                      \
        name##V(env, a, m, args);                                                               \
        va_end(args);                                                                           \
    }

/* Receiver, class and method: CallNonvirtualXMethod. */
#define FOUR(name, T, index)                                                                        \
    static T name##V(env_t env, void *a, void *c, void *m, va_list args) {                          \
        BODY(T, CALL(index + 1, T (*)(env_t, void *, void *, void *, va_list), env, a, c, m, args)) \
    }                                                                                               \
    static T name##A(env_t env, void *a, void *c, void *m, void *args) {                            \
        BODY(T, CALL(index + 2, T (*)(env_t, void *, void *, void *, void *), env, a, c, m, args))  \
    }                                                                                               \
    static T name(env_t env, void *a, void *c, void *m, ...) {                                      \
        va_list args;                                                                               \
        va_start(args, m);                                                                          \
        T result = name##V(env, a, c, m, args);                                                     \
        va_end(args);                                                                               \
        return result;                                                                              \
    }

#define FOUR_VOID(name, index)                                                                           \
    static void name##V(env_t env, void *a, void *c, void *m, va_list args) {                            \
        VOID_BODY(CALL(index + 1, void (*)(env_t, void *, void *, void *, va_list), env, a, c, m, args)) \
    }                                                                                                    \
    static void name##A(env_t env, void *a, void *c, void *m, void *args) {                              \
        VOID_BODY(CALL(index + 2, void (*)(env_t, void *, void *, void *, void *), env, a, c, m, args))  \
    }                                                                                                    \
    static void name(env_t env, void *a, void *c, void *m, ...) {                                        \
        va_list args;                                                                                    \
        va_start(args, m);                                                                               \
        name##V(env, a, c, m, args);                                                                     \
        va_end(args);                                                                                    \
    }

#define TYPES(F, prefix, first)             \
    F(prefix##Object, void *, first)        \
    F(prefix##Boolean, uint8_t, first + 3)  \
    F(prefix##Byte, int8_t, first + 6)      \
    F(prefix##Char, uint16_t, first + 9)    \
    F(prefix##Short, int16_t, first + 12)   \
    F(prefix##Int, int32_t, first + 15)     \
    F(prefix##Long, int64_t, first + 18)    \
    F(prefix##Float, float, first + 21)     \
    F(prefix##Double, double, first + 24)

enum { THROW_NEW = 14, NEW_OBJECT = 28, CALL = 34, CALL_NONVIRTUAL = 64, CALL_STATIC = 114, VOID = 27 };

/* Calls the exception's constructor. */
static int32_t ThrowNew(env_t env, void *c, const char *message) {
    BODY(int32_t, CALL(THROW_NEW, int32_t (*)(env_t, void *, const char *), env, c, message))
}

THREE(NewObject, void *, NEW_OBJECT)
TYPES(THREE, Call, CALL)
THREE_VOID(CallVoid, CALL + VOID)
TYPES(FOUR, CallNonvirtual, CALL_NONVIRTUAL)
FOUR_VOID(CallNonvirtualVoid, CALL_NONVIRTUAL + VOID)
TYPES(THREE, CallStatic, CALL_STATIC)
THREE_VOID(CallStaticVoid, CALL_STATIC + VOID)

#define PUT(name, T, index)          \
    table[index] = (void *)name;     \
    table[index + 1] = (void *)name##V; \
    table[index + 2] = (void *)name##A;

/* Replaces the calling functions in `table`, a copy of `before`; both live for ever. */
void lucce_bracket_install(table_t table, table_t before) {
    original = before;
    table[THROW_NEW] = (void *)ThrowNew;
    PUT(NewObject, , NEW_OBJECT)
    TYPES(PUT, Call, CALL)
    PUT(CallVoid, , CALL + VOID)
    TYPES(PUT, CallNonvirtual, CALL_NONVIRTUAL)
    PUT(CallNonvirtualVoid, , CALL_NONVIRTUAL + VOID)
    TYPES(PUT, CallStatic, CALL_STATIC)
    PUT(CallStaticVoid, , CALL_STATIC + VOID)
}
