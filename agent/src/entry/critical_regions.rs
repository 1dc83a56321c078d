//! Critical regions of native code, with `events=native`: `GetPrimitiveArrayCritical`, `GetStringCritical`, `dlopen` and `dlclose`.
//!
//! Within a region, a thread must not call the VM. Memory that it allocates there is held back and recorded when the region ends:
//! the same native method still runs, so the context is the same.
//!
//! `dlopen` and `dlclose` run functions of libraries while they hold the linker's lock. A thread of the VM may wait for that lock
//! in a state for which a safepoint waits.
#![allow(
    unsafe_code,
    reason = "functions of the JNI table, and those that they replace"
)]

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use jvmti_bindings::sys::jni::{JNIEnv, JNINativeInterface_, jboolean, jchar, jint, jobject};

use crate::counting::living_blocks::MemoryBlock;
use crate::entry::native_methods::record_held_block;
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
    bytes: u64,
    /// What is not released.
    living: Option<MemoryBlock>,
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
    let held = with_held(|held| {
        let has_room = held.len() < MAX_HELD;
        if has_room {
            held.push(HeldBlock {
                kind,
                bytes: block.bytes,
                living: Some(block),
            });
        }
        has_room
    });
    held.unwrap_or(false)
}

/// The thread releases memory within the region. `None`: the block is not held back.
pub fn release_held(address: usize) -> Option<HeldRelease> {
    with_held(|held| {
        let is_block = |of: &HeldBlock| of.living.is_some_and(|block| block.address == address);
        let index = held.iter().position(is_block)?;
        let block = held.get_mut(index)?.living.take()?;
        Some(HeldRelease { index, block })
    })?
}

/// A block that was released within the region, which [`restore_held`] takes if the release failed.
pub struct HeldRelease {
    index: usize,
    block: MemoryBlock,
}

/// The block was not released after all, or only its first `without` bytes were: the rest lives.
pub fn restore_held(released: &HeldRelease, without: u64) {
    let MemoryBlock { address, bytes } = released.block;
    let rest = MemoryBlock {
        address: address.saturating_add(without as usize),
        bytes: bytes.saturating_sub(without),
    };
    with_held(|held| {
        if let Some(held) = held.get_mut(released.index) {
            held.living = (without == 0 || rest.bytes > 0).then_some(rest);
        }
    });
}

/// `None`: the thread ends, or its list is in use.
fn with_held<T>(body: impl FnOnce(&mut Vec<HeldBlock>) -> T) -> Option<T> {
    let outcome = HELD.try_with(|held| held.try_borrow_mut().ok().map(|mut held| body(&mut held)));
    outcome.ok().flatten()
}

/// Runs a function of the linker. `find_env` is called after it.
pub fn run_linker<T>(find_env: fn() -> Option<*mut JNIEnv>, body: impl FnOnce() -> T) -> T {
    DEPTH.set(DEPTH.get() + 1);
    let outcome = body();
    end_region(find_env);
    outcome
}

fn begin_region(content: *const c_void) {
    if !content.is_null() {
        DEPTH.set(DEPTH.get() + 1);
    }
}

/// Without an environment, the blocks have no context.
fn end_region(find_env: impl FnOnce() -> Option<*mut JNIEnv>) {
    DEPTH.set(DEPTH.get().saturating_sub(1));
    if DEPTH.get() > 0 {
        return;
    }
    let held = with_held(std::mem::take).unwrap_or_default();
    if held.is_empty() {
        return;
    }
    let env = find_env();
    for HeldBlock {
        kind,
        bytes,
        living,
    } in held
    {
        record_held_block(env, (kind, bytes), living);
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
        end_region(|| Some(env));
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
        end_region(|| Some(env));
    }
}

#[cfg(test)]
mod critical_regions_tests {
    use super::*;
    use crate::events::native_memory::MALLOC;

    fn hold(address: usize, bytes: u64) {
        assert!(hold_block(&MALLOC, MemoryBlock { address, bytes }));
    }

    /// Allocated bytes, and address and bytes of what lives.
    fn take_blocks() -> Vec<(u64, Option<(usize, u64)>)> {
        let held = with_held(std::mem::take).unwrap_or_default();
        let living = |of: &HeldBlock| of.living.map(|block| (block.address, block.bytes));
        held.iter().map(|of| (of.bytes, living(of))).collect()
    }

    #[test]
    fn released_blocks_live_only_if_the_release_failed() {
        for (address, bytes) in [(16, 1), (32, 2), (16, 3)] {
            hold(address, bytes);
        }
        assert!(release_held(48).is_none());
        let first = release_held(16).unwrap();
        let second = release_held(32).unwrap();
        restore_held(&second, 0);
        assert_eq!(
            take_blocks(),
            [(1, None), (2, Some((32, 2))), (3, Some((16, 3)))]
        );
        // The region has ended: nothing is held.
        restore_held(&first, 0);
        assert!(take_blocks().is_empty());
    }

    #[test]
    fn blocks_at_one_address_are_released_in_turn() {
        hold(16, 1);
        assert!(release_held(16).is_some());
        hold(16, 2);
        assert!(release_held(16).is_some());
        assert!(release_held(16).is_none());
        assert_eq!(take_blocks(), [(1, None), (2, None)]);
    }

    #[test]
    fn the_rest_of_a_mapping_lives() {
        hold(4096, 8192);
        restore_held(&release_held(4096).unwrap(), 4096);
        assert!(release_held(4096).is_none());
        let rest = release_held(8192).unwrap();
        assert_eq!((rest.block.address, rest.block.bytes), (8192, 4096));
        restore_held(&rest, 4096);
        assert_eq!(take_blocks(), [(8192, None)]);
    }

    #[test]
    fn the_list_in_use_holds_nothing_more() {
        let block = MemoryBlock {
            address: 16,
            bytes: 1,
        };
        let is_held = with_held(|_| hold_block(&MALLOC, block));
        assert_eq!(is_held, Some(false));
        assert_eq!(with_held(|_| release_held(16).is_none()), Some(true));
    }
}
