/*
 * A JVMTI agent that samples allocations and keeps a number of lucce's for each instead of a stack:
 *
 *     java -agentpath:liblucce.so=events=none -agentpath:./sampler.so=/path/to/liblucce.so …
 *
 * It shows how lucce.h is used, and it tests it: each number is decoded on the spot and compared with
 * GetStackTrace, errors are provoked, and a signal handler asks all the time. What was found is printed
 * when the VM ends:
 *
 *     sampler: 1234 samples, 1234 same, 0 different, 0 without context; 4321 signals; 20 checks, 0 failed
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jvmti.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "lucce.h"

enum { DEPTH = 1 << 15, INTERVAL = 16 << 10, KEPT = 256, SHOWN = 3 };

static lucce_current_fn *current;
static lucce_event_fn *event;
static lucce_decode_fn *decode;
static lucce_scope_open_fn *scope_open;
static lucce_scope_close_fn *scope_close;
static lucce_current_in_signal_fn *in_signal;
static lucce_status_text_fn *status_text;
static lucce_api_version_fn *api_version;
static lucce_version_fn *version;

static jvmtiEnv *jvmti;
static lucce_env *main_env;
static atomic_long samples, same, different, without, events, bytes, signals, checks, failed, wrong_thread;

/* ---- checks -------------------------------------------------------------------------------------- */

static void check(int holds, const char *what, int32_t was) {
    checks++;
    if (holds) return;
    failed++;
    printf("sampler: FAILED %s: %d\n", what, was);
}

#define IS(expected, call)                           \
    do {                                             \
        int32_t was = (call);                        \
        check(was == (expected), #expected " " #call, was); \
    } while (0)

static void *unattached(void *env) {
    uint64_t number = 7;
    IS(LUCCE_NOT_ATTACHED, current(env, &number));
    IS(LUCCE_NOT_ATTACHED, event(env, "unattached", 1));
    IS(LUCCE_NOWHERE, in_signal(&number));
    return NULL;
}

/* No VM yet, or none any more. */
static void not_running(lucce_env *env) {
    uint64_t number = 7;
    lucce_scope scope;
    IS(LUCCE_NOT_RUNNING, current(env, &number));
    IS(LUCCE_NOT_RUNNING, event(env, "early", 1));
    IS(LUCCE_NOT_RUNNING, scope_open(env, &scope));
    check(number == 7, "nothing is written on an error", (int32_t)number);
}

static void bad_arguments(lucce_env *env) {
    uint64_t number;
    size_t needed = 0, frames = 0;
    IS(LUCCE_BAD_ARGUMENT, current(NULL, &number));
    IS(LUCCE_BAD_ARGUMENT, current(env, NULL));
    IS(LUCCE_BAD_ARGUMENT, event(NULL, "x", 1));
    IS(LUCCE_BAD_ARGUMENT, event(env, NULL, 1));
    IS(LUCCE_BAD_ARGUMENT, scope_open(env, NULL));
    IS(LUCCE_BAD_ARGUMENT, scope_close(NULL));
    lucce_scope stranger = {0, NULL};
    IS(LUCCE_NOT_INNERMOST, scope_close(&stranger));
    /* Made-up numbers. */
    for (uint64_t made_up = 1; made_up != 0; made_up <<= 1) {
        IS(LUCCE_UNKNOWN_CONTEXT, decode(made_up - 1, NULL, 0, &needed, &frames));
    }
    IS(LUCCE_UNKNOWN_CONTEXT, decode(UINT64_MAX, NULL, 0, NULL, NULL));
    check(strlen(status_text(LUCCE_TOO_SMALL)) > 0 && status_text(12345) != NULL, "texts", 0);
    check(api_version() >= 1 && strchr(version(), '.') != NULL, "versions", 0);
}

/* Every size that is too small leaves the memory alone. */
static void small_memory(uint64_t number) {
    size_t needed = 0, frames = 0;
    IS(LUCCE_TOO_SMALL, decode(number, NULL, 0, &needed, &frames));
    check(needed > frames * sizeof(lucce_frame) && frames > 0, "what is needed", (int32_t)needed);
    char *memory = malloc(needed + 8);
    memset(memory, 0x5a, needed + 8);
    IS(LUCCE_TOO_SMALL, decode(number, memory, needed - 1, NULL, NULL));
    IS(LUCCE_TOO_SMALL, decode(number, memory, sizeof(lucce_frame), NULL, NULL));
    IS(LUCCE_BAD_ARGUMENT, decode(number, memory + 1, needed, NULL, NULL));
    IS(LUCCE_BAD_ARGUMENT, decode(number, NULL, needed, NULL, NULL));
    int untouched = 1;
    for (size_t i = 0; i < needed + 8; i++) untouched &= memory[i] == 0x5a;
    check(untouched, "memory is left alone", 0);
    IS(LUCCE_OK, decode(number, memory, needed, NULL, NULL));
    check(memory[needed] == 0x5a, "nothing is written behind", 0);
    free(memory);
}

/* ---- signals ------------------------------------------------------------------------------------- */

static __thread volatile uint64_t seen __attribute__((tls_model("initial-exec")));
static __thread volatile lucce_how seen_how __attribute__((tls_model("initial-exec")));
static _Atomic uint64_t kept[KEPT];
static atomic_int next_kept;

static void handler(int signal) {
    (void)signal;
    uint64_t number = 0;
    lucce_how how = in_signal(&number);
    seen = number;
    seen_how = how;
    signals++;
    if (how != LUCCE_NOWHERE) kept[atomic_fetch_add(&next_kept, 1) & (KEPT - 1)] = number;
}

static void start_signals(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval each = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &each, NULL);
}

