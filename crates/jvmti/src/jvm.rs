//! Wrappers of the functions of JNI and JVMTI that the agent uses.
//!
//! Every function may be called only with the environment of the calling thread. Object handles are local references
//! unless a name says otherwise. No function runs Java code, except `call_long` and `call_void`.
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "references to objects, methods and threads are handed on to the VM that made them"
)]
#![allow(unsafe_code, reason = "calls through the JVM's function tables")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use jvmti_bindings::sys::jni::{
    JNI_OK, JNI_VERSION_10, JNIEnv, JNINativeInterface_, JavaVM, JavaVMAttachArgs, jclass,
    jfieldID, jint, jlong, jmethodID, jobject, jvalue,
};
use jvmti_bindings::sys::jvmti as ti;
use lucce_bytecode::mutf8;

use crate::hidden_signature::hidden_signature;

/// An error code of the VM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JvmError(pub jint);

/// A JVMTI environment; it may be used on any thread.
#[derive(Clone, Copy)]
pub struct Jvmti(*mut ti::jvmtiEnv);

// SAFETY: JVMTI environments are not bound to a thread (JVMTI specification, "Environments").
unsafe impl Send for Jvmti {}
// SAFETY: several threads may call functions of one environment (JVMTI specification, "Environments").
unsafe impl Sync for Jvmti {}

/// The VM itself; it may be used on any thread.
#[derive(Clone, Copy)]
pub struct VmHandle(*mut JavaVM);

// SAFETY: the invocation interface is not bound to a thread (JNI specification, chapter 5).
unsafe impl Send for VmHandle {}
// SAFETY: several threads may call the invocation interface (JNI specification, chapter 5).
unsafe impl Sync for VmHandle {}

impl VmHandle {
    /// `vm` is the pointer that the VM passed to the agent.
    pub fn new(vm: *mut JavaVM) -> VmHandle {
        VmHandle(vm)
    }

    /// Returns the calling thread's environment, if the thread is attached to the VM.
    pub fn thread_env(self) -> Option<*mut JNIEnv> {
        let mut env = ptr::null_mut();
        // SAFETY: `vm` is the VM's own.
        let code = unsafe { ((**self.0).GetEnv)(self.0, &mut env, JNI_VERSION_10) };
        (code == JNI_OK).then_some(env.cast())
    }

    /// Attaches the calling thread to the VM while `body` runs. Runs Java code.
    ///
    /// The thread gets a name, because a thread without one takes the number of the program's next thread.
    pub fn run_attached<T>(self, body: impl FnOnce(*mut JNIEnv) -> T) -> Result<T, JvmError> {
        const NAME: &CStr = c"lucce";
        let mut env = ptr::null_mut();
        let mut arguments = JavaVMAttachArgs {
            version: JNI_VERSION_10,
            name: NAME.as_ptr().cast_mut(),
            group: ptr::null_mut(),
        };
        let arguments = (&raw mut arguments).cast();
        // SAFETY: `vm` is the VM's own, which only reads the arguments and copies the name.
        let code = unsafe { ((**self.0).AttachCurrentThreadAsDaemon)(self.0, &mut env, arguments) };
        if code != JNI_OK {
            return Err(JvmError(code));
        }
        let result = body(env.cast());
        // SAFETY: `vm` is the VM's own, and this function has attached the thread.
        unsafe { ((**self.0).DetachCurrentThread)(self.0) };
        Ok(result)
    }
}

/// Whether HotSpot has cleared a weak global reference, read without calling the VM.
///
/// For callbacks that must not call the VM while all threads are stopped. Only stop-the-world clearing stores a plain
/// null; a caller must compare once with [`JniEnvironment::is_cleared`] before it relies on this.
///
/// # Safety
/// `weak` is a weak global reference of this VM that nobody deletes meanwhile.
pub unsafe fn is_slot_cleared(weak: jobject) -> bool {
    // HotSpot's tags of references: bit 0, and since JDK 21 bits 0 and 1. A slot is a word.
    const TAGS: usize = size_of::<usize>() - 1;
    let slot = weak.expose_provenance() & !TAGS;
    // SAFETY: the VM keeps a slot until its reference is deleted.
    unsafe { ptr::with_exposed_provenance::<usize>(slot).read_volatile() == 0 }
}

