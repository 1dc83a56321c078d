//! The allocated bytes of each thread, as the VM counts them.
//!
//! HotSpot counts for each thread the bytes of the buffers that the thread has used up; the used part of the current
//! buffer must be added. `com.sun.management.ThreadMXBean` reads this through a table of functions
//! (`JVM_GetManagement`), and so does this module. The table serves only threads that are attached to the VM.
//!
//! The VM also describes its own structures for debuggers (`gHotSpotVMStructs`), by which any thread can read the count
//! directly. The direct reading is used only if it agrees with the table.
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the environment is handed on to the VM that made it"
)]
#![allow(
    unsafe_code,
    reason = "a table of the VM's functions, and its description of its own memory"
)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use jvmti_bindings::sys::jni::{JNIEnv, jint, jlong};

/// A thread of the VM: the address of its `JavaThread`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VmThread(usize);

impl VmThread {
    /// `address` is the value of the field `eetop` of its `Thread`.
    #[must_use]
    pub const fn from_address(address: usize) -> VmThread {
        VmThread(address)
    }

    pub(crate) const fn address(self) -> usize {
        self.0
    }
}

/// Reads the VM's count.
#[derive(Clone, Copy)]
pub struct ThreadAllocationReader {
    one_thread: OneThread,
    layout: JavaThreadLayout,
    /// The offset of the JNI environment in a `JavaThread`.
    env: usize,
}

/// `GetOneThreadAllocatedMemory` of the thread with this number; 0: the current one; a negative result: none.
type OneThread = unsafe extern "C" fn(*mut JNIEnv, jlong) -> jlong;

/// The offsets of the counts in a `JavaThread`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct JavaThreadLayout {
    /// Bytes of used-up buffers and of allocations outside buffers.
    allocated: usize,
    /// The current buffer's start and the end of its used part.
    start: usize,
    top: usize,
    /// The end of the buffer, or the position at which the VM checks for a sample.
    end: usize,
}

/// Versions of the table, since JDK 14 and since JDK 21, each with the index of `GetOneThreadAllocatedMemory`.
const TABLES: [(jint, usize); 2] = [(0x2003_0000, 9), (0x2004_0000, 10)];
/// A larger value is no buffer, but a word that changed while it was read.
const LARGEST_BUFFER: u64 = 1 << 40;

impl ThreadAllocationReader {
    /// `None`: this VM does not provide the count, or the readings disagree.
    ///
    /// # Safety
    /// `env` and `current` belong to the current thread.
    pub unsafe fn new(env: *mut JNIEnv, current: VmThread) -> Option<ThreadAllocationReader> {
        let count = ThreadAllocationReader {
            one_thread: find_one_thread_function()?,
            layout: JavaThreadLayout::from_vm()?,
            env: (env as usize).checked_sub(current.0)?,
        };
        // SAFETY: the caller passes the current thread, which cannot end meanwhile.
        let read = unsafe { count.read_allocated(current) }?;
        (read == count.query_allocated(env, 0)?).then_some(count)
    }

    /// Returns the thread of this environment.
    pub fn thread_of_env(&self, env: *mut JNIEnv) -> VmThread {
        VmThread((env as usize).wrapping_sub(self.env))
    }

    /// `None`: the thread kept using up buffers during all attempts.
    ///
    /// # Safety
    /// `thread` is one of the VM's and cannot end meanwhile.
    pub unsafe fn read_allocated(&self, thread: VmThread) -> Option<u64> {
        const TRIES: usize = 16;
        // SAFETY: the caller passes a thread of the VM that cannot end meanwhile.
        (0..TRIES).find_map(|_| unsafe { self.try_read_allocated(thread) })
    }

    /// Reads once. The thread may be running: the parts are consistent if the count and the buffer did not change.
    ///
    /// # Safety
    /// As of [`ThreadAllocationReader::read_allocated`].
    unsafe fn try_read_allocated(&self, thread: VmThread) -> Option<u64> {
        let JavaThreadLayout {
            allocated,
            start,
            top,
            end: _,
        } = self.layout;
        // SAFETY: the caller passes a thread that cannot end meanwhile. These are words of its `JavaThread`, which change while
        // they are read.
        let word = |offset: usize| unsafe { ptr::read_volatile((thread.0 + offset) as *const u64) };
        let before = (word(allocated), word(start));
        let used = word(top).wrapping_sub(before.1);
        let after = (word(allocated), word(start));
        let is_whole = before == after && used < LARGEST_BUFFER;
        is_whole.then(|| before.0.wrapping_add(used))
    }