static void stop_signals(void) {
    struct itimerval none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &none, NULL);
    signal(SIGPROF, SIG_IGN);
}

/* What a handler sees inside of scopes is what they were opened with. */
static void in_scopes(lucce_env *env, uint64_t number) {
    lucce_scope outer, inner;
    if (scope_open(env, &outer) != LUCCE_OK) return;
    int right = 1;
    raise(SIGPROF);
    right &= seen_how == LUCCE_WITHIN && seen == number;
    right &= scope_open(env, &inner) == LUCCE_OK && scope_close(&outer) == LUCCE_NOT_INNERMOST;
    raise(SIGPROF);
    right &= seen_how == LUCCE_WITHIN && seen == number;
    right &= scope_close(&inner) == LUCCE_OK && scope_close(&outer) == LUCCE_OK;
    raise(SIGPROF);
    right &= seen_how == LUCCE_RECENT && seen == number;
    if (!right) check(0, "scopes", seen_how);
}

/* ---- the VM's own trace -------------------------------------------------------------------------- */

static jint line_of(jmethodID method, jlocation at) {
    jboolean native = JNI_FALSE;
    (*jvmti)->IsMethodNative(jvmti, method, &native);
    if (native) return LUCCE_LINE_NATIVE;
    jint count = 0, line = LUCCE_LINE_UNKNOWN;
    jlocation start = -1;
    jvmtiLineNumberEntry *table = NULL;
    if ((*jvmti)->GetLineNumberTable(jvmti, method, &count, &table) != JVMTI_ERROR_NONE) return line;
    for (jint i = 0; i < count; i++) {
        if (table[i].start_location == at) {
            line = table[i].line_number;
            break;
        }
        if (table[i].start_location < at && table[i].start_location >= start) {
            start = table[i].start_location;
            line = table[i].line_number;
        }
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)table);
    return line;
}

/* Hidden classes have a dot in their names; the others are the methods of the JDK that are annotated @Hidden,
 * and lucce's own. */
static int is_hidden(const char *class, const char *method) {
    static const struct {
        const char *class, *method;
    } annotated[] = {
        {"Ljava/lang/invoke/", ""},
        {"Ljava/lang/LucceRt", ""},
        {"Ljava/lang/Thread;", "runWith"},
        {"Ljava/lang/VirtualThread$VThreadContinuation$1;", "run"},
        {"Ljava/security/AccessController;", "executePrivileged"},
        {"Ljdk/internal/reflect/Direct", "invokeImpl"},
        {"Ljdk/internal/vm/Continuation;", ""},
    };
    if (strchr(class, '.') != NULL) return 1;
    for (size_t i = 0; i < sizeof annotated / sizeof annotated[0]; i++) {
        int same_class = strncmp(class, annotated[i].class, strlen(annotated[i].class)) == 0;
        if (same_class && (annotated[i].method[0] == 0 || strcmp(method, annotated[i].method) == 0)) return 1;
    }
    return 0;
}

/* Class, method and line as text; whether the VM hides the frame in traces of Java. */
static int describe(JNIEnv *env, jvmtiFrameInfo *frame, char *text, size_t size) {
    jclass class = NULL;
    char *signature = NULL, *name = NULL;
    (*jvmti)->GetMethodDeclaringClass(jvmti, frame->method, &class);
    (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL);
    (*jvmti)->GetMethodName(jvmti, frame->method, &name, NULL, NULL);
    int hidden = is_hidden(signature, name);
    for (char *c = signature; *c != 0; c++) {
        if (*c == '/') *c = '.';
    }
    signature[strlen(signature) - 1] = 0;
    snprintf(text, size, "%s.%s:%d", signature + 1, name, line_of(frame->method, frame->location));
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    (*env)->DeleteLocalRef(env, class);
    return hidden;
}

/* Frame by frame; only hidden ones may be missing in `frames`. */
static int is_same(JNIEnv *env, lucce_frame *frames, size_t count, jvmtiFrameInfo *real, jint real_count) {
    char expected[1024], found[1024];
    size_t at = 0;
    for (jint i = 0; i < real_count; i++) {
        int hidden = describe(env, &real[i], expected, sizeof expected);
        found[0] = 0;
        if (at < count) {
            lucce_frame *f = &frames[at];
            snprintf(found, sizeof found, "%s.%s:%d", f->class_name, f->method, f->line);
        }
        if (strcmp(expected, found) == 0) {
            at++;
        } else if (!hidden) {
            if (different < SHOWN) printf("sampler: %s, decoded %s\n", expected, found);
            return 0;
        }
    }
    if (at < count && different < SHOWN) {
        printf("sampler: the VM shows %d frames, decoded %zu; behind them %s.%s:%d\n", (int)real_count, count,
               frames[at].class_name, frames[at].method, frames[at].line);
    }
    return at == count;
}