/// A frame of a Java stack in JVMTI's form.
pub type FrameInfo = ti::jvmtiFrameInfo;

/// Calls a function of JVMTI; a missing function counts as a failure.
macro_rules! call {
    ($self:ident, $name:ident $(, $arg:expr)*) => {{
        // SAFETY: the table belongs to this environment; arguments follow its prototypes.
        unsafe {
            match (*(*$self.0).functions).$name {
                Some(f) => check(f($self.0 $(, $arg)*)),
                None => Err(JvmError(-1)),
            }
        }
    }};
}

fn check(code: ti::jvmtiError) -> Result<(), JvmError> {
    if code == ti::jvmtiError::NONE {
        Ok(())
    } else {
        Err(JvmError(code.raw()))
    }
}

impl Jvmti {
    /// Opens an environment of the newest supported interface version: 21 supports virtual threads.
    pub fn from_vm(vm: *mut JavaVM) -> Result<Jvmti, JvmError> {
        for version in [ti::JVMTI_VERSION_21, ti::JVMTI_VERSION_11] {
            let mut env = ptr::null_mut();
            // SAFETY: `vm` is what the VM gave to Agent_OnLoad.
            let code = unsafe { ((**vm).GetEnv)(vm, &mut env, version) };
            if code == JNI_OK {
                return Ok(Jvmti(env.cast()));
            }
        }
        Err(JvmError(-3))
    }

    pub fn add_capabilities(self, wanted: &ti::jvmtiCapabilities) -> Result<(), JvmError> {
        call!(self, AddCapabilities, wanted)
    }

    pub fn potential_capabilities(self) -> Result<ti::jvmtiCapabilities, JvmError> {
        let mut capabilities = ti::jvmtiCapabilities::default();
        call!(self, GetPotentialCapabilities, &mut capabilities)?;
        Ok(capabilities)
    }

    pub fn set_callbacks(self, callbacks: &ti::jvmtiEventCallbacks) -> Result<(), JvmError> {
        let size = size_of::<ti::jvmtiEventCallbacks>() as jint;
        call!(self, SetEventCallbacks, callbacks, size)
    }

    pub fn enable_event(self, event: ti::jvmtiEvent) -> Result<(), JvmError> {
        self.set_notification_mode(ti::JVMTI_ENABLE, event)
    }

    pub fn disable_event(self, event: ti::jvmtiEvent) -> Result<(), JvmError> {
        self.set_notification_mode(ti::JVMTI_DISABLE, event)
    }

    fn set_notification_mode(
        self,
        mode: ti::jvmtiEventMode,
        event: ti::jvmtiEvent,
    ) -> Result<(), JvmError> {
        call!(self, SetEventNotificationMode, mode, event, ptr::null_mut())
    }

    /// Returns the VM's Java version: 17, 21, …
    pub fn java_version(self) -> Result<u32, JvmError> {
        let mut version = 0;
        call!(self, GetVersionNumber, &mut version)?;
        Ok(ti::version_feature(version).into())
    }

    /// Ends this environment, which must not be used again.
    pub fn dispose_environment(self) {
        // Fails only for an invalid environment.
        let _ = call!(self, DisposeEnvironment);
    }

    pub fn relinquish_capabilities(
        self,
        capabilities: &ti::jvmtiCapabilities,
    ) -> Result<(), JvmError> {
        call!(self, RelinquishCapabilities, capabilities)
    }

    /// Sets the mean number of bytes between two sampled allocations; 0: every allocation is sampled.
    pub fn set_sampling_interval(self, bytes: u32) -> Result<(), JvmError> {
        call!(self, SetHeapSamplingInterval, bytes as jint)
    }

    pub fn system_property(self, key: &CStr) -> Option<String> {
        let mut text = ptr::null_mut();
        call!(self, GetSystemProperty, key.as_ptr(), &mut text).ok()?;
        // In the encoding of the system.
        Some(self.take_string_with(text, |text| text.to_string_lossy().into_owned()))
    }

