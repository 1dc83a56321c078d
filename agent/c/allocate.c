/*
 * JNI functions that make an object: it is counted when they return. Installed behind the brackets,
 * whose functions these call where both replace one.
 *
 * The function table is used as an array: the indices are those of the JNI specification, chapter 4.
 */
#include <stdarg.h>
#include <stdint.h>

typedef void *env_t;
typedef void *ref_t;
typedef void **table_t;

/* The table as it was before. */
static table_t original;

/* In the agent. */
extern void lucce_allocated(env_t env, ref_t object);
/* The same of a text, which the function has made an array for. */
extern void lucce_allocated_text(env_t env, ref_t text);

enum {
    ALLOC_OBJECT = 27, NEW_OBJECT = 28, NEW_OBJECT_V = 29, NEW_OBJECT_A = 30,
    NEW_STRING = 163, NEW_STRING_UTF = 167, NEW_OBJECT_ARRAY = 172, NEW_BOOLEAN_ARRAY = 175
};

static ref_t counted(env_t env, ref_t object) {
    lucce_allocated(env, object);
    return object;
}

static ref_t counted_text(env_t env, ref_t text) {
    lucce_allocated_text(env, text);
    return text;
}

static ref_t AllocObject(env_t env, ref_t type) {
    return counted(env, ((ref_t (*)(env_t, ref_t))original[ALLOC_OBJECT])(env, type));
}

static ref_t NewObjectV(env_t env, ref_t type, void *method, va_list args) {
    ref_t (*make)(env_t, ref_t, void *, va_list) = original[NEW_OBJECT_V];
    return counted(env, make(env, type, method, args));
}

static ref_t NewObjectA(env_t env, ref_t type, void *method, void *args) {
    ref_t (*make)(env_t, ref_t, void *, void *) = original[NEW_OBJECT_A];
    return counted(env, make(env, type, method, args));
}

static ref_t NewObject(env_t env, ref_t type, void *method, ...) {
    va_list args;
    va_start(args, method);
    ref_t result = NewObjectV(env, type, method, args);
    va_end(args);
    return result;
}

static ref_t NewString(env_t env, const uint16_t *text, int32_t length) {
    ref_t (*make)(env_t, const uint16_t *, int32_t) = original[NEW_STRING];
    return counted_text(env, make(env, text, length));
}

static ref_t NewStringUTF(env_t env, const char *text) {
    ref_t (*make)(env_t, const char *) = original[NEW_STRING_UTF];
    return counted_text(env, make(env, text));
}

static ref_t NewObjectArray(env_t env, int32_t length, ref_t type, ref_t first) {
    ref_t (*make)(env_t, int32_t, ref_t, ref_t) = original[NEW_OBJECT_ARRAY];
    return counted(env, make(env, length, type, first));
}

#define ARRAY(name, n)                                                     \
    static ref_t New##name##Array(env_t env, int32_t length) {             \
        ref_t (*make)(env_t, int32_t) = original[NEW_BOOLEAN_ARRAY + (n)]; \
        return counted(env, make(env, length));                            \
    }

#define ARRAYS(F) F(Boolean, 0) F(Byte, 1) F(Char, 2) F(Short, 3) F(Int, 4) F(Long, 5) F(Float, 6) F(Double, 7)

ARRAYS(ARRAY)

#define PUT(name, n) table[NEW_BOOLEAN_ARRAY + (n)] = (void *)New##name##Array;

/* Replaces the functions in `table`, a copy of `before`; both live for ever. */
void lucce_allocate_install(table_t table, table_t before) {
    original = before;
    table[ALLOC_OBJECT] = (void *)AllocObject;
    table[NEW_OBJECT] = (void *)NewObject;
    table[NEW_OBJECT_V] = (void *)NewObjectV;
    table[NEW_OBJECT_A] = (void *)NewObjectA;
    table[NEW_STRING] = (void *)NewString;
    table[NEW_STRING_UTF] = (void *)NewStringUTF;
    table[NEW_OBJECT_ARRAY] = (void *)NewObjectArray;
    ARRAYS(PUT)
}
