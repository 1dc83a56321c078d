//! Walks of the heap: which object refers to which, and the names of fields.
//!
//! A walk stops the VM. Callbacks must not call the VM.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use jvmti_bindings::sys::jni::{JavaVM, jclass, jfieldID, jint, jlong, jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;

use super::{JniEnvironment, JvmError, Jvmti, VmHandle, check};

/// One reference: from an object, or from a root.
pub struct HeapReference<'r> {
    pub kind: ReferenceKind,
    /// The tags of the classes of the target and of the referrer.
    pub class_tag: i64,
    pub referrer_class_tag: i64,
    /// The tag of the target. The VM stores the value when the callback returns.
    pub tag: i64,
    /// The tag of the referrer, which may be changed; `None`: the referrer is a root.
    pub referrer: Option<&'r mut i64>,
}

/// The kind of a reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReferenceKind {
    /// An object's field, by its number within its class.
    Field(i32),
    /// A class's static field, numbered as fields are.
    Static(i32),
    Element(i32),
    /// The class of an object.
    Class,
    ClassLoader,
    /// A class loader's reference to a class that it has defined. Walks do not report it: it is known from the class.
    LoadedClass,
    ProtectionDomain,
    Signers,
    Interface,
    ConstantPool,
    Superclass,
    /// Roots.
    JniGlobal,
    SystemClass,
    Monitor,
    Thread,
    /// A variable of a running method.
    Local {
        thread: i64,
        method: usize,
        location: i64,
        slot: i32,
    },
    /// A reference of a running native method, or of native code without a method.
    JniLocal {
        thread: i64,
        method: usize,
    },
    Other,
}

/// How a walk continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WalkControl {
    /// To the target, if it was not visited yet.
    Continue,
    /// Ignores this reference.
    Ignore,
    Stop,
}

/// The state of a walk's callback.
struct HeapWalkCallback<'w> {
    each: &'w mut dyn FnMut(&mut HeapReference<'_>) -> WalkControl,
    failed: bool,
}

impl VmHandle {
    /// Opens a JVMTI environment whose tags no other agent sees.
    ///
    /// # Errors
    /// The VM's error.
    pub fn new_tool_environment(self) -> Result<Jvmti, JvmError> {
        let tools = Jvmti::from_vm(self.0)?;
        let mut wanted = ti::jvmtiCapabilities::default();
        wanted.set_can_tag_objects(true);
        match tools.add_capabilities(&wanted) {
            Ok(()) => Ok(tools),
            Err(failed) => {
                tools.dispose_environment();
                Err(failed)
            }
        }
    }

    /// Returns the VM's own pointer.
    pub fn as_raw(self) -> *mut JavaVM {
        self.0
    }
}

