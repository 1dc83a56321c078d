/*
 * Natives that call back into Java, for io.lucce.programs.NativeCallback, NativeThreads, VmCalls and ForeignUpcalls:
 *
 *   cc -shared -fPIC -I$JAVA_HOME/include -I$JAVA_HOME/include/linux \
 *      -o liblucce_callback.so lucce_callback.c -lpthread
 */
#include <jni.h>
#include <pthread.h>
#include <stddef.h>

static JavaVM *vm;

static jmethodID run_of(JNIEnv *env, jobject runnable) {
    jclass type = (*env)->GetObjectClass(env, runnable);
    jmethodID run = (*env)->GetMethodID(env, type, "run", "()V");
    (*env)->DeleteLocalRef(env, type);
    return run;
}

static void call(JNIEnv *env, jobject runnable) {
    jmethodID run = run_of(env, runnable);
    if (run != NULL) {
        (*env)->CallVoidMethod(env, runnable, run);
    }
}

/* Calls Java while the library is being loaded, when no native method is on the stack yet. */
JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *loading, void *reserved) {
    JNIEnv *env;
    (void) reserved;
    vm = loading;
    if ((*vm)->GetEnv(vm, (void **) &env, JNI_VERSION_1_8) != JNI_OK) {
        return JNI_ERR;
    }
    jclass type = (*env)->FindClass(env, "io/lucce/programs/NativeLibrary");
    if (type == NULL) {
        return JNI_ERR;
    }
    jmethodID loaded = (*env)->GetStaticMethodID(env, type, "loaded", "()V");
    if (loaded == NULL) {
        return JNI_ERR;
    }
    (*env)->CallStaticVoidMethod(env, type, loaded);
    return (*env)->ExceptionCheck(env) ? JNI_ERR : JNI_VERSION_1_8;
}

JNIEXPORT void JNICALL Java_io_lucce_programs_NativeLibrary_once(JNIEnv *env, jclass type, jobject runnable) {
    (void) type;
    call(env, runnable);
}

JNIEXPORT void JNICALL Java_io_lucce_programs_NativeLibrary_twice(JNIEnv *env, jclass type, jobject runnable) {
    (void) type;
    call(env, runnable);
    if (!(*env)->ExceptionCheck(env)) {
        call(env, runnable);
    }
}

JNIEXPORT void JNICALL Java_io_lucce_programs_NativeLibrary_times(
        JNIEnv *env, jclass type, jobject runnable, jint times) {
    (void) type;
    for (jint i = 0; i < times && !(*env)->ExceptionCheck(env); i++) {
        call(env, runnable);
    }
}

/* Swallows what the first call throws, then makes another; returns whether the first threw. */
JNIEXPORT jboolean JNICALL Java_io_lucce_programs_NativeLibrary_swallow(
        JNIEnv *env, jclass type, jobject first, jobject second) {
    (void) type;
    call(env, first);
    jboolean thrown = (*env)->ExceptionCheck(env);
    (*env)->ExceptionClear(env);
    call(env, second);
    return thrown;
}

/* Swallows and calls nothing more: the caller goes on with whatever the callee left behind. */
JNIEXPORT jboolean JNICALL Java_io_lucce_programs_NativeLibrary_swallowOnly(
        JNIEnv *env, jclass type, jobject runnable) {
    (void) type;
    call(env, runnable);
    jboolean thrown = (*env)->ExceptionCheck(env);
    (*env)->ExceptionClear(env);
    return thrown;
}

/* Replaces what the call throws by an exception of its own. */
JNIEXPORT void JNICALL Java_io_lucce_programs_NativeLibrary_translate(JNIEnv *env, jclass type, jobject runnable) {
    (void) type;
    call(env, runnable);
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
        jclass state = (*env)->FindClass(env, "java/lang/IllegalStateException");
        if (state != NULL) {
            (*env)->ThrowNew(env, state, "translated");
        }
    }
}

JNIEXPORT void JNICALL Java_io_lucce_programs_NativeLibrary_throwing(JNIEnv *env, jclass type) {
    (void) type;
    jclass state = (*env)->FindClass(env, "java/lang/IllegalStateException");
    if (state != NULL) {
        (*env)->ThrowNew(env, state, "thrown by a native");
    }
}

/* The VM calls the constructor: of what is cleared, and of what is thrown. */
JNIEXPORT void JNICALL Java_io_lucce_programs_NativeLibrary_throwNew(JNIEnv *env, jclass type, jclass thrown) {
    (void) type;
    if ((*env)->ThrowNew(env, thrown, "cleared") == 0) {
        (*env)->ExceptionClear(env);
        (*env)->ThrowNew(env, thrown, "thrown");
    }
}