    /// Returns how many bytes are left in the thread's current buffer; 0 if it has none.
    ///
    /// # Safety
    /// `thread` is the current thread.
    pub unsafe fn buffer_left(&self, thread: VmThread) -> u64 {
        // SAFETY: the current thread cannot end meanwhile, and these are words of its `JavaThread`.
        let word = |offset: usize| unsafe { ptr::read_volatile((thread.0 + offset) as *const u64) };
        let left = word(self.layout.end).saturating_sub(word(self.layout.top));
        match left < LARGEST_BUFFER {
            true => left,
            false => 0,
        }
    }

    /// Returns the count of the thread with this `Thread.threadId()`; 0: the current one. `None`: it has ended.
    pub fn query_allocated(&self, env: *mut JNIEnv, number: i64) -> Option<u64> {
        // SAFETY: a function of the VM's own table, called by a thread that the VM knows, with its environment.
        u64::try_from(unsafe { (self.one_thread)(env, number) }).ok()
    }
}

fn find_one_thread_function() -> Option<OneThread> {
    let get = find_symbol(c"JVM_GetManagement")?;
    // SAFETY: the prototype that the VM exports.
    let get: extern "C" fn(jint) -> *const *const c_void =
        unsafe { std::mem::transmute(get.as_ptr()) };
    let tables = TABLES.map(|(version, at)| (get(version), at));
    let (table, at) = tables.into_iter().find(|(table, _)| !table.is_null())?;
    // SAFETY: tables of these versions have the function there.
    let function = unsafe { *table.add(at) };
    // SAFETY: null is `None`; else the function has this prototype.
    unsafe { std::mem::transmute::<*const c_void, Option<OneThread>>(function) }
}

impl JavaThreadLayout {
    fn from_vm() -> Option<JavaThreadLayout> {
        let buffer = field_offset(c"Thread", c"_tlab")?;
        Some(JavaThreadLayout {
            allocated: field_offset(c"Thread", c"_allocated_bytes")?,
            start: buffer + field_offset(c"ThreadLocalAllocBuffer", c"_start")?,
            top: buffer + field_offset(c"ThreadLocalAllocBuffer", c"_top")?,
            end: buffer + field_offset(c"ThreadLocalAllocBuffer", c"_end")?,
        })
    }
}

/// Returns the offset of a field in its structure, as the VM describes it.
pub(crate) fn field_offset(structure: &CStr, field: &CStr) -> Option<usize> {
    let number = |name: &CStr| {
        // SAFETY: words of the VM that are set before anything is loaded.
        Some(unsafe { *find_symbol(name)?.cast::<usize>().as_ptr() })
    };
    let mut entry = number(c"gHotSpotVMStructs")?;
    let stride = number(c"gHotSpotVMStructEntryArrayStride")?;
    let of_type = number(c"gHotSpotVMStructEntryTypeNameOffset")?;
    let of_field = number(c"gHotSpotVMStructEntryFieldNameOffset")?;
    let of_offset = number(c"gHotSpotVMStructEntryOffsetOffset")?;
    // SAFETY: the VM says at which offset an entry has this pointer. The table ends with an entry without a name.
    let text = |at: usize| unsafe {
        let text = *(at as *const *const c_char);
        (!text.is_null()).then(|| CStr::from_ptr(text))
    };
    while let Some(name) = text(entry + of_type) {
        if name == structure && text(entry + of_field) == Some(field) {
            // SAFETY: the VM says at which offset an entry has this word. The entry has a name, so it is one of the table.
            return usize::try_from(unsafe { *((entry + of_offset) as *const u64) }).ok();
        }
        entry += stride;
    }
    None
}

/// Returns the address that the VM's library exports under this name.
fn find_symbol(name: &CStr) -> Option<ptr::NonNull<c_void>> {
    // SAFETY: asks the system's linker, which knows the library by a name that it has already loaded.
    let function = unsafe {
        let library = libc::dlopen(
            c"libjvm.so".as_ptr(),
            libc::RTLD_NOLOAD | libc::RTLD_LAZY | libc::RTLD_LOCAL,
        );
        let function = match library.is_null() {
            true => libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()),
            false => libc::dlsym(library, name.as_ptr()),
        };
        if !library.is_null() {
            libc::dlclose(library);
        }
        function
    };
    ptr::NonNull::new(function)
}