impl Jvmti {
    /// Visits all reachable objects, from one object or from the roots, while the VM is stopped.
    ///
    /// From an object, roots are not reported.
    ///
    /// # Errors
    /// The VM's error; -1: `each` panicked.
    pub fn follow_references(
        self,
        from: Option<jobject>,
        each: &mut dyn FnMut(&mut HeapReference<'_>) -> WalkControl,
    ) -> Result<(), JvmError> {
        let callbacks = ti::jvmtiHeapCallbacks {
            heap_reference_callback: Some(referred),
            ..Default::default()
        };
        let mut walker = HeapWalkCallback {
            each,
            failed: false,
        };
        let data: *const c_void = ptr::from_mut(&mut walker).cast();
        let (none, from) = (ptr::null_mut(), from.unwrap_or(ptr::null_mut()));
        call!(self, FollowReferences, 0, none, from, &callbacks, data)?;
        match walker.failed {
            false => Ok(()),
            true => Err(JvmError(-1)),
        }
    }

    /// Returns the objects with these tags, each with its tag.
    pub fn objects_with_tags(self, tags: &[i64]) -> Vec<(jobject, i64)> {
        let (mut count, mut objects, mut found) = (0, ptr::null_mut(), ptr::null_mut());
        let number = tags.len() as jint;
        let got = call!(
            self,
            GetObjectsWithTags,
            number,
            tags.as_ptr(),
            &mut count,
            &mut objects,
            &mut found
        );
        if got.is_err() || objects.is_null() || found.is_null() {
            return Vec::new();
        }
        // SAFETY: the VM gave `count` of each, in memory that this function owns.
        let (of, by) = unsafe {
            (
                std::slice::from_raw_parts(objects, count as usize),
                std::slice::from_raw_parts(found, count as usize),
            )
        };
        let pairs = of.iter().copied().zip(by.iter().copied()).collect();
        self.deallocate(objects.cast());
        self.deallocate(found.cast());
        pairs
    }

    /// Makes the VM collect its whole heap, and waits for it.
    ///
    /// # Errors
    /// The VM's error.
    pub fn collect_heap(self) -> Result<(), JvmError> {
        call!(self, ForceGarbageCollection)
    }

    /// Returns all loaded classes.
    pub fn loaded_classes(self) -> Vec<jclass> {
        let (mut count, mut table) = (0, ptr::null_mut());
        let got = call!(self, GetLoadedClasses, &mut count, &mut table);
        self.take_array(got, count, table)
    }

    /// Returns a class's own fields, in the order of their numbers. Empty: it has none or is not prepared.
    pub fn class_fields(self, class: jclass) -> Vec<jfieldID> {
        let (mut count, mut table) = (0, ptr::null_mut());
        let got = call!(self, GetClassFields, class, &mut count, &mut table);
        self.take_array(got, count, table)
    }

    /// Returns the interfaces that a class names directly.
    pub fn class_interfaces(self, class: jclass) -> Vec<jclass> {
        let (mut count, mut table) = (0, ptr::null_mut());
        let got = call!(
            self,
            GetImplementedInterfaces,
            class,
            &mut count,
            &mut table
        );
        self.take_array(got, count, table)
    }

    pub fn is_interface(self, class: jclass) -> bool {
        let mut is = 0;
        call!(self, IsInterface, class, &mut is).is_ok() && is != 0
    }

    pub fn field_name(self, class: jclass, field: jfieldID) -> Option<String> {
        let mut name = ptr::null_mut();
        let none = ptr::null_mut();
        call!(self, GetFieldName, class, field, &mut name, none, none).ok()?;
        Some(self.take_string(name))
    }
}

impl JniEnvironment {
    /// Returns the used bytes of the heap, dead objects included, as `Runtime` reports them.
    pub fn heap_bytes(self) -> Option<u64> {
        let class = self.find_class(c"java/lang/Runtime")?;
        let get = self.static_method_id(class, c"getRuntime", c"()Ljava/lang/Runtime;")?;
        let runtime = self.call_static_object(class, get, &[])?;
        let ask = |name| {
            let method = self.method_id(class, name, c"()J")?;
            Some(jni!(self, CallLongMethodA, runtime, method, ptr::null()))
        };
        let bytes = ask(c"totalMemory").zip(ask(c"freeMemory"));
        self.delete_local(runtime);
        self.delete_local(class);
        let (total, free) = bytes.filter(|_| !self.has_exception())?;
        u64::try_from(total - free).ok()
    }

    /// Returns the class loader of the class path and its parents; empty if the VM has none yet.
    pub fn system_loaders(self) -> Vec<jobject> {
        let Some(class) = self.find_class(c"java/lang/ClassLoader") else {
            return Vec::new();
        };
        let descriptor = c"Ljava/lang/ClassLoader;";
        let system = self
            .static_object(class, c"scl", descriptor)
            .filter(|loader| !loader.is_null());
        let parent = self.field_id(class, c"parent", descriptor);
        self.delete_local(class);
        let above = |loader: &jobject| {
            let parent = self.get_object(*loader, parent?);
            (!parent.is_null()).then_some(parent)
        };
        std::iter::successors(system, above).collect()
    }

    /// Returns the superclass; null if there is none.
    pub fn superclass(self, class: jclass) -> jclass {
        jni!(self, GetSuperclass, class)
    }