    /// Copies and frees a string of the VM, which is in modified UTF-8.
    fn take_string(self, text: *mut c_char) -> String {
        self.take_string_with(text, |text| mutf8::decode(text.to_bytes()).into_owned())
    }

    fn take_string_with(self, text: *mut c_char, read: impl FnOnce(&CStr) -> String) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the VM gave a terminated string that this function owns.
        let copy = read(unsafe { CStr::from_ptr(text) });
        self.deallocate(text.cast());
        copy
    }

    fn deallocate(self, memory: *mut u8) {
        // Fails only for memory that is not the VM's.
        let _ = call!(self, Deallocate, memory);
    }

    /// Copies `bytes` to memory that the VM will free: for class files.
    pub fn bytes_for_vm(self, bytes: &[u8]) -> Option<*mut u8> {
        let mut memory = ptr::null_mut();
        call!(self, Allocate, bytes.len() as jlong, &mut memory).ok()?;
        // SAFETY: just allocated, of that size.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
        Some(memory)
    }

    /// Reads frames of `thread`, innermost first, from depth `start`; null is the current thread.
    pub fn read_stack_from(
        self,
        thread: jobject,
        start: usize,
        into: &mut [FrameInfo],
    ) -> Result<usize, JvmError> {
        let mut count = 0;
        let (start, room) = (start as jint, into.len() as jint);
        call!(
            self,
            GetStackTrace,
            thread,
            start,
            room,
            into.as_mut_ptr(),
            &mut count
        )?;
        Ok(count as usize)
    }

    /// Reads frames of a thread, innermost first. Returns their number.
    ///
    /// # Errors
    /// The VM's error, for example because the thread has ended.
    pub fn read_stack(self, thread: jobject, into: &mut [FrameInfo]) -> Result<usize, JvmError> {
        let mut count = 0;
        let room = into.len() as jint;
        call!(
            self,
            GetStackTrace,
            thread,
            0,
            room,
            into.as_mut_ptr(),
            &mut count
        )?;
        Ok(count as usize)
    }

    /// Returns method and location of the current thread's frame at `depth`; 0 is the innermost frame.
    pub fn frame_location(self, depth: i32) -> Option<(jmethodID, i64)> {
        let (mut method, mut location) = (ptr::null_mut(), 0);
        call!(
            self,
            GetFrameLocation,
            ptr::null_mut(),
            depth,
            &mut method,
            &mut location
        )
        .ok()?;
        Some((method, location))
    }

    pub fn current_thread(self) -> Option<jobject> {
        let mut thread = ptr::null_mut();
        call!(self, GetCurrentThread, &mut thread).ok()?;
        (!thread.is_null()).then_some(thread)
    }

    /// Returns the live platform threads.
    pub fn all_threads(self) -> Vec<jobject> {
        let (mut count, mut table) = (0, ptr::null_mut());
        let got = call!(self, GetAllThreads, &mut count, &mut table);
        self.take_array(got, count, table)
    }

    pub fn set_breakpoint(self, method: jmethodID, location: i64) -> Result<(), JvmError> {
        call!(self, SetBreakpoint, method, location)
    }

    pub fn class_methods(self, class: jclass) -> Vec<jmethodID> {
        let (mut count, mut table) = (0, ptr::null_mut());
        let got = call!(self, GetClassMethods, class, &mut count, &mut table);
        self.take_array(got, count, table)
    }

    pub fn declaring_class(self, method: jmethodID) -> Option<jclass> {
        let mut class = ptr::null_mut();
        call!(self, GetMethodDeclaringClass, method, &mut class).ok()?;
        Some(class)
    }

    /// Returns name and descriptor.
    pub fn method_name(self, method: jmethodID) -> Option<(String, String)> {
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        call!(
            self,
            GetMethodName,
            method,
            &mut name,
            &mut descriptor,
            ptr::null_mut()
        )
        .ok()?;
        Some((self.take_string(name), self.take_string(descriptor)))
    }

    /// Returns the access flags of the class file.
    pub fn method_modifiers(self, method: jmethodID) -> u16 {
        let mut flags = 0;
        match call!(self, GetMethodModifiers, method, &mut flags) {
            Ok(()) => flags as u16,
            Err(_) => 0,
        }
    }

    pub fn source_file(self, class: jclass) -> Option<String> {
        let mut text = ptr::null_mut();
        call!(self, GetSourceFileName, class, &mut text).ok()?;
        Some(self.take_string(text))
    }

    /// Returns the signature, such as `La/b/C;`. A dot in it marks a hidden class, in JDK 11 one that is anonymous for the VM.
    pub fn class_signature(self, class: jclass) -> Option<String> {
        let mut text = ptr::null_mut();
        call!(self, GetClassSignature, class, &mut text, ptr::null_mut()).ok()?;
        let signature = self.take_string(text);
        match hidden_signature(&signature) {
            Some(hidden) if !self.is_modifiable(class) => Some(hidden),
            _ => Some(signature),
        }
    }

    /// Whether the VM can change the class. Before the VM has started it does not tell.
    fn is_modifiable(self, class: jclass) -> bool {
        let mut modifiable = 1;
        call!(self, IsModifiableClass, class, &mut modifiable).is_err() || modifiable != 0
    }

    /// Returns the class loader; null is the boot loader.
    pub fn class_loader(self, class: jclass) -> Option<jobject> {
        let mut loader = ptr::null_mut();
        call!(self, GetClassLoader, class, &mut loader).ok()?;
        Some(loader)
    }

    pub fn is_native(self, method: jmethodID) -> bool {
        let mut native = 0;
        call!(self, IsMethodNative, method, &mut native).is_ok() && native != 0
    }

    /// Returns (start location, line) in the order of the class file; empty if there is no table.
    pub fn line_table(self, method: jmethodID) -> Vec<(i64, i32)> {
        let (mut count, mut table) = (0, ptr::null_mut());
        if call!(self, GetLineNumberTable, method, &mut count, &mut table).is_err()
            || table.is_null()
        {
            return Vec::new();
        }
        // SAFETY: the VM gave `count` entries that this function owns.
        let entries = unsafe { std::slice::from_raw_parts(table, count as usize) };
        let lines = entries
            .iter()
            .map(|e| (e.start_location, e.line_number))
            .collect();
        self.deallocate(table.cast());
        lines
    }

    /// Returns the location of the method's last instruction; -1 if unknown.
    pub fn last_location(self, method: jmethodID) -> i64 {
        let (mut first, mut last) = (-1, -1);
        let result = call!(self, GetMethodLocation, method, &mut first, &mut last);
        if result.is_ok() { last } else { -1 }
    }

    /// Returns a method's bytecode as the VM runs it.
    pub fn method_bytecodes(self, method: jmethodID) -> Vec<u8> {
        let (mut count, mut code) = (0, ptr::null_mut());
        let got = call!(self, GetBytecodes, method, &mut count, &mut code);
        self.take_array(got, count, code)
    }

    /// Copies and frees an array of the VM; empty after an error.
    fn take_array<T: Copy>(self, got: Result<(), JvmError>, count: jint, table: *mut T) -> Vec<T> {
        if got.is_err() || table.is_null() {
            return Vec::new();
        }
        // SAFETY: the VM gave `count` of them in memory that this function owns.
        let all = unsafe { std::slice::from_raw_parts(table, count as usize) }.to_vec();
        self.deallocate(table.cast());
        all
    }

    /// Whether the method was redefined; frames may still run this version.
    pub fn is_obsolete(self, method: jmethodID) -> bool {
        let mut is_obsolete = 0;
        call!(self, IsMethodObsolete, method, &mut is_obsolete).is_err() || is_obsolete != 0
    }

    /// Returns the constant pool count (JVMS 4.1) and the constants of a class.
    pub fn constant_pool(self, class: jclass) -> Option<(u16, Vec<u8>)> {
        let (mut count, mut size, mut pool) = (0, 0, ptr::null_mut());
        let got = call!(
            self,
            GetConstantPool,
            class,
            &mut count,
            &mut size,
            &mut pool
        );
        let pool = self.take_array(got, size, pool);
        (!pool.is_empty()).then_some((u16::try_from(count).ok()?, pool))
    }

    pub fn get_tag(self, object: jobject) -> Result<i64, JvmError> {
        let mut tag = 0;
        call!(self, GetTag, object, &mut tag)?;
        Ok(tag)
    }

    pub fn set_tag(self, object: jobject, tag: i64) -> Result<(), JvmError> {
        call!(self, SetTag, object, tag)
    }

    pub fn object_size(self, object: jobject) -> Option<u64> {
        let mut size = 0;
        call!(self, GetObjectSize, object, &mut size).ok()?;
        u64::try_from(size).ok()
    }

    /// Redefines all classes at once.
    pub fn redefine_classes(self, classes: &[(jclass, &Vec<u8>)]) -> Result<(), JvmError> {
        let definition = |(class, bytes): &(jclass, &Vec<u8>)| ti::jvmtiClassDefinition {
            klass: *class,
            class_byte_count: bytes.len() as jint,
            class_bytes: bytes.as_ptr(),
        };
        let all: Vec<_> = classes.iter().map(definition).collect();
        call!(self, RedefineClasses, all.len() as jint, all.as_ptr())
    }

    /// Asks the VM for the classes' bytes again, with the class file load hook.
    pub fn retransform_classes(self, classes: &[jclass]) -> Result<(), JvmError> {
        if classes.is_empty() {
            return Ok(());
        }
        call!(
            self,
            RetransformClasses,
            classes.len() as jint,
            classes.as_ptr()
        )
    }

    /// Returns the value stored with a thread; null: none. `None`: the VM does not say.
    pub fn thread_storage(self, thread: jobject) -> Option<*mut c_void> {
        let mut kept = ptr::null_mut();
        call!(self, GetThreadLocalStorage, thread, &mut kept).ok()?;
        Some(kept)
    }

    /// Stores a value with a thread.
    pub fn set_thread_storage(self, thread: jobject, what: *mut c_void) -> Result<(), JvmError> {
        call!(self, SetThreadLocalStorage, thread, what)
    }

    /// Returns the current thread's name. Must not be called while a virtual thread is being mounted or unmounted.
    pub fn thread_name(self, env: JniEnvironment) -> Option<String> {
        // SAFETY: a plain C structure, filled in by the call.
        let mut info: ti::jvmtiThreadInfo = unsafe { std::mem::zeroed() };
        call!(self, GetThreadInfo, ptr::null_mut(), &mut info).ok()?;
        env.delete_local(info.thread_group);
        env.delete_local(info.context_class_loader);
        Some(self.take_string(info.name))
    }

    /// Returns `this` of the current thread's innermost frame that has one.
    pub fn innermost_this(self) -> Option<jobject> {
        const FRAMES: jint = 8;
        (0..FRAMES).find_map(|depth| {
            let mut this = ptr::null_mut();
            call!(self, GetLocalInstance, ptr::null_mut(), depth, &mut this).ok()?;
            (!this.is_null()).then_some(this)
        })
    }

    /// Returns a copy of the JNI function table.
    pub fn jni_table(self) -> Option<*mut JNINativeInterface_> {
        let mut table = ptr::null_mut();
        call!(self, GetJNIFunctionTable, &mut table).ok()?;
        Some(table)
    }

    /// Replaces the JNI function table for all threads.
    pub fn set_jni_table(self, table: *const JNINativeInterface_) -> Result<(), JvmError> {
        call!(self, SetJNIFunctionTable, table)
    }
}

