/*
 * Natives that allocate memory in known numbers, for tests/java/NativeMemory.java.
 */
#define _GNU_SOURCE
#include <jni.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* So that no compiler leaves an allocation out. */
static void *volatile kept[4096];
static int used;

static void *keep(void *block) {
    kept[used++ % 4096] = block;
    return block;
}

/* For constructors of other libraries. Half of the blocks is released. */
static void allocate_half(int count, int bytes) {
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(bytes);
        if (i % 2 == 0) {
            free(block);
        }
    }
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void) vm;
    (void) reserved;
    keep(malloc(4444));
    char address[32];
    snprintf(address, sizeof address, "%p", (void *) allocate_half);
    setenv("LUCCE_TEST_ALLOCATE", address, 1);
    return JNI_VERSION_1_8;
}

JNIEXPORT void JNICALL Java_NativeMemory_mallocKept(JNIEnv *env, jclass type, jint count, jint bytes) {
    (void) env;
    (void) type;
    for (int i = 0; i < count; i++) {
        keep(malloc(bytes));
    }
}

JNIEXPORT void JNICALL Java_NativeMemory_mallocFreed(JNIEnv *env, jclass type, jint count, jint bytes) {
    (void) env;
    (void) type;
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(bytes);
        free(block);
    }
}

JNIEXPORT void JNICALL Java_NativeMemory_callocKept(JNIEnv *env, jclass type, jint count, jint bytes) {
    (void) env;
    (void) type;
    keep(calloc(count, bytes));
}

/* One block, which grows this number of times. */
JNIEXPORT void JNICALL Java_NativeMemory_reallocKept(JNIEnv *env, jclass type, jint count, jint bytes) {
    (void) env;
    (void) type;
    void *block = NULL;
    for (int i = 1; i <= count; i++) {
        block = realloc(block, (size_t) i * bytes);
    }
    keep(block);
}

static void *map(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Half of a mapping stays. */
JNIEXPORT void JNICALL Java_NativeMemory_mmapHalf(JNIEnv *env, jclass type, jint count, jint bytes) {
    (void) env;
    (void) type;
    for (int i = 0; i < count; i++) {
        char *pages = map(bytes);
        munmap(pages, bytes / 2);
    }
}

/* While an exception is pending. */
JNIEXPORT void JNICALL Java_NativeMemory_throwKept(JNIEnv *env, jclass type, jint bytes) {
    (void) type;
    jclass thrown = (*env)->FindClass(env, "java/lang/IllegalStateException");
    (*env)->ThrowNew(env, thrown, "thrown by native code");
    keep(malloc(bytes));
}

/* While the VM may move no object. */
JNIEXPORT void JNICALL Java_NativeMemory_criticalKept(JNIEnv *env, jclass type, jbyteArray array, jint count, jint bytes) {
    (void) type;
    for (int i = 0; i < count; i++) {
        void *content = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
        keep(malloc(bytes));
        (*env)->ReleasePrimitiveArrayCritical(env, array, content, JNI_ABORT);
    }
}

/* A block that cannot grow lives on, one that moves does not. */
JNIEXPORT void JNICALL Java_NativeMemory_criticalChanged(JNIEnv *env, jclass type, jbyteArray array, jint count, jint bytes) {
    (void) type;
    for (int i = 0; i < count; i++) {
        void *content = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
        void *block = malloc(bytes);
        void *larger = realloc(block, PTRDIFF_MAX - (size_t) i);
        keep(larger == NULL ? block : larger);
        keep(reallocarray(malloc(bytes), 2, bytes));
        (*env)->ReleasePrimitiveArrayCritical(env, array, content, JNI_ABORT);
    }
}

JNIEXPORT void JNICALL Java_NativeMemory_reallocarrayKept(JNIEnv *env, jclass type, jint count, jint bytes) {
    (void) env;
    (void) type;
    void *block = NULL;
    for (int i = 1; i <= count; i++) {
        block = reallocarray(block, i, bytes);
    }
    keep(block);
}

/* Frees what another function has kept last, in any thread. */
JNIEXPORT void JNICALL Java_NativeMemory_freeLast(JNIEnv *env, jclass type, jint count) {
    (void) env;
    (void) type;
    for (int i = 0; i < count; i++) {
        used--;
        free(kept[used % 4096]);
    }
}

static void *allocate_in_thread(void *bytes) {
    keep(malloc((size_t) bytes));
    return NULL;
}

/* In a thread that the VM does not know. */
JNIEXPORT void JNICALL Java_NativeMemory_foreignThread(JNIEnv *env, jclass type, jint bytes) {
    (void) env;
    (void) type;
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_in_thread, (void *) (size_t) bytes) == 0) {
        pthread_join(thread, NULL);
    }
}

/* A child process, which allocates and ends. Whether it ended well. */
JNIEXPORT jboolean JNICALL Java_NativeMemory_forked(JNIEnv *env, jclass type) {
    (void) env;
    (void) type;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; i++) {
            void *volatile block = malloc(3333);
            free(block);
        }
        _exit(malloc(5555) == NULL);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