/* The VM calls printStackTrace, twice. */
JNIEXPORT void JNICALL Java_io_lucce_programs_NativeLibrary_describe(JNIEnv *env, jclass type, jthrowable thrown) {
    (void) type;
    for (int i = 0; i < 2; i++) {
        (*env)->Throw(env, thrown);
        (*env)->ExceptionDescribe(env);
        (*env)->ExceptionClear(env);
    }
}

/* An instance method of its own, so that the receiver is the one who calls back. */
JNIEXPORT jint JNICALL Java_io_lucce_programs_NativeLibrary_nested(JNIEnv *env, jobject self, jint depth) {
    jclass type = (*env)->GetObjectClass(env, self);
    jmethodID back = (*env)->GetMethodID(env, type, "back", "(I)I");
    if (back == NULL) {
        return -1;
    }
    return (*env)->CallIntMethod(env, self, back, depth - 1) + 1;
}

/* The VM initialises the class before it looks for the field. False: the initialiser has thrown; that is cleared. */
JNIEXPORT jboolean JNICALL Java_io_lucce_programs_NativeLibrary_initialize(JNIEnv *env, jclass type, jclass of) {
    (void) type;
    jfieldID field = (*env)->GetStaticFieldID(env, of, "value", "Ljava/lang/Object;");
    (*env)->ExceptionClear(env);
    return field != NULL;
}

/* Loads and initialises by name, with the caller's loader; NULL and no exception if that fails. */
JNIEXPORT jclass JNICALL Java_io_lucce_programs_NativeLibrary_find(JNIEnv *env, jclass type, jstring name) {
    (void) type;
    const char *text = (*env)->GetStringUTFChars(env, name, NULL);
    if (text == NULL) {
        return NULL;
    }
    jclass found = (*env)->FindClass(env, text);
    (*env)->ReleaseStringUTFChars(env, name, text);
    if (found == NULL) {
        (*env)->ExceptionClear(env);
    }
    return found;
}

JNIEXPORT jobject JNICALL Java_io_lucce_programs_NativeLibrary_construct(
        JNIEnv *env, jclass type, jclass constructed, jobject argument) {
    (void) type;
    jmethodID constructor = (*env)->GetMethodID(env, constructed, "<init>", "(Ljava/lang/Object;)V");
    return constructor == NULL ? NULL : (*env)->NewObject(env, constructed, constructor, argument);
}

JNIEXPORT jobject JNICALL Java_io_lucce_programs_NativeLibrary_allocate(JNIEnv *env, jclass type, jint length) {
    (void) type;
    return (*env)->NewByteArray(env, length);
}

/* Calls Base.name() of a Derived: without virtual look-up. */
JNIEXPORT void JNICALL Java_io_lucce_programs_NativeLibrary_nonvirtual(
        JNIEnv *env, jclass type, jobject receiver, jclass declaring) {
    (void) type;
    jmethodID method = (*env)->GetMethodID(env, declaring, "run", "()V");
    if (method != NULL) {
        (*env)->CallNonvirtualVoidMethod(env, receiver, declaring, method);
    }
}

struct work {
    jobject runnable;
    jint rounds;
    int failed;
};

static void *attach_and_call(void *argument) {
    struct work *work = argument;
    for (jint round = 0; round < work->rounds; round++) {
        JNIEnv *env;
        JavaVMAttachArgs options = {JNI_VERSION_1_8, "attached", NULL};
        if ((*vm)->AttachCurrentThread(vm, (void **) &env, &options) != JNI_OK) {
            work->failed = 1;
            return NULL;
        }
        /* Twice without any Java frame below; what the first throws is swallowed. */
        call(env, work->runnable);
        (*env)->ExceptionClear(env);
        call(env, work->runnable);
        (*env)->ExceptionClear(env);
        (*vm)->DetachCurrentThread(vm);
    }
    return NULL;
}

/* Starts native threads which attach, call, detach, and do so again; waits for them. */
JNIEXPORT jboolean JNICALL Java_io_lucce_programs_NativeLibrary_attach(
        JNIEnv *env, jclass type, jobject runnable, jint threads, jint rounds) {
    (void) type;
    enum { MOST = 64 };
    pthread_t ids[MOST];
    struct work work = {(*env)->NewGlobalRef(env, runnable), rounds, 0};
    if (threads > MOST) {
        threads = MOST;
    }
    jint started = 0;
    while (started < threads && pthread_create(&ids[started], NULL, attach_and_call, &work) == 0) {
        started++;
    }
    for (jint i = 0; i < started; i++) {
        pthread_join(ids[i], NULL);
    }
    (*env)->DeleteGlobalRef(env, work.runnable);
    return started == threads && !work.failed;
}