/// The calling thread's JNI environment.
#[derive(Clone, Copy)]
pub struct JniEnvironment {
    env: *mut JNIEnv,
    /// The functions to call: those before brackets were installed.
    table: *const JNINativeInterface_,
}

/// Calls a JNI function.
macro_rules! jni {
    ($self:ident, $name:ident $(, $arg:expr)*) => {{
        // SAFETY: the table is the VM's own; arguments follow its prototypes.
        unsafe { ((*$self.table).$name)($self.env $(, $arg)*) }
    }};
}

pub mod heap;
pub mod tool_table;

impl JniEnvironment {
    /// `env` belongs to the calling thread; if `table` is null, its current table is used.
    pub fn new(env: *mut JNIEnv, table: *const JNINativeInterface_) -> JniEnvironment {
        let table = match table.is_null() {
            // SAFETY: the VM passed `env` to the function that is running.
            true => unsafe { *env },
            false => table,
        };
        JniEnvironment { env, table }
    }

    /// Returns the raw environment.
    pub fn as_raw(self) -> *mut JNIEnv {
        self.env
    }

    /// Returns the VM of the environment.
    pub fn vm(self) -> Option<VmHandle> {
        let mut vm = ptr::null_mut();
        let code = jni!(self, GetJavaVM, &mut vm);
        (code == JNI_OK && !vm.is_null()).then(|| VmHandle::new(vm))
    }

