//! Functions by which native libraries allocate and release memory, with `events=native`.
//!
//! The agent puts the functions here into the libraries' tables of imported functions (`memory::library_imports`). They call the
//! C library, and report the memory under the Java context of the calling thread. The VM's own library keeps its functions, apart
//! from those of the linker: the VM looks a function up with `dlsym` after it has loaded a library.
//!
//! A thread may allocate at any moment, so the context is only asked for if the thread runs native code outside of the VM. Other
//! memory has no context. In critical regions, it is asked for later. A child process that was forked records nothing: another thread may have held a lock.
#![allow(
    unsafe_code,
    reason = "functions that libraries call in place of those of the C library"
)]

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use jvmti_bindings::sys::jni::JNIEnv;
use lucce_instrument::kinds::NATIVE;
use lucce_jvmti::JniEnvironment;
use lucce_jvmti::thread_allocation::VmThread;
use lucce_jvmti::thread_state::ThreadStateReader;

use crate::counting::living_blocks::{MemoryBlock, ReleasedBlock};
use crate::entry::critical_regions::{self, HeldRelease};
use crate::entry::native_methods::{record_held_block, release_block, restore_block};
use crate::events::native_memory::{MALLOC, MMAP};
use crate::memory::address_space::PAGE;
use crate::memory::library_imports::{ReplacedImport, replace_in_new_libraries};
use crate::options::LogLevel;
use crate::session::{Agent, holders_request};
use crate::thread::event_kind::EventKind;

/// Libraries whose functions stay: the C library, the dynamic linker and their surroundings, the JDK's libraries that
/// the VM calls from any state, and the one whose mappings are counted as mapped files. Beginnings of file names.
const UNTOUCHED: [&str; 15] = [
    "ld-",
    "libc.",
    "libc-",
    "libdl.",
    "libdl-",
    "libpthread",
    "libm.",
    "libm-",
    "librt.",
    "libgcc_s",
    "libjimage",
    "libjsig",
    "libnio.",
    "liblucce",
    "linux-vdso",
];
const VM_LIBRARY: &str = "libjvm.so";

static THREAD_STATE: OnceLock<ThreadStateReader> = OnceLock::new();
/// A word in a page that the system clears in child processes; null: no memory is recorded.
static SAME_PROCESS: AtomicPtr<AtomicUsize> = AtomicPtr::new(std::ptr::null_mut());

/// All functions, with their present addresses.
static IMPORTS: OnceLock<[ReplacedImport; 13]> = OnceLock::new();
static VM_IMPORTS: OnceLock<[ReplacedImport; 3]> = OnceLock::new();

fn import(name: &'static CStr, original: *const (), replacement: *const ()) -> ReplacedImport {
    ReplacedImport {
        name,
        original: original as usize,
        replacement: replacement as usize,
    }
}

fn imports() -> &'static [ReplacedImport] {
    IMPORTS.get_or_init(|| {
        [
            import(c"malloc", libc::malloc as *const (), malloc as *const ()),
            import(c"calloc", libc::calloc as *const (), calloc as *const ()),
            import(c"realloc", libc::realloc as *const (), realloc as *const ()),
            import(
                c"posix_memalign",
                libc::posix_memalign as *const (),
                posix_memalign as *const (),
            ),
            import(
                c"aligned_alloc",
                libc::aligned_alloc as *const (),
                aligned_alloc as *const (),
            ),
            import(c"free", libc::free as *const (), free as *const ()),
            import(c"mmap", libc::mmap as *const (), mmap as *const ()),
            import(c"mmap64", libc::mmap64 as *const (), mmap64 as *const ()),
            import(c"munmap", libc::munmap as *const (), munmap as *const ()),
            import(
                c"memalign",
                libc::memalign as *const (),
                memalign as *const (),
            ),
            // Since glibc 2.26.
            import(
                c"reallocarray",
                // SAFETY: looks for a function in all libraries.
                unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"reallocarray".as_ptr()) }.cast(),
                reallocarray as *const (),
            ),
            import(c"dlopen", libc::dlopen as *const (), dlopen as *const ()),
            import(c"dlclose", libc::dlclose as *const (), dlclose as *const ()),
        ]
    })
}

fn vm_imports() -> &'static [ReplacedImport] {
    VM_IMPORTS.get_or_init(|| {
        [
            import(c"dlsym", libc::dlsym as *const (), dlsym as *const ()),
            import(c"dlopen", libc::dlopen as *const (), dlopen as *const ()),
            import(c"dlclose", libc::dlclose as *const (), dlclose as *const ()),
        ]
    })
}

fn select_imports(file: &str) -> &'static [ReplacedImport] {
    match file {
        VM_LIBRARY => vm_imports(),
        // The program itself has no name: it is the JDK's launcher.
        "" => &[],
        file if UNTOUCHED.iter().any(|begin| file.starts_with(begin)) => &[],
        _ => imports(),
    }
}

