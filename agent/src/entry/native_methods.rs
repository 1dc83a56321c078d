//! The JDK's native methods that allocate and release memory outside of the heap, with `events=native`.
//!
//! The VM reports each native method before it binds it. The functions here take the place of the methods' own ones, and call
//! them. They stay bound when the agent leaves: then they do nothing else.
#![allow(
    unsafe_code,
    reason = "functions that the JVM calls, and the JDK's functions that they replace"
)]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use jvmti_bindings::sys::jni::{JNIEnv, jint, jlong, jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_instrument::kinds::NATIVE;
use lucce_jvmti::JniEnvironment;

use crate::counting::living_blocks::{MemoryBlock, ReleasedBlock};
use crate::events::native_memory::{self, MAPPED_FILE, UNSAFE};
use crate::hookless;
use crate::session::Agent;
use crate::session::guard::{guard_callback, guard_event};
use crate::thread::event_kind::EventKind;
use crate::thread::lifecycle::current_state;

/// A native method, and what takes its place.
struct ReplacedMethod {
    class: &'static str,
    name: &'static str,
    descriptor: &'static str,
    replacement: fn() -> usize,
    original: &'static AtomicUsize,
}

const UNSAFE_CLASS: &str = "Ljdk/internal/misc/Unsafe;";
/// Until JDK 20, and later JDKs.
const FILE_CHANNEL: &str = "Lsun/nio/ch/FileChannelImpl;";
const FILE_DISPATCHER: &str = "Lsun/nio/ch/UnixFileDispatcherImpl;";

static ALLOCATE: AtomicUsize = AtomicUsize::new(0);
static REALLOCATE: AtomicUsize = AtomicUsize::new(0);
static FREE: AtomicUsize = AtomicUsize::new(0);
static MAP: AtomicUsize = AtomicUsize::new(0);
static UNMAP: AtomicUsize = AtomicUsize::new(0);

const REPLACED: [ReplacedMethod; 8] = [
    ReplacedMethod {
        class: UNSAFE_CLASS,
        name: "allocateMemory0",
        descriptor: "(J)J",
        replacement: || allocate_memory as *const () as usize,
        original: &ALLOCATE,
    },
    ReplacedMethod {
        class: UNSAFE_CLASS,
        name: "reallocateMemory0",
        descriptor: "(JJ)J",
        replacement: || reallocate_memory as *const () as usize,
        original: &REALLOCATE,
    },
    ReplacedMethod {
        class: UNSAFE_CLASS,
        name: "freeMemory0",
        descriptor: "(J)V",
        replacement: || free_memory as *const () as usize,
        original: &FREE,
    },
    ReplacedMethod {
        class: FILE_CHANNEL,
        name: "map0",
        descriptor: "(IJJZ)J",
        replacement: || map_channel as *const () as usize,
        original: &MAP,
    },
    // JDK 11.
    ReplacedMethod {
        class: FILE_CHANNEL,
        name: "map0",
        descriptor: "(IJJ)J",
        replacement: || map_older_channel as *const () as usize,
        original: &MAP,
    },
    ReplacedMethod {
        class: FILE_CHANNEL,
        name: "unmap0",
        descriptor: "(JJ)I",
        replacement: || unmap_memory as *const () as usize,
        original: &UNMAP,
    },
    ReplacedMethod {
        class: FILE_DISPATCHER,
        name: "map0",
        descriptor: "(Ljava/io/FileDescriptor;IJJZ)J",
        replacement: || map_file as *const () as usize,
        original: &MAP,
    },
    ReplacedMethod {
        class: FILE_DISPATCHER,
        name: "unmap0",
        descriptor: "(JJ)I",
        replacement: || unmap_memory as *const () as usize,
        original: &UNMAP,
    },
];

/// The VM is about to bind a native method to the function at `address`.
pub unsafe extern "system" fn native_method_bind(
    _: *mut ti::jvmtiEnv,
    _: *mut JNIEnv,
    _: jobject,
    method: jmethodID,
    address: *mut c_void,
    new_address: *mut *mut c_void,
) {
    guard_callback((), |agent| {
        let Some(replaced) = find_replaced(agent, method) else {
            return;
        };
        let replacement = (replaced.replacement)();
        if !new_address.is_null() && address as usize != replacement {
            // Release: pairs with the Acquire of the replacement, which the VM calls from now on.
            replaced.original.store(address as usize, Ordering::Release);
            // SAFETY: the VM passes the address of its own variable, and reads it after this call.
            unsafe { *new_address = replacement as *mut c_void };
        }
    });
}

fn find_replaced(agent: &Agent, method: jmethodID) -> Option<&'static ReplacedMethod> {
    let jvmti = agent.core.jvmti;
    let (name, descriptor) = jvmti.method_name(method)?;
    let is_named = |of: &&ReplacedMethod| of.name == name && of.descriptor == descriptor;
    const { &REPLACED }.iter().find(is_named)?;
    let class = jvmti.class_signature(jvmti.declaring_class(method)?)?;
    let mut named = const { &REPLACED }.iter().filter(is_named);
    named.find(|of| of.class == class)
}