    /// Reserves this many local references, beyond the sixteen that are always available.
    pub fn reserve_references(self, references: jint) {
        // On failure the VM reports it, and the references are created one by one.
        jni!(self, EnsureLocalCapacity, references);
    }

    pub fn delete_local(self, object: jobject) {
        if !object.is_null() {
            jni!(self, DeleteLocalRef, object);
        }
    }

    /// Before JDK 21 no thread is virtual.
    pub fn is_virtual_thread(self, thread: jobject) -> bool {
        const JNI_21: jint = 0x0015_0000;
        jni!(self, GetVersion) >= JNI_21 && jni!(self, IsVirtualThread, thread) != 0
    }

    pub fn has_exception(self) -> bool {
        jni!(self, ExceptionCheck) != 0
    }

    pub fn clear_exception(self) {
        jni!(self, ExceptionClear);
    }

    /// Clears the pending exception and returns it; null if there is none.
    pub fn take_exception(self) -> jobject {
        let exception = jni!(self, ExceptionOccurred);
        if !exception.is_null() {
            self.clear_exception();
        }
        exception
    }

    pub fn throw_exception(self, exception: jobject) {
        jni!(self, Throw, exception);
    }

    pub fn throw_new(self, class: &CStr, message: &str) {
        let message = CString::new(message).unwrap_or_default();
        if let Some(class) = self.find_class(class) {
            jni!(self, ThrowNew, class, message.as_ptr());
            self.delete_local(class);
        }
    }