/// Records memory of native libraries from now on, with `events=native`.
pub fn start_recording(agent: &Agent, env: JniEnvironment) {
    if !agent.core.options.events.has_kind(&NATIVE) {
        return;
    }
    let reader = new_state_reader(agent, env)
        .filter(|_| critical_regions::install_functions(agent).is_some());
    match reader.zip(new_process_word()) {
        Some((reader, word)) => {
            let _ = THREAD_STATE.set(reader);
            // Release: pairs with the Acquire of the functions.
            SAME_PROCESS.store(word, Ordering::Release);
            replace_in_new_libraries(select_imports);
        }
        None => agent.core.report_message(
            LogLevel::Warn,
            "memory of native libraries is not recorded: this VM or system does not describe its threads or processes",
        ),
    }
}

fn new_state_reader(agent: &Agent, env: JniEnvironment) -> Option<ThreadStateReader> {
    let thread = agent.core.jvmti.current_thread()?;
    let class = env.class_of(thread);
    let address = env.field_id(class, c"eetop", c"J");
    let address = address.map(|field| env.get_long(thread, field));
    env.delete_local(class);
    env.delete_local(thread);
    let current = VmThread::from_address(address? as usize);
    // SAFETY: environment and address are the current thread's, which runs this function.
    unsafe { ThreadStateReader::new(env.as_raw(), current) }
}

/// A word that is 1 in this process and 0 in its children. Never freed.
fn new_process_word() -> Option<*mut AtomicUsize> {
    let known = SAME_PROCESS.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new page.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the new page.
    if unsafe { libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: the new page, which nobody uses.
        unsafe { libc::munmap(page, PAGE) };
        return None;
    }
    let word = page.cast::<AtomicUsize>();
    // SAFETY: the new page has room for a word.
    unsafe { &*word }.store(1, Ordering::Relaxed);
    Some(word)
}

/// Whether this is the process that started recording.
fn is_same_process() -> bool {
    let word = SAME_PROCESS.load(Ordering::Acquire);
    // SAFETY: null, or a word that is never freed.
    unsafe { word.as_ref() }.is_some_and(|word| word.load(Ordering::Relaxed) == 1)
}

/// Runs `body` without a change of `errno`, which callers of these functions may read.
fn keep_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the current thread's own variable.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let value = unsafe { *errno };
    let done = body();
    // SAFETY: as above.
    unsafe { *errno = value };
    done
}

/// The current thread has allocated memory.
fn record_memory(kind: &'static EventKind, address: *mut c_void, bytes: usize) {
    if address.is_null() || !is_same_process() {
        return;
    }
    let block = MemoryBlock {
        address: address as usize,
        bytes: bytes as u64,
    };
    if critical_regions::is_inside() && critical_regions::hold_block(kind, block) {
        return;
    }
    keep_errno(|| record_held_block(find_env(), (kind, block.bytes), Some(block)));
}

/// The current thread's environment. `None`: the VM does not know the thread, or the thread is inside the VM.
fn find_env() -> Option<*mut JNIEnv> {
    let env = holders_request::loading_vm()?.thread_env()?;
    let state = THREAD_STATE.get()?;
    // SAFETY: the current thread's environment.
    let may_call = unsafe { state.is_in_native(env) } && !critical_regions::is_inside();
    may_call.then_some(env)
}

/// What [`restore_memory`] takes if the release failed.
enum ReleasedMemory {
    Listed(ReleasedBlock),
    Held(HeldRelease),
}

fn release_memory(address: *mut c_void) -> Option<ReleasedMemory> {
    if address.is_null() || !is_same_process() {
        return None;
    }
    let address = address as usize;
    let listed = keep_errno(|| release_block(address));
    match critical_regions::is_inside() {
        // A listed block at the address of one that is held back was released where the agent saw nothing.
        true => critical_regions::release_held(address).map(ReleasedMemory::Held),
        false => None,
    }
    .or(listed.map(ReleasedMemory::Listed))
}

fn restore_memory(released: Option<ReleasedMemory>, without: usize) {
    let without = without as u64;
    keep_errno(|| match released {
        Some(ReleasedMemory::Listed(block)) => restore_block(Some(block), without),
        Some(ReleasedMemory::Held(block)) => critical_regions::restore_held(&block, without),
        None => {}
    });
}

unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    // SAFETY: called as the library has called this function.
    let address = unsafe { libc::malloc(bytes) };
    record_memory(&MALLOC, address, bytes);
    address
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: called as the library has called this function.
    let address = unsafe { libc::calloc(count, size) };
    record_memory(&MALLOC, address, count.saturating_mul(size));
    address
}

unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: called as the library has called this function.
        Some(bytes) => unsafe { realloc(old, bytes) },
        None => {
            // SAFETY: the current thread's own variable.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn realloc(old: *mut c_void, bytes: usize) -> *mut c_void {
    // Before another thread can get the same address.
    let released = release_memory(old);
    // SAFETY: called as the library has called this function.
    let address = unsafe { libc::realloc(old, bytes) };
    match (address.is_null(), bytes) {
        (false, _) => record_memory(&MALLOC, address, bytes),
        // The memory was released.
        (true, 0) => {}
        (true, _) => restore_memory(released, 0),
    }
    address
}

