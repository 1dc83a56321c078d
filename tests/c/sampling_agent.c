/* Another agent that has taken what the VM gives to one agent only: samples of allocations. */
#include <jvmti.h>

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    jvmtiEnv *jvmti = NULL;
    jvmtiCapabilities wanted = {0};
    (void)options;
    (void)reserved;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        return JNI_ERR;
    }
    wanted.can_generate_sampled_object_alloc_events = 1;
    return (*jvmti)->AddCapabilities(jvmti, &wanted) == JVMTI_ERROR_NONE ? JNI_OK : JNI_ERR;
}
