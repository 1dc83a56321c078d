/*
 * A JVMTI agent that times the callbacks for locks of the agent that is loaded behind it:
 *
 *     java -agentpath:./callbacks.so -agentpath:liblucce.so=events=lock …
 *
 * HotSpot has one table of JVMTI functions for all agents. SetEventCallbacks is replaced in it, so that each of
 * the callbacks is called between two looks at the clock; and so are the functions that look at the stack, which
 * tell what the VM takes of that time itself. What a look takes is measured first and taken off. When the VM
 * ends it prints, of each callback,
 *
 *     callbacks: MonitorContendedEntered 42734 times, median 71 ns (10% 60, 90% 95): 0 in the VM's stack, 71 in the agent
 *
 * Medians, because a thread may be interrupted at any time: the mean is that of the interruptions.
 */
#include <jvmti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENTER, ENTERED, WAIT, WAITED, CALLBACKS };
/* Of so many ns each; longer ones are counted as the longest. */
enum { LONGEST = 1 << 15, LOOKS = 10001 };

typedef struct {
    long all, by_ns[LONGEST];
} histogram;

typedef struct timed {
    struct timed *next;
    histogram total[CALLBACKS], stack[CALLBACKS], agent[CALLBACKS];
} timed;

static const char *const NAMES[CALLBACKS] = {
    "MonitorContendedEnter", "MonitorContendedEntered", "MonitorWait", "MonitorWaited"};

/* Of all threads, each in a part of its own. */
static timed *threads;
static __thread timed *mine;

/* Of the callback that runs: what was spent in the VM's stack, and in how many calls. */
static __thread int is_running;
static __thread uint64_t in_stack;
static __thread unsigned calls;

/* Later versions have callbacks behind those that this one knows. */
static union {
    jvmtiEventCallbacks known;
    char all[2 * sizeof(jvmtiEventCallbacks)];
} asked, timing;
static struct jvmtiInterface_1_ vm;
static uint64_t look;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* ---- what was measured ----------------------------------------------------------------------------- */

static void add(histogram *of, uint64_t passed, uint64_t looks) {
    uint64_t off = looks * look;
    uint64_t ns = passed > off ? passed - off : 0;
    of->all++;
    of->by_ns[ns < LONGEST ? ns : LONGEST - 1]++;
}

static timed *of_thread(void) {
    if (mine) return mine;
    mine = calloc(1, sizeof *mine);
    if (!mine) abort();
    mine->next = __atomic_load_n(&threads, __ATOMIC_RELAXED);
    /* Release: a thread that reads the list finds the part cleared. */
    while (!__atomic_compare_exchange_n(&threads, &mine->next, mine, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    return mine;
}

static uint64_t begin(void) {
    of_thread();
    in_stack = calls = 0;
    is_running = 1;
    return now();
}

static void end(int callback, uint64_t since) {
    uint64_t passed = now() - since;
    is_running = 0;
    /* Two looks around each call in it, the half of which that call was told of; one around all. */
    add(&mine->total[callback], passed, 1 + 2 * calls);
    add(&mine->stack[callback], in_stack, calls);
    add(&mine->agent[callback], passed - in_stack, 1 + calls);
}

static long at(const histogram *of, double part) {
    long seen = 0;
    for (int ns = 0; ns < LONGEST; ns++) {
        seen += of->by_ns[ns];
        if (seen > of->all * part) return ns;
    }
    return LONGEST;
}

static void sum(histogram *to, const histogram *from) {
    to->all += from->all;
    for (int ns = 0; ns < LONGEST; ns++) to->by_ns[ns] += from->by_ns[ns];
}

static void report(void) {
    static timed all;
    for (const timed *of = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); of; of = of->next) {
        for (int c = 0; c < CALLBACKS; c++) {
            sum(&all.total[c], &of->total[c]);
            sum(&all.stack[c], &of->stack[c]);
            sum(&all.agent[c], &of->agent[c]);
        }
    }
    for (int c = 0; c < CALLBACKS; c++) {
        if (all.total[c].all == 0) continue;
        printf("callbacks: %s %ld times, median %ld ns (10%% %ld, 90%% %ld): %ld in the VM's stack, %ld in the agent\n",
               NAMES[c], all.total[c].all, at(&all.total[c], 0.5), at(&all.total[c], 0.1), at(&all.total[c], 0.9),
               at(&all.stack[c], 0.5), at(&all.agent[c], 0.5));
    }
    fflush(stdout);
}

/* ---- in place of the VM's functions ----------------------------------------------------------------- */

static jvmtiError JNICALL frame(jvmtiEnv *env, jthread thread, jint depth, jmethodID *method, jlocation *location) {
    if (!is_running) return vm.GetFrameLocation(env, thread, depth, method, location);
    uint64_t since = now();
    jvmtiError error = vm.GetFrameLocation(env, thread, depth, method, location);
    in_stack += now() - since;
    calls++;
    return error;
}

static jvmtiError JNICALL stack(jvmtiEnv *env, jthread thread, jint from, jint most, jvmtiFrameInfo *frames,
                                jint *count) {
    if (!is_running) return vm.GetStackTrace(env, thread, from, most, frames, count);
    uint64_t since = now();
    jvmtiError error = vm.GetStackTrace(env, thread, from, most, frames, count);
    in_stack += now() - since;
    calls++;
    return error;
}

static void JNICALL enter(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object) {
    uint64_t since = begin();
    asked.known.MonitorContendedEnter(env, jni, thread, object);
    end(ENTER, since);
}

static void JNICALL entered(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object) {
    uint64_t since = begin();
    asked.known.MonitorContendedEntered(env, jni, thread, object);
    end(ENTERED, since);
}

static void JNICALL wait_begins(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object, jlong timeout) {
    uint64_t since = begin();
    asked.known.MonitorWait(env, jni, thread, object, timeout);
    end(WAIT, since);
}

static void JNICALL waited(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object, jboolean timed_out) {
    uint64_t since = begin();
    asked.known.MonitorWaited(env, jni, thread, object, timed_out);
    end(WAITED, since);
}

static jvmtiError JNICALL set_callbacks(jvmtiEnv *env, const jvmtiEventCallbacks *callbacks, jint size) {
    if (!callbacks || !callbacks->MonitorContendedEnter || (size_t)size > sizeof asked) {
        return vm.SetEventCallbacks(env, callbacks, size);
    }
    memcpy(&asked, callbacks, size);
    timing = asked;
    timing.known.MonitorContendedEnter = enter;
    timing.known.MonitorContendedEntered = entered;
    timing.known.MonitorWait = wait_begins;
    timing.known.MonitorWaited = waited;
    return vm.SetEventCallbacks(env, &timing.known, size);
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t look_takes(void) {
    static uint64_t passed[LOOKS];
    for (int i = 0; i < LOOKS; i++) {
        uint64_t since = now();
        passed[i] = now() - since;
    }
    qsort(passed, LOOKS, sizeof *passed, by_size);
    return passed[LOOKS / 2];
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *java, char *options, void *reserved) {
    (void)options, (void)reserved;
    jvmtiEnv *env;
    if ((*java)->GetEnv(java, (void **)&env, JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
    look = look_takes();
    struct jvmtiInterface_1_ *table = (struct jvmtiInterface_1_ *)*env;
    vm = *table;
    table->SetEventCallbacks = set_callbacks;
    table->GetFrameLocation = frame;
    table->GetStackTrace = stack;
    return JNI_OK;
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *java) {
    (void)java;
    report();
}