    pub fn find_class(self, name: &CStr) -> Option<jclass> {
        let class = jni!(self, FindClass, name.as_ptr());
        self.check_result(class)
    }

    /// Turns null after an exception into `None`, and clears the exception.
    fn check_result<T>(self, pointer: *mut T) -> Option<*mut T> {
        if self.has_exception() {
            self.clear_exception();
            return None;
        }
        (!pointer.is_null()).then_some(pointer)
    }

    /// Defines a class in the boot loader.
    pub fn define_boot_class(self, name: &CStr, bytes: &[u8]) -> Option<jclass> {
        let class = jni!(
            self,
            DefineClass,
            name.as_ptr(),
            ptr::null_mut(),
            bytes.as_ptr().cast(),
            bytes.len() as jint
        );
        self.check_result(class)
    }

    pub fn new_global(self, object: jobject) -> jobject {
        jni!(self, NewGlobalRef, object)
    }

    pub fn new_weak_global(self, object: jobject) -> jobject {
        jni!(self, NewWeakGlobalRef, object)
    }

    pub fn delete_global(self, object: jobject) {
        jni!(self, DeleteGlobalRef, object);
    }

    pub fn delete_weak(self, object: jobject) {
        jni!(self, DeleteWeakGlobalRef, object);
    }

    /// Whether the object of a weak reference was collected.
    pub fn is_cleared(self, weak: jobject) -> bool {
        self.is_same(weak, ptr::null_mut())
    }

    pub fn get_object(self, object: jobject, field: jfieldID) -> jobject {
        jni!(self, GetObjectField, object, field)
    }