static void compare(JNIEnv *env, uint64_t number) {
    jvmtiFrameInfo *real = malloc(DEPTH * sizeof *real);
    jint real_count = 0;
    if ((*jvmti)->GetStackTrace(jvmti, NULL, 0, DEPTH, real, &real_count) != JVMTI_ERROR_NONE) real_count = 0;
    size_t needed = 0, count = 0;
    decode(number, NULL, 0, &needed, NULL);
    lucce_frame *frames = malloc(needed);
    int32_t status = decode(number, frames, needed, NULL, &count);
    int right = status == LUCCE_OK && real_count < DEPTH && is_same(env, frames, count, real, real_count);
    *(right ? &same : &different) += 1;
    free(frames);
    free(real);
}

/* ---- events of the VM ---------------------------------------------------------------------------- */

static void JNICALL sampled(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object, jclass class, jlong size) {
    (void)ti, (void)thread, (void)object, (void)class;
    uint64_t number = 0;
    lucce_env *own = (lucce_env *)env;
    int32_t status = current(own, &number);
    if (status == LUCCE_BUSY) return;
    long n = samples++;
    if (status != LUCCE_OK) {
        without++;
        if (without <= SHOWN) printf("sampler: no context: %s\n", status_text(status));
        return;
    }
    compare(env, number);
    in_scopes(own, number);
    if (n == 0) small_memory(number);
    if (event(own, "sampled", size) == LUCCE_OK) {
        events++;
        bytes += size;
    }
    if (own != main_env && main_env != NULL && wrong_thread++ == 0) {
        IS(LUCCE_WRONG_THREAD, current(main_env, &number));
        IS(LUCCE_WRONG_THREAD, event(main_env, "wrong", 1));
    }
}

static void JNICALL vm_start(jvmtiEnv *ti, JNIEnv *env) {
    (void)ti;
    not_running((lucce_env *)env);
}

static void JNICALL vm_init(jvmtiEnv *ti, JNIEnv *env, jthread thread) {
    (void)thread;
    main_env = (lucce_env *)env;
    bad_arguments(main_env);
    pthread_t other;
    pthread_create(&other, NULL, unattached, env);
    pthread_join(other, NULL);
    start_signals();
    (*ti)->SetHeapSamplingInterval(ti, INTERVAL);
    (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
}

/* lucce was loaded first and has ended already; numbers can still be decoded. */
static void JNICALL vm_death(jvmtiEnv *ti, JNIEnv *env) {
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
    stop_signals();
    not_running((lucce_env *)env);
    for (int i = 0; i < KEPT; i++) {
        if (kept[i] != 0) IS(LUCCE_TOO_SMALL, decode(kept[i], NULL, 0, NULL, NULL));
    }
    printf("sampler: %ld samples, %ld same, %ld different, %ld without context; %ld events of %ld bytes; "
           "%ld signals; %ld checks, %ld failed\n",
           samples, same, different, without, events, bytes, signals, checks, failed);
    fflush(stdout);
}

static int found(void *lucce) {
#define FIND(name) ((name = (lucce_##name##_fn *)dlsym(lucce, "lucce_" #name)) != NULL)
    in_signal = (lucce_current_in_signal_fn *)dlsym(lucce, "lucce_current_in_signal");
    return FIND(current) && FIND(event) && FIND(decode) && FIND(scope_open) && FIND(scope_close) &&
           FIND(status_text) && FIND(api_version) && FIND(version) && in_signal != NULL;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    void *lucce = options == NULL ? NULL : dlopen(options, RTLD_NOW | RTLD_NOLOAD);
    if (lucce == NULL || !found(lucce)) {
        fprintf(stderr, "sampler: the path of a liblucce.so that is loaded is wanted, and of no older version\n");
        return JNI_ERR;
    }
    not_running((lucce_env *)vm);
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
    jvmtiCapabilities wanted = {.can_generate_sampled_object_alloc_events = 1, .can_get_line_numbers = 1};
    jvmtiEventCallbacks callbacks = {.VMStart = vm_start, .VMInit = vm_init, .VMDeath = vm_death, .SampledObjectAlloc = sampled};
    if ((*jvmti)->AddCapabilities(jvmti, &wanted) != JVMTI_ERROR_NONE) return JNI_ERR;
    (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks);
    jvmtiEvent kinds[] = {JVMTI_EVENT_VM_START, JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH};
    for (int i = 0; i < 3; i++) (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, kinds[i], NULL);
    return JNI_OK;
}