/// The function that a replacement has replaced.
fn original(of: &AtomicUsize) -> usize {
    of.load(Ordering::Acquire)
}

/// The current thread has allocated memory.
pub fn record_block(env: *mut JNIEnv, kind: &'static EventKind, block: MemoryBlock) {
    if block.address != 0 {
        record_held_block(Some(env), (kind, block.bytes), Some(block));
    }
}

/// The current thread has allocated memory, of which a part may still live. Without an environment, the context is unknown.
pub fn record_held_block(
    env: Option<*mut JNIEnv>,
    (kind, bytes): (&'static EventKind, u64),
    living: Option<MemoryBlock>,
) {
    guard_event(NATIVE.mask_bit, |agent| {
        let env = env.map(|env| agent.core.jni_env(env));
        let context = env.and_then(|env| count_allocation(agent, env, (kind, bytes)));
        let blocks = &agent.counting.living_blocks;
        match living {
            Some(block) => blocks.add_block(agent.counting_parts(), (context, kind), block),
            None => blocks.count_released(context, bytes),
        }
    });
}

/// `None`: the context is unknown.
fn count_allocation(
    agent: &'static Agent,
    env: JniEnvironment,
    what: (&'static EventKind, u64),
) -> Option<ContextId> {
    let parts = agent.counting_parts();
    // The program may have one while it allocates.
    let thrown = match env.has_exception() {
        true => env.take_exception(),
        false => ptr::null_mut(),
    };
    let context = match agent.core.is_hookless() {
        true => hookless::native_memory::count_allocation(parts, env, what),
        false => {
            let own = current_state(agent.thread_parts(), env);
            own.get()
                .and_then(|state| native_memory::count_allocation(parts, env, state, what))
        }
    };
    if !thrown.is_null() {
        env.throw_exception(thrown);
        env.delete_local(thrown);
    }
    context
}

/// The memory at this address is about to be released, also while nothing is counted.
pub fn release_block(address: usize) -> Option<ReleasedBlock> {
    guard_callback(None, |agent| {
        let is_recorded = address != 0 && agent.core.is_live();
        is_recorded
            .then(|| agent.counting.living_blocks.remove_block(address))
            .flatten()
    })
}

/// Memory was not released after all, or only its first `without` bytes were.
pub fn restore_block(released: Option<ReleasedBlock>, without: u64) {
    if let Some(released) = released {
        guard_callback((), |agent| {
            let living = &agent.counting.living_blocks;
            living.restore_block(released, without);
        });
    }
}

fn new_block(address: jlong, bytes: jlong) -> MemoryBlock {
    MemoryBlock {
        address: address as usize,
        bytes: u64::try_from(bytes).unwrap_or(0),
    }
}

unsafe extern "system" fn allocate_memory(env: *mut JNIEnv, this: jobject, bytes: jlong) -> jlong {
    type Allocate = Option<unsafe extern "system" fn(*mut JNIEnv, jobject, jlong) -> jlong>;
    // SAFETY: 0, or the JDK's function with this prototype.
    let allocate = unsafe { std::mem::transmute::<usize, Allocate>(original(&ALLOCATE)) };
    // SAFETY: called as the VM has called this function.
    let address = allocate.map_or(0, |allocate| unsafe { allocate(env, this, bytes) });
    record_block(env, &UNSAFE, new_block(address, bytes));
    address
}

unsafe extern "system" fn reallocate_memory(
    env: *mut JNIEnv,
    this: jobject,
    old: jlong,
    bytes: jlong,
) -> jlong {
    type Reallocate =
        Option<unsafe extern "system" fn(*mut JNIEnv, jobject, jlong, jlong) -> jlong>;
    // SAFETY: 0, or the JDK's function with this prototype.
    let reallocate = unsafe { std::mem::transmute::<usize, Reallocate>(original(&REALLOCATE)) };
    // Before another thread can get the same address.
    let released = release_block(old as usize);
    // SAFETY: called as the VM has called this function.
    let address = reallocate.map_or(0, |reallocate| unsafe { reallocate(env, this, old, bytes) });
    match address {
        0 => restore_block(released, 0),
        _ => record_block(env, &UNSAFE, new_block(address, bytes)),
    }
    address
}

unsafe extern "system" fn free_memory(env: *mut JNIEnv, this: jobject, address: jlong) {
    type Free = Option<unsafe extern "system" fn(*mut JNIEnv, jobject, jlong)>;
    release_block(address as usize);
    // SAFETY: 0, or the JDK's function with this prototype.
    let free = unsafe { std::mem::transmute::<usize, Free>(original(&FREE)) };
    if let Some(free) = free {
        // SAFETY: called as the VM has called this function.
        unsafe { free(env, this, address) };
    }
}

/// `this` is the channel.
unsafe extern "system" fn map_channel(
    env: *mut JNIEnv,
    this: jobject,
    protection: jint,
    position: jlong,
    bytes: jlong,
    is_sync: u8,
) -> jlong {
    type Map =
        Option<unsafe extern "system" fn(*mut JNIEnv, jobject, jint, jlong, jlong, u8) -> jlong>;
    // SAFETY: 0, or the function of JDK 17, which has this prototype.
    let map = unsafe { std::mem::transmute::<usize, Map>(original(&MAP)) };
    // SAFETY: called as the VM has called this function.
    let address = map.map_or(0, |map| unsafe {
        map(env, this, protection, position, bytes, is_sync)
    });
    record_mapping(env, address, bytes);
    address
}

/// As [`map_channel`], in JDK 11.
unsafe extern "system" fn map_older_channel(
    env: *mut JNIEnv,
    this: jobject,
    protection: jint,
    position: jlong,
    bytes: jlong,
) -> jlong {
    type Map = Option<unsafe extern "system" fn(*mut JNIEnv, jobject, jint, jlong, jlong) -> jlong>;
    // SAFETY: 0, or the function of JDK 11, which has this prototype.
    let map = unsafe { std::mem::transmute::<usize, Map>(original(&MAP)) };
    // SAFETY: called as the VM has called this function.
    let address = map.map_or(0, |map| unsafe {
        map(env, this, protection, position, bytes)
    });
    record_mapping(env, address, bytes);
    address
}

/// `class` is the method's class, `file` the descriptor.
unsafe extern "system" fn map_file(
    env: *mut JNIEnv,
    class: jobject,
    file: jobject,
    protection: jint,
    position: jlong,
    bytes: jlong,
    is_sync: u8,
) -> jlong {
    type Map = Option<
        unsafe extern "system" fn(*mut JNIEnv, jobject, jobject, jint, jlong, jlong, u8) -> jlong,
    >;
    // SAFETY: 0, or the function of later JDKs, which has this prototype.
    let map = unsafe { std::mem::transmute::<usize, Map>(original(&MAP)) };
    // SAFETY: called as the VM has called this function.
    let address = map.map_or(0, |map| unsafe {
        map(env, class, file, protection, position, bytes, is_sync)
    });
    record_mapping(env, address, bytes);
    address
}

fn record_mapping(env: *mut JNIEnv, address: jlong, bytes: jlong) {
    // Below 0: the native method failed.
    if address > 0 {
        record_block(env, &MAPPED_FILE, new_block(address, bytes));
    }
}

unsafe extern "system" fn unmap_memory(
    env: *mut JNIEnv,
    class: jobject,
    address: jlong,
    bytes: jlong,
) -> jint {
    type Unmap = Option<unsafe extern "system" fn(*mut JNIEnv, jobject, jlong, jlong) -> jint>;
    // SAFETY: 0, or the JDK's function with this prototype.
    let unmap = unsafe { std::mem::transmute::<usize, Unmap>(original(&UNMAP)) };
    let released = release_block(address as usize);
    // SAFETY: called as the VM has called this function.
    let outcome = unmap.map_or(-1, |unmap| unsafe { unmap(env, class, address, bytes) });
    if outcome != 0 {
        restore_block(released, 0);
    }
    outcome
}