    /// Returns a local reference to the object of a weak reference; null if it was collected.
    pub fn new_local(self, object: jobject) -> jobject {
        jni!(self, NewLocalRef, object)
    }

    pub fn is_same(self, a: jobject, b: jobject) -> bool {
        jni!(self, IsSameObject, a, b) != 0
    }

    pub fn class_of(self, object: jobject) -> jclass {
        jni!(self, GetObjectClass, object)
    }

    pub fn field_id(self, class: jclass, name: &CStr, descriptor: &CStr) -> Option<jfieldID> {
        let field = jni!(self, GetFieldID, class, name.as_ptr(), descriptor.as_ptr());
        self.check_result(field)
    }

    pub fn get_long(self, object: jobject, field: jfieldID) -> i64 {
        jni!(self, GetLongField, object, field)
    }

    pub fn get_int(self, object: jobject, field: jfieldID) -> i32 {
        jni!(self, GetIntField, object, field)
    }

    pub fn set_long(self, object: jobject, field: jfieldID, value: i64) {
        jni!(self, SetLongField, object, field, value);
    }

    pub fn get_boolean(self, object: jobject, field: jfieldID) -> bool {
        jni!(self, GetBooleanField, object, field) != 0
    }

    fn static_field_id(self, class: jclass, name: &CStr, descriptor: &CStr) -> Option<jfieldID> {
        let (name, descriptor) = (name.as_ptr(), descriptor.as_ptr());
        let field = jni!(self, GetStaticFieldID, class, name, descriptor);
        self.check_result(field)
    }

    pub fn set_static_long(self, class: jclass, name: &CStr, value: i64) -> Option<()> {
        let field = self.static_field_id(class, name, c"J")?;
        jni!(self, SetStaticLongField, class, field, value);
        Some(())
    }

    pub fn static_object(self, class: jclass, name: &CStr, descriptor: &CStr) -> Option<jobject> {
        let field = self.static_field_id(class, name, descriptor)?;
        Some(jni!(self, GetStaticObjectField, class, field))
    }

    pub fn set_static_object(
        self,
        class: jclass,
        name: &CStr,
        descriptor: &CStr,
        value: jobject,
    ) -> Option<()> {
        let field = self.static_field_id(class, name, descriptor)?;
        jni!(self, SetStaticObjectField, class, field, value);
        Some(())
    }

    pub fn set_static_int(self, class: jclass, name: &CStr, value: i32) -> Option<()> {
        let field = self.static_field_id(class, name, c"I")?;
        jni!(self, SetStaticIntField, class, field, value);
        Some(())
    }

    pub fn set_static_boolean(self, class: jclass, name: &CStr) -> Option<()> {
        let field = self.static_field_id(class, name, c"Z")?;
        jni!(self, SetStaticBooleanField, class, field, 1);
        Some(())
    }

    pub fn method_id(self, class: jclass, name: &CStr, descriptor: &CStr) -> Option<jmethodID> {
        let method = jni!(self, GetMethodID, class, name.as_ptr(), descriptor.as_ptr());
        self.check_result(method)
    }

    pub fn static_method_id(
        self,
        class: jclass,
        name: &CStr,
        descriptor: &CStr,
    ) -> Option<jmethodID> {
        let method = jni!(
            self,
            GetStaticMethodID,
            class,
            name.as_ptr(),
            descriptor.as_ptr()
        );
        self.check_result(method)
    }

    /// Returns 0 after an exception, which stays pending.
    pub fn call_long(self, class: jclass, method: jmethodID, args: &[jvalue]) -> i64 {
        let value = jni!(self, CallStaticLongMethodA, class, method, args.as_ptr());
        if self.has_exception() { 0 } else { value }
    }

    /// Returns whether it ended without an exception.
    pub fn call_void(self, class: jclass, method: jmethodID, args: &[jvalue]) -> bool {
        jni!(self, CallStaticVoidMethodA, class, method, args.as_ptr());
        !self.has_exception()
    }

    /// For natives of the VM that run no Java code.
    pub fn call_void_on(self, object: jobject, method: jmethodID, args: &[jvalue]) {
        jni!(self, CallVoidMethodA, object, method, args.as_ptr());
        self.clear_exception();
    }

