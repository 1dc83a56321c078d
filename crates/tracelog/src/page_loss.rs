//! Handles pages of mapped files that disappear while they are in use.
//!
//! If the file is truncated, or a disk or network fails, the next access raises SIGBUS. That may happen in any thread
//! that counts an event, and in compiled Java code. [`install_sigbus_handler`] installs a handler in front of the
//! existing one. If the address lies in one of our mapped files, the handler replaces the lost pages by anonymous
//! memory, notes it, and the instruction is retried. The data of these pages is lost; the program continues. Any other
//! SIGBUS is passed on unchanged.
//!
//! ```text
//! MAPS   base      0: the entry is free; stored last
//!        mapped    bytes that can be accessed
//!        file      its file descriptor
//!        replaced  bytes that are no longer the file's
//! ```
//! The handler reads these entries, asks for the file's size and maps memory; it takes no lock and allocates nothing.
#![allow(unsafe_code, reason = "a signal handler, and memory maps")]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const PAGE: usize = 4096;
/// Number of single pages that are replaced before the rest of the file is; each may cost the process a mapping.
const SINGLE: u64 = 64;

static MAPS: [WatchedMapping; 16] = [const { WatchedMapping::new_unused() }; 16];

/// An entry for a mapped file that the handler watches.
pub(crate) struct WatchedMapping {
    base: AtomicUsize,
    mapped: AtomicUsize,
    file: AtomicI32,
    replaced: AtomicU64,
    singles: AtomicU64,
}

/// Serializes the allocation of entries.
static PLACES: Mutex<()> = Mutex::new(());

impl WatchedMapping {
    const fn new_unused() -> WatchedMapping {
        WatchedMapping {
            base: AtomicUsize::new(0),
            mapped: AtomicUsize::new(0),
            file: AtomicI32::new(-1),
            replaced: AtomicU64::new(0),
            singles: AtomicU64::new(0),
        }
    }