/* Functions that java.lang.foreign makes of Java methods: int f(int). */
typedef jint (*upcall_t)(jint);

static jint failed_upcall(jint argument) {
    return -argument;
}

static upcall_t registered = failed_upcall;
static jobject registered_runnable;

/* Called by java.lang.foreign: calls the function. */
JNIEXPORT jint JNICALL lucce_upcall(jlong function, jint argument) {
    return ((upcall_t) function)(argument);
}

/* Called by java.lang.foreign: calls the function later. */
JNIEXPORT void JNICALL lucce_register(jlong function) {
    registered = (upcall_t) function;
}

JNIEXPORT jint JNICALL lucce_fire(jint argument) {
    return registered(argument);
}

/* The first frame of a thread. */
JNIEXPORT void JNICALL Java_io_lucce_programs_ForeignUpcalls_00024NativeMain_run(JNIEnv *env, jobject self) {
    (void) env;
    (void) self;
    registered(1);
    registered(0);
}

/* Called by java.lang.foreign: calls Java by JNI. */
JNIEXPORT jint JNICALL lucce_run_registered(void) {
    JNIEnv *env;
    if ((*vm)->GetEnv(vm, (void **) &env, JNI_VERSION_1_8) != JNI_OK) {
        return -1;
    }
    call(env, registered_runnable);
    return (*env)->ExceptionCheck(env) ? -1 : 0;
}

JNIEXPORT void JNICALL Java_io_lucce_programs_NativeLibrary_registerRunnable(
        JNIEnv *env, jclass type, jobject runnable) {
    (void) type;
    registered_runnable = (*env)->NewGlobalRef(env, runnable);
}

/* In a native method: calls the function this many times. */
JNIEXPORT jint JNICALL Java_io_lucce_programs_NativeLibrary_upcall(
        JNIEnv *env, jclass type, jlong function, jint argument, jint times) {
    jint result = 0;
    (void) env;
    (void) type;
    for (jint i = 0; i < times; i++) {
        result = ((upcall_t) function)(argument);
    }
    return result;
}

/* In a native method: calls Java by JNI, the function, and Java once more. */
JNIEXPORT jint JNICALL Java_io_lucce_programs_NativeLibrary_upcallBetween(
        JNIEnv *env, jclass type, jlong function, jint argument, jobject runnable) {
    (void) type;
    call(env, runnable);
    jint result = ((upcall_t) function)(argument);
    call(env, runnable);
    return result;
}

/* How a native thread becomes one of the VM's: the first upcall attaches it, or JNI does. */
enum { BY_UPCALL, BY_JNI, AS_DAEMON };

struct upcalls {
    jlong function;
    jobject runnable;
    jint how;
    jint rounds;
    int failed;
};

static void *call_function(void *argument) {
    struct upcalls *upcalls = argument;
    upcall_t function = (upcall_t) upcalls->function;
    for (jint round = 0; round < upcalls->rounds; round++) {
        JNIEnv *env = NULL;
        jint attached = JNI_OK;
        if (upcalls->how == BY_JNI) {
            attached = (*vm)->AttachCurrentThread(vm, (void **) &env, NULL);
        } else if (upcalls->how == AS_DAEMON) {
            attached = (*vm)->AttachCurrentThreadAsDaemon(vm, (void **) &env, NULL);
        }
        if (attached != JNI_OK || function(1) < 0 || function(0) < 0) {
            upcalls->failed = 1;
        }
        /* The upcall has attached the thread. */
        if (env == NULL) {
            attached = (*vm)->GetEnv(vm, (void **) &env, JNI_VERSION_1_8);
        }
        if (attached != JNI_OK) {
            upcalls->failed = 1;
        } else {
            call(env, upcalls->runnable);
        }
        if (function(0) < 0) {
            upcalls->failed = 1;
        }
        (*vm)->DetachCurrentThread(vm);
    }
    return NULL;
}

/* Starts a native thread which calls the function and the object, detaches, and does so again; waits for it. */
JNIEXPORT jboolean JNICALL Java_io_lucce_programs_NativeLibrary_upcallOnThread(
        JNIEnv *env, jclass type, jlong function, jobject runnable, jint how, jint rounds) {
    (void) type;
    struct upcalls upcalls = {function, (*env)->NewGlobalRef(env, runnable), how, rounds, 0};
    pthread_t id;
    if (pthread_create(&id, NULL, call_function, &upcalls) != 0) {
        return JNI_FALSE;
    }
    pthread_join(id, NULL);
    (*env)->DeleteGlobalRef(env, upcalls.runnable);
    return !upcalls.failed;
}