    /// For natives of the VM that run no Java code.
    pub fn call_object(
        self,
        object: jobject,
        method: jmethodID,
        args: &[jvalue],
    ) -> Option<jobject> {
        self.check_result(self.call_object_as_is(object, method, args))
    }

    /// The caller must handle null and a pending exception.
    pub fn call_object_as_is(self, object: jobject, method: jmethodID, args: &[jvalue]) -> jobject {
        jni!(self, CallObjectMethodA, object, method, args.as_ptr())
    }

    pub fn call_static_object(
        self,
        class: jclass,
        method: jmethodID,
        args: &[jvalue],
    ) -> Option<jobject> {
        let object = jni!(self, CallStaticObjectMethodA, class, method, args.as_ptr());
        self.check_result(object)
    }

    pub fn new_string(self, text: &str) -> Option<jobject> {
        let units = mutf8::to_utf16(text);
        let string = jni!(self, NewString, units.as_ptr(), units.len() as jint);
        self.check_result(string)
    }

    /// Returns the first `most` UTF-16 units of a string.
    pub fn read_string(self, string: jobject, most: usize) -> String {
        let length = jni!(self, GetStringLength, string).clamp(0, most as jint);
        let mut units = vec![0_u16; length as usize];
        jni!(self, GetStringRegion, string, 0, length, units.as_mut_ptr());
        mutf8::from_utf16(&units)
    }

    /// Returns an instance whose constructor has not run.
    pub fn allocate_object(self, class: jclass) -> Option<jobject> {
        let object = jni!(self, AllocObject, class);
        self.check_result(object)
    }

    pub fn new_bytes(self, length: i32) -> Option<jobject> {
        let array = jni!(self, NewByteArray, length);
        self.check_result(array)
    }

    pub fn new_longs(self, length: i32) -> Option<jobject> {
        let array = jni!(self, NewLongArray, length);
        self.check_result(array)
    }

    pub fn new_objects(self, class: jclass, length: i32) -> Option<jobject> {
        let array = jni!(self, NewObjectArray, length, class, ptr::null_mut());
        self.check_result(array)
    }

    /// Returns a local reference to an element; the array must have it.
    pub fn get_element(self, array: jobject, index: i32) -> jobject {
        jni!(self, GetObjectArrayElement, array, index)
    }

    pub fn set_element(self, array: jobject, index: i32, value: jobject) {
        jni!(self, SetObjectArrayElement, array, index, value);
    }

    pub fn new_object(
        self,
        class: jclass,
        constructor: jmethodID,
        args: &[jvalue],
    ) -> Option<jobject> {
        let object = jni!(self, NewObjectA, class, constructor, args.as_ptr());
        self.check_result(object)
    }

    /// Returns a part of a byte array; `None` if it is out of range.
    pub fn read_bytes(self, array: jobject, offset: i32, length: i32) -> Option<Vec<u8>> {
        let mut bytes = vec![0_u8; usize::try_from(length).ok()?];
        jni!(
            self,
            GetByteArrayRegion,
            array,
            offset,
            length,
            bytes.as_mut_ptr().cast()
        );
        if self.has_exception() {
            self.clear_exception();
            return None;
        }
        Some(bytes)
    }

    pub fn read_all_bytes(self, array: jobject) -> Option<Vec<u8>> {
        let length = jni!(self, GetArrayLength, array);
        self.read_bytes(array, 0, length)
    }

    pub fn new_byte_array(self, bytes: &[u8]) -> Option<jobject> {
        let length = jint::try_from(bytes.len()).ok()?;
        let array = self.new_bytes(length)?;
        jni!(
            self,
            SetByteArrayRegion,
            array,
            0,
            length,
            bytes.as_ptr().cast()
        );
        Some(array)
    }
}

/// Returns a C string for a name passed to the VM: modified UTF-8 holds no zero byte.
pub fn c_string(text: &str) -> CString {
    CString::new(mutf8::encode(text)).unwrap_or_default()
}