    /// Watches a mapping. `None`: too many files are mapped; this one is not watched.
    ///
    /// # Safety
    /// The addresses from `base` on are reserved for this file alone, as many as `set_mapped` reports, until `stop_watching`.
    pub unsafe fn new(base: usize, file: c_int) -> Option<&'static WatchedMapping> {
        let _taking = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed, here and below: under the lock, and the handler reads `base` first.
        let mut places = MAPS.iter();
        let place = places.find(|place| place.base.load(Ordering::Relaxed) == 0)?;
        place.mapped.store(0, Ordering::Relaxed);
        place.file.store(file, Ordering::Relaxed);
        place.replaced.store(0, Ordering::Relaxed);
        place.singles.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire in `replace_page`.
        place.base.store(base, Ordering::Release);
        Some(place)
    }

    /// Sets how many bytes from `base` on are mapped.
    pub fn set_mapped(&self, mapped: usize) {
        // Release: the handler finds the mapping that was made before.
        self.mapped.store(mapped, Ordering::Release);
    }

    /// Returns the number of bytes that are no longer the file's.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// Frees the entry; the handler no longer handles these addresses.
    pub fn stop_watching(&self) {
        self.base.store(0, Ordering::Release);
    }

    /// Whether the address belongs to this file and is accessible from now on.
    fn replace_page(&self, address: usize) -> bool {
        // Acquire: pairs with the Release in `new` and in `set_mapped`.
        let base = self.base.load(Ordering::Acquire);
        let mapped = self.mapped.load(Ordering::Acquire);
        let is_ours = base != 0 && address >= base && address - base < mapped;
        is_ours && self.map_anonymous(base, (address - base) / PAGE * PAGE, mapped)
    }

    fn map_anonymous(&self, base: usize, at: usize, mapped: usize) -> bool {
        let size = file_size(self.file.load(Ordering::Relaxed));
        let (from, to) = match size.filter(|size| *size >= mapped) {
            // The file is long enough, but this page cannot be read.
            Some(_) if self.singles.fetch_add(1, Ordering::Relaxed) < SINGLE => (at, at + PAGE),
            Some(_) => (0, mapped),
            // Replaces everything behind the file's end at once.
            None => (at.min(size.unwrap_or(0).next_multiple_of(PAGE)), mapped),
        };
        // SAFETY: pages of our own mapping, whose content is gone; only the map's users know them.
        let put = unsafe {
            libc::mmap(
                (base + from) as *mut c_void,
                to - from,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        self.replaced
            .fetch_add((to - from) as u64, Ordering::Relaxed);
        put != libc::MAP_FAILED
    }
}

/// Returns the size of an open file.
fn file_size(file: c_int) -> Option<usize> {
    let mut metadata = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fills in what it is given; a handler may call it.
    let done = unsafe { libc::fstat(file, metadata.as_mut_ptr()) };
    // SAFETY: `fstat` has succeeded, so it has filled in the structure.
    (done == 0).then(|| unsafe { metadata.assume_init() }.st_size as usize)
}

/// The action that was installed before.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Installs the SIGBUS handler. May be called again, after another handler was installed.
pub fn install_sigbus_handler() {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(before) = exchange_action(None) else {
        return;
    };
    let ours = on_bus as *const () as usize;
    if before.sa_sigaction == ours {
        return;
    }
    let mut new = before;
    new.sa_sigaction = ours;
    new.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
    // The handler may run while it is replaced, so the action is never freed. Release: pairs with the Acquire in
    // `forward_signal`.
    BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
    // On failure the previous handler stays.
    let _ = exchange_action(Some(&new));
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    /// This name is needed because a library that chains handlers (the JVM's libjsig) replaces the other one and would
    /// keep our handler behind the VM's.
    #[link_name = "__sigaction"]
    fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
}
#[cfg(not(target_env = "gnu"))]
use libc::sigaction;

/// Installs an action if `new` is given; returns the previous action.
fn exchange_action(new: Option<&libc::sigaction>) -> Option<libc::sigaction> {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: both are null or live structures.
    let done = unsafe { sigaction(libc::SIGBUS, new, old.as_mut_ptr()) };
    // SAFETY: `sigaction` has succeeded, so it has filled in the structure.
    (done == 0).then(|| unsafe { old.assume_init() })
}

unsafe extern "C" fn on_bus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the address is that of this thread's own `errno`.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the system passes what it knows; of a fault the address is part.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Above 0: a fault; otherwise a process has sent the signal.
    let replaced = code > 0 && MAPS.iter().any(|map| map.replace_page(address));
    if !replaced {
        // SAFETY: the arguments are those that the system has passed to this handler.
        unsafe { forward_signal(signal, info, context) };
    }
    // SAFETY: the address is that of this thread's own `errno`.
    unsafe { *libc::__errno_location() = errno };
}

/// # Safety
/// The arguments are those of a handler.
unsafe fn forward_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // Acquire: pairs with the Release in `install_sigbus_handler`. SAFETY: never freed.
    let before = unsafe { BEFORE.load(Ordering::Acquire).as_ref() };
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let takes_info = before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
    match handler {
        libc::SIG_DFL | libc::SIG_IGN => {
            let mut default = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: zeros are the default action. A fault is raised again as soon as the handler returns; a sent
            // signal is sent again.
            unsafe {
                (*default.as_mut_ptr()).sa_sigaction = handler;
                sigaction(signal, default.as_ptr(), ptr::null_mut());
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        _ if takes_info => {
            type WithInfo = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: a handler that takes these arguments, as its flags say.
            unsafe { std::mem::transmute::<usize, WithInfo>(handler)(signal, info, context) };
        }
        _ => {
            type Plain = unsafe extern "C" fn(c_int);
            // SAFETY: a handler that takes the signal's number.
            unsafe { std::mem::transmute::<usize, Plain>(handler)(signal) };
        }
    }
}