unsafe extern "C" fn posix_memalign(
    into: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
) -> c_int {
    // SAFETY: called as the library has called this function.
    let outcome = unsafe { libc::posix_memalign(into, alignment, bytes) };
    if outcome == 0 {
        // SAFETY: the function has stored the address there.
        record_memory(&MALLOC, unsafe { *into }, bytes);
    }
    outcome
}

unsafe extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    // SAFETY: called as the library has called this function.
    let address = unsafe { libc::aligned_alloc(alignment, bytes) };
    record_memory(&MALLOC, address, bytes);
    address
}

unsafe extern "C" fn memalign(alignment: usize, bytes: usize) -> *mut c_void {
    // SAFETY: called as the library has called this function.
    let address = unsafe { libc::memalign(alignment, bytes) };
    record_memory(&MALLOC, address, bytes);
    address
}

unsafe extern "C" fn free(address: *mut c_void) {
    release_memory(address);
    // SAFETY: called as the library has called this function.
    unsafe { libc::free(address) };
}

unsafe extern "C" fn mmap(
    wanted: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: called as the library has called this function.
    let address = unsafe { libc::mmap(wanted, bytes, protection, flags, file, offset) };
    record_pages(address, bytes);
    address
}

unsafe extern "C" fn mmap64(
    wanted: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off64_t,
) -> *mut c_void {
    // SAFETY: called as the library has called this function.
    let address = unsafe { libc::mmap64(wanted, bytes, protection, flags, file, offset) };
    record_pages(address, bytes);
    address
}

fn record_pages(address: *mut c_void, bytes: usize) {
    if address != libc::MAP_FAILED {
        record_memory(&MMAP, address, bytes);
    }
}

unsafe extern "C" fn munmap(address: *mut c_void, bytes: usize) -> c_int {
    let released = release_memory(address);
    // SAFETY: called as the library has called this function.
    let outcome = unsafe { libc::munmap(address, bytes) };
    match outcome {
        0 => restore_memory(released, bytes.next_multiple_of(PAGE)),
        _ => restore_memory(released, 0),
    }
    outcome
}

/// The VM looks up a function of a library, which it may have loaded just now.
unsafe extern "C" fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void {
    if is_same_process() {
        replace_in_new_libraries(select_imports);
    }
    // SAFETY: called as the VM has called this function.
    unsafe { libc::dlsym(library, name) }
}

/// A library loads another one.
///
/// The linker searches a bare name where the caller's library says. Such a call goes on to the linker as if this function were
/// not there.
#[unsafe(naked)]
unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {depends_on_caller}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test eax, eax",
        "jz {load_file}",
        "jmp qword ptr [rip + {original}@GOTPCREL]",
        depends_on_caller = sym depends_on_caller,
        load_file = sym load_file,
        original = sym libc::dlopen,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "stp x0, x1, [sp, #16]",
        "bl {depends_on_caller}",
        "mov w9, w0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbnz w9, 2f",
        "b {load_file}",
        "2: b {original}",
        depends_on_caller = sym depends_on_caller,
        load_file = sym load_file,
        original = sym libc::dlopen,
    );
}

/// 1: what `dlopen` loads depends on the library that calls it, or this process records nothing.
unsafe extern "C" fn depends_on_caller(path: *const c_char) -> c_int {
    if path.is_null() || !is_same_process() {
        return 1;
    }
    // SAFETY: the caller of `dlopen` passes a text.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    // `$ORIGIN` is the folder of the caller.
    c_int::from(!path.contains(&b'/') || path.contains(&b'$'))
}

unsafe extern "C" fn load_file(path: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: called as the library has called `dlopen`.
    let load = || unsafe { libc::dlopen(path, flags) };
    critical_regions::run_linker(find_env, load)
}

unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    // SAFETY: called as the library has called this function.
    let close = || unsafe { libc::dlclose(library) };
    match is_same_process() {
        true => critical_regions::run_linker(find_env, close),
        false => close(),
    }
}

#[cfg(test)]
mod library_calls_tests {
    use super::*;

    #[test]
    fn only_paths_of_files_do_not_depend_on_the_caller() {
        let word = Box::leak(Box::new(AtomicUsize::new(1)));
        SAME_PROCESS.store(word, Ordering::Release);
        // SAFETY: texts, or null.
        let depends = |path: *const c_char| unsafe { depends_on_caller(path) };
        for path in [c"/usr/lib/libfirst.so", c"./libfirst.so"] {
            assert_eq!(depends(path.as_ptr()), 0, "{path:?}");
        }
        for path in [c"libfirst.so", c"", c"$ORIGIN/libfirst.so"] {
            assert_eq!(depends(path.as_ptr()), 1, "{path:?}");
        }
        assert_eq!(depends(std::ptr::null()), 1);
        // SAFETY: a path of no file, a bare name, and the program itself.
        let load = |path| unsafe { dlopen(path, libc::RTLD_NOW) };
        assert!(load(c"/no/such/library.so".as_ptr()).is_null());
        assert!(load(c"no-such-library.so".as_ptr()).is_null());
        let program = load(std::ptr::null());
        assert!(!program.is_null());
        // SAFETY: the handle from before.
        assert_eq!(unsafe { dlclose(program) }, 0);
    }
}
