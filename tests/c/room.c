/* A library whose threads' variables must lie in the block that all libraries of a process share. */
#include <jni.h>

static __thread char room[ROOM] __attribute__((tls_model("initial-exec")));

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void)vm;
    (void)reserved;
    room[ROOM - 1] = 1;
    return JNI_VERSION_1_8;
}
