/*
 * lucce for native code: JVMTI agents and JNI libraries that run in a JVM beside liblucce.so.
 *
 * A context number stands for the whole stack trace at one moment: 64 bits to keep with an event, turned
 * back into frames when somebody asks, here or later with `lucce decode`.
 *
 * The library is in the process already, as -agentpath. To find it:
 *
 *     void *lucce = dlopen("/path/to/liblucce.so", RTLD_NOW | RTLD_NOLOAD);    NULL: the JVM runs without
 *     lucce_current_fn *current = (lucce_current_fn *)dlsym(lucce, "lucce_current");
 *
 * or link with -llucce. Nothing here throws, and nothing is written where a result is an error, unless a
 * function says so.
 *
 * May be called                    in a JVMTI callback or JNI native   where JNI is forbidden   in a signal handler
 *                                  on a Java thread                    (in a collection)
 *     lucce_current                yes                                 no                       no
 *     lucce_event                  yes                                 no                       no
 *     lucce_scope_open             yes                                 no                       no
 *     lucce_scope_close            yes                                 yes                      no
 *     lucce_current_in_signal      yes                                 yes                      yes
 *     lucce_decode                 yes, and on any other thread        no                       no
 *     lucce_version, _api_version,
 *     lucce_status_text, lucce_text   yes                              yes                      yes
 */
#ifndef LUCCE_H
#define LUCCE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As jni.h has it; only that file says what is in it. */
#ifdef __cplusplus
struct JNIEnv_;
typedef struct JNIEnv_ lucce_env;
#else
struct JNINativeInterface_;
typedef const struct JNINativeInterface_ *lucce_env;
#endif

/* Results. New ones may come; those that are there keep their values. */
typedef enum lucce_status {
    LUCCE_OK = 0,
    /* The JVM is not initialised yet or has ended, or liblucce.so was not there from its start. */
    LUCCE_NOT_RUNNING = -1,
    /* A null pointer, or memory that is not aligned. */
    LUCCE_BAD_ARGUMENT = -2,
    /* The calling thread is not attached to the JVM. */
    LUCCE_NOT_ATTACHED = -3,
    /* The environment is another thread's. */
    LUCCE_WRONG_THREAD = -4,
    /* Not a context number. */
    LUCCE_UNKNOWN_CONTEXT = -5,
    /* The memory is too small; how much is needed is told. */
    LUCCE_TOO_SMALL = -6,
    /* The context is not known: no Java frame, a frame without hooks below a callback of the VM, or no
     * numbers are left. Never a guess. */
    LUCCE_NO_CONTEXT = -7,
    /* The log is full. */
    LUCCE_FULL = -8,
    /* This thread runs lucce's own code: a callback in the middle of it. */
    LUCCE_BUSY = -9,
    /* A scope that is not the innermost one of this thread. */
    LUCCE_NOT_INNERMOST = -10,
    /* An error of lucce's. */
    LUCCE_INTERNAL = -11
} lucce_status;

/* What a result means: English, one line, valid for ever. */
const char *lucce_status_text(int32_t status);

/* The version of this interface: 2 (lucce_text came with it). It grows with what is added; nothing is taken away. */
uint32_t lucce_api_version(void);

/* The library's version, such as "0.1.0". */
const char *lucce_version(void);

/*
 * The number of the calling thread's context: its Java frames right now, natives among them. It is exact, as
 * a stack trace taken here would be. Costs a walk of the frames.
 */
lucce_status lucce_current(lucce_env *env, uint64_t *context);

/*
 * An event of the caller's own under the calling thread's context: counted in the log by context, `kind`
 * (UTF-8, ends with a zero byte, 100 characters count) and thread, with the sum of its values; a negative
 * value counts as 0. Nothing is counted, and that is no error, while `lucce ctl stop` is in force.
 */
lucce_status lucce_event(lucce_env *env, const char *kind, int64_t value);

/* A frame of a trace. The texts are UTF-8 and lie in the memory that was passed. */
typedef struct lucce_frame {
    const char *class_name; /* a.b.C$D */
    const char *method;     /* work, <init>, <clinit> */
    const char *file;       /* C.java; NULL: unknown */
    int32_t line;           /* -1: unknown; -2: a native method */
} lucce_frame;

enum { LUCCE_LINE_UNKNOWN = -1, LUCCE_LINE_NATIVE = -2 };

/*
 * The frames of a context, innermost first: an array of lucce_frame at the beginning of `memory`, `size`
 * bytes that are aligned to 8, with the texts behind it. `frames` is how many there are, `needed` how many
 * bytes it takes; both are told, too, when the memory is too small (NULL is right if size is 0). Either may
 * be NULL. Takes locks; works from any thread, also after the JVM has ended.
 */
lucce_status lucce_decode(uint64_t context, void *memory, size_t size, size_t *needed, size_t *frames);

/* Room for any number as text, with the zero byte. */
enum { LUCCE_TEXT_SIZE = 42 };

/*
 * A number as text that names the run, with a zero byte: "lucce:0123456789abcdef:0x400024000c77cb". For what
 * is read later: `lucce decode` finds such numbers in any text, and refuses those of another run than the log's.
 */
lucce_status lucce_text(uint64_t context, char *text, size_t size);

/* What native code has said about where its thread is. In the caller's memory, opened and closed by the
 * same thread, in the same call of a native method or callback. */
typedef struct lucce_scope {
    uint64_t context;
    struct lucce_scope *outer;
} lucce_scope;

/*
 * From here on, until the scope is closed, the thread is in the current context or in what that calls: so
 * signal handlers know. Scopes nest. On an error there is no scope.
 */
lucce_status lucce_scope_open(lucce_env *env, lucce_scope *scope);
lucce_status lucce_scope_close(lucce_scope *scope);

/* How a context is known. */
typedef enum lucce_how {
    /* It is not: the number is 0. */
    LUCCE_NOWHERE = 0,
    /* The innermost open scope: the thread is in this context or in what it calls. */
    LUCCE_WITHIN = 1,
    /* No scope is open. The last number that lucce gave this thread of the system, some time ago; it may
     * be that of another Java thread that it carried. */
    LUCCE_RECENT = 2
} lucce_how;

/*
 * For signal handlers: reads a few words of the thread's own memory and nothing else; no lock, no allocation,
 * no call of the JVM. Java code keeps its place in the heap, where a handler must not look; so between
 * scopes the context is not known, and no number is passed off as the current one.
 */
lucce_how lucce_current_in_signal(uint64_t *context);

/* For dlsym. */
typedef const char *lucce_status_text_fn(int32_t);
typedef uint32_t lucce_api_version_fn(void);
typedef const char *lucce_version_fn(void);
typedef lucce_status lucce_current_fn(lucce_env *, uint64_t *);
typedef lucce_status lucce_event_fn(lucce_env *, const char *, int64_t);
typedef lucce_status lucce_decode_fn(uint64_t, void *, size_t, size_t *, size_t *);
typedef lucce_status lucce_text_fn(uint64_t, char *, size_t);
typedef lucce_status lucce_scope_open_fn(lucce_env *, lucce_scope *);
typedef lucce_status lucce_scope_close_fn(lucce_scope *);
typedef lucce_how lucce_current_in_signal_fn(uint64_t *);

#ifdef __cplusplus
}
#endif

#endif