    /// Whether objects of a class are also objects of the other class.
    pub fn is_assignable(self, class: jclass, to: jclass) -> bool {
        jni!(self, IsAssignableFrom, class, to) != 0
    }
}

unsafe extern "system" fn referred(
    kind: ti::jvmtiHeapReferenceKind,
    info: *const ti::jvmtiHeapReferenceInfo,
    class_tag: jlong,
    referrer_class_tag: jlong,
    _: jlong,
    tag: *mut jlong,
    referrer: *mut jlong,
    _: jint,
    data: *mut c_void,
) -> jint {
    // SAFETY: the pointer that `follow_references` gave to the VM, which calls this while `follow_references` waits.
    let walker = unsafe { &mut *data.cast::<HeapWalkCallback<'_>>() };
    // SAFETY: the VM's own word for the object's tag; read before the other reference to it, which may be the same, is
    // made.
    let own = unsafe { *tag };
    let mut reference = HeapReference {
        // SAFETY: the VM passes `info` together with its `kind`.
        kind: unsafe { reference_kind(kind, info) },
        class_tag,
        referrer_class_tag,
        tag: own,
        // SAFETY: null, or the VM's word; nothing else refers to it now.
        referrer: unsafe { referrer.as_mut() },
    };
    // A panic must not unwind into the VM.
    let next = catch_unwind(AssertUnwindSafe(|| (walker.each)(&mut reference)));
    let new = reference.tag;
    if new != own {
        // SAFETY: the VM's own word for the object's tag; the other reference to it is not used any more.
        unsafe { *tag = new };
    }
    match next {
        Ok(WalkControl::Continue) => ti::JVMTI_VISIT_OBJECTS,
        Ok(WalkControl::Ignore) => 0,
        Ok(WalkControl::Stop) => ti::JVMTI_VISIT_ABORT,
        Err(_) => {
            walker.failed = true;
            ti::JVMTI_VISIT_ABORT
        }
    }
}

/// # Safety
/// `info` is the VM's data for a reference of this kind.
unsafe fn reference_kind(
    kind: ti::jvmtiHeapReferenceKind,
    info: *const ti::jvmtiHeapReferenceInfo,
) -> ReferenceKind {
    // SAFETY: the VM's data has the type of the kind, or is null if the kind has none.
    unsafe {
        match kind {
            ti::JVMTI_HEAP_REFERENCE_FIELD => ReferenceKind::Field((*info).field.index),
            ti::JVMTI_HEAP_REFERENCE_STATIC_FIELD => ReferenceKind::Static((*info).field.index),
            ti::JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT => ReferenceKind::Element((*info).array.index),
            ti::JVMTI_HEAP_REFERENCE_STACK_LOCAL => {
                let local = (*info).stack_local;
                ReferenceKind::Local {
                    thread: local.thread_id,
                    method: local.method as usize,
                    location: local.location,
                    slot: local.slot,
                }
            }
            ti::JVMTI_HEAP_REFERENCE_JNI_LOCAL => {
                let local = (*info).jni_local;
                ReferenceKind::JniLocal {
                    thread: local.thread_id,
                    method: local.method as usize,
                }
            }
            ti::JVMTI_HEAP_REFERENCE_CLASS => ReferenceKind::Class,
            ti::JVMTI_HEAP_REFERENCE_CLASS_LOADER => ReferenceKind::ClassLoader,
            ti::JVMTI_HEAP_REFERENCE_PROTECTION_DOMAIN => ReferenceKind::ProtectionDomain,
            ti::JVMTI_HEAP_REFERENCE_SIGNERS => ReferenceKind::Signers,
            ti::JVMTI_HEAP_REFERENCE_INTERFACE => ReferenceKind::Interface,
            ti::JVMTI_HEAP_REFERENCE_CONSTANT_POOL => ReferenceKind::ConstantPool,
            ti::JVMTI_HEAP_REFERENCE_SUPERCLASS => ReferenceKind::Superclass,
            ti::JVMTI_HEAP_REFERENCE_JNI_GLOBAL => ReferenceKind::JniGlobal,
            ti::JVMTI_HEAP_REFERENCE_SYSTEM_CLASS => ReferenceKind::SystemClass,
            ti::JVMTI_HEAP_REFERENCE_MONITOR => ReferenceKind::Monitor,
            ti::JVMTI_HEAP_REFERENCE_THREAD => ReferenceKind::Thread,
            _ => ReferenceKind::Other,
        }
    }
}

/// Returns a method's id from the form in [`ReferenceKind::Local`].
pub fn method_id_from(id: usize) -> jmethodID {
    ptr::with_exposed_provenance_mut(id)
}
