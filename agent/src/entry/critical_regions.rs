//! Critical regions of native code (`GetPrimitiveArrayCritical`, `GetStringCritical`), with `events=native`.
//!
//! Within a region, a thread must not call the VM. Memory that it allocates there is held back and recorded when the region ends:
//! the same native method still runs, so the context is the same.
#![allow(
    unsafe_code,
    reason = "functions of the JNI table, and those that they replace"
)]

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use jvmti_bindings::sys::jni::{JNIEnv, JNINativeInterface_, jboolean, jchar, jint, jobject};

use crate::counting::living_blocks::MemoryBlock;
use crate::entry::native_methods::{record_block, release_block};
use crate::session::Agent;
use crate::thread::event_kind::EventKind;

/// Maximum number of blocks that a thread holds back. Further blocks have no context.
const MAX_HELD: usize = 1 << 12;

/// The functions from before.
static ORIGINAL: AtomicPtr<JNINativeInterface_> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// Number of nested regions.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static HELD: RefCell<Vec<HeldBlock>> = const { RefCell::new(Vec::new()) };
}

/// A block that a thread allocated within a region.
struct HeldBlock {
    kind: &'static EventKind,
    block: MemoryBlock,
    is_released: bool,
}

/// Replaces the functions, for good.
pub fn install_functions(agent: &Agent) -> Option<()> {
    if !ORIGINAL.load(Ordering::Acquire).is_null() {
        return Some(());
    }
    let jvmti = agent.core.jvmti;
    let (before, table) = (jvmti.jni_table()?, jvmti.jni_table()?);
    // SAFETY: a copy of the VM's table, which nobody else has yet.
    let functions = unsafe { &mut *table };
    functions.GetPrimitiveArrayCritical = get_array;
    functions.ReleasePrimitiveArrayCritical = release_array;
    functions.GetStringCritical = get_string;
    functions.ReleaseStringCritical = release_string;
    // Release: pairs with the Acquire of the functions.
    ORIGINAL.store(before, Ordering::Release);
    jvmti.set_jni_table(table).ok()
}

/// Whether the current thread is in a critical region.
pub fn is_inside() -> bool {
    DEPTH.get() > 0
}

/// Holds a block back until the region ends. `false`: there is no room.
pub fn hold_block(kind: &'static EventKind, block: MemoryBlock) -> bool {
    let held = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        let has_room = held.len() < MAX_HELD;
        if has_room {
            held.push(HeldBlock {
                kind,
                block,
                is_released: false,
            });
        }
        has_room
    });
    held.unwrap_or(false)
}

/// The thread releases memory within the region.
pub fn note_release(address: usize) {
    let _ = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        let mut living = held.iter_mut().filter(|held| !held.is_released);
        if let Some(held) = living.find(|held| held.block.address == address) {
            held.is_released = true;
        }
    });
}

fn begin_region(content: *const c_void) {
    if !content.is_null() {
        DEPTH.set(DEPTH.get() + 1);
    }
}

fn end_region(env: *mut JNIEnv) {
    DEPTH.set(DEPTH.get().saturating_sub(1));
    if DEPTH.get() > 0 {
        return;
    }
    let held = HELD.try_with(RefCell::take).unwrap_or_default();
    for HeldBlock {
        kind,
        block,
        is_released,
    } in held
    {
        record_block(env, kind, block);
        if is_released {
            release_block(block.address);
        }
    }
}

/// The functions from before. They are set before the replacements are.
fn original() -> Option<&'static JNINativeInterface_> {
    // SAFETY: null, or a copy of the VM's table that is never freed.
    unsafe { ORIGINAL.load(Ordering::Acquire).as_ref() }
}

unsafe extern "system" fn get_array(
    env: *mut JNIEnv,
    array: jobject,
    is_copy: *mut jboolean,
) -> *mut c_void {
    let Some(original) = original() else {
        return std::ptr::null_mut();
    };
    // SAFETY: called as native code has called this function.
    let content = unsafe { (original.GetPrimitiveArrayCritical)(env, array, is_copy) };
    begin_region(content);
    content
}

unsafe extern "system" fn release_array(
    env: *mut JNIEnv,
    array: jobject,
    content: *mut c_void,
    mode: jint,
) {
    if let Some(original) = original() {
        // SAFETY: called as native code has called this function.
        unsafe { (original.ReleasePrimitiveArrayCritical)(env, array, content, mode) };
        end_region(env);
    }
}

unsafe extern "system" fn get_string(
    env: *mut JNIEnv,
    string: jobject,
    is_copy: *mut jboolean,
) -> *const jchar {
    let Some(original) = original() else {
        return std::ptr::null();
    };
    // SAFETY: called as native code has called this function.
    let content = unsafe { (original.GetStringCritical)(env, string, is_copy) };
    begin_region(content.cast());
    content
}

unsafe extern "system" fn release_string(env: *mut JNIEnv, string: jobject, content: *const jchar) {
    if let Some(original) = original() {
        // SAFETY: called as native code has called this function.
        unsafe { (original.ReleaseStringCritical)(env, string, content) };
        end_region(env);
    }
}
