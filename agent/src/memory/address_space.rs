//! Address space for the shadow stacks and for the tables that Java code reads.
//!
//! All memory here is reserved once, without swap, and touched page by page: unused pages cost addresses only. Shadow
//! stacks are reserved without access, which systems that account for memory do not count. They become writable when
//! a thread takes one. If addresses are limited (`ulimit -v`), the VM and the program need most of them, so the agent
//! reserves only a part.
#![allow(
    unsafe_code,
    reason = "maps memory that code of the JVM writes by address"
)]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ptr;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use lucce_callgraph::SiteId;
use lucce_tracelog::{ByteSize, MemoryLimit};

use crate::memory::locks::WatchedMutex;
use crate::memory::shared_layout::{INT_BITS, SCRATCH_BITS, WORD_SITES_BITS};
use crate::memory::site_method;
use crate::memory::slots;
use crate::memory::slots::{EVENT_MASK, LOST, Slot, SlotMemoryPart};

pub const PAGE: usize = 4096;

/// A range of reserved memory. It starts at a page.
#[derive(Clone, Copy, Debug)]
pub struct MappedRange {
    start: usize,
    bytes: usize,
}

impl MappedRange {
    pub fn start(self) -> usize {
        self.start
    }

    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// The part that begins at `start`. `None`: it is not inside this range.
    pub fn sub_range(self, start: usize, bytes: usize) -> Option<MappedRange> {
        let end = start.checked_add(bytes)?;
        let is_in = start >= self.start && end <= self.start + self.bytes;
        is_in.then_some(MappedRange { start, bytes })
    }

    /// Free memory.
    #[cfg(test)]
    pub fn from_unmapped(start: usize, bytes: usize) -> MappedRange {
        MappedRange { start, bytes }
    }
}

/// The shadow stacks of all tests, because there is one base.
#[cfg(test)]
pub fn shared_stacks() -> &'static ShadowStacks {
    static SHARED: std::sync::OnceLock<ShadowStacks> = std::sync::OnceLock::new();
    SHARED.get_or_init(|| ShadowStacks::new(false).unwrap())
}

/// The pointer of a thread for which no shadow stack was left. Its frames use the upper half of the scratch memory.
pub fn stackless_pointer() -> Slot {
    Slot::from_pointer(SCRATCH / 2)
}

/// Whether `pointer` belongs to a thread for which no shadow stack was left.
pub fn is_of_stackless_thread(pointer: Slot) -> bool {
    (SCRATCH / 2..SCRATCH).contains(&pointer.pointer())
}

/// Makes `base`, the scratch memory, the base of slots. It has `bytes` bytes and one page below.
fn register_scratch(base: usize, bytes: usize) {
    slots::set_base_address(base);
    // SAFETY: `map_scratch` has mapped it, and it is never unmapped.
    unsafe { slots::map_slots(SlotMemoryPart::Scratch, base - 4096, base + bytes) };
}

/// Addresses that fit into an instruction, on platforms with such instructions.
#[cfg(target_arch = "x86_64")]
const LOW: libc::c_int = libc::MAP_32BIT;
#[cfg(not(target_arch = "x86_64"))]
const LOW: libc::c_int = 0;

/// Maps `bytes` bytes of scratch memory for frames of unknown threads, if possible at an address that fits into an
/// instruction.
fn map_scratch(bytes: usize) -> io::Result<usize> {
    // One page below holds the sentinel slot.
    let bytes = bytes + 4096;
    let map = |flags| map_zeroed(bytes, libc::PROT_READ | libc::PROT_WRITE, flags);
    Ok(map(LOW).or_else(|_| map(0))? + 4096)
}

/// Flags of mappings. Miri supports plain mappings only, which take memory at once.
const KIND: libc::c_int =
    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };

/// Gives the system advice about pages. Miri supports no advice; there, released pages are filled with zeros, as the
/// system does.
///
/// # Safety
/// They are pages of a mapping that the agent has made. The content of released pages is not needed.
pub unsafe fn advise_pages(at: *mut libc::c_void, bytes: usize, what: libc::c_int) {
    match (cfg!(miri), what) {
        // SAFETY: the caller passes pages of a mapping of the agent. Refused advice changes nothing.
        (false, _) => unsafe {
            libc::madvise(at, bytes, what);
        },
        // SAFETY: the caller passes pages of a mapping of the agent, whose content is not needed.
        (true, libc::MADV_DONTNEED) => unsafe { at.cast::<u8>().write_bytes(0, bytes) },
        (true, _) => {}
    }
}

/// Releases pages of a mapping of the agent, counted from its beginning. They read as zeros from now on.
pub fn release_pages(range: MappedRange, pages: &[usize]) {
    for page in pages {
        if let Some(page) = range.sub_range(range.start() + page * PAGE, PAGE) {
            let at = ptr::with_exposed_provenance_mut(page.start());
            // SAFETY: a whole page of a reservation, whose owner says that its content is not needed.
            unsafe { advise_pages(at, PAGE, libc::MADV_DONTNEED) };
        }
    }
}

/// A fresh mapping of zeros.
fn map_zeroed(bytes: usize, access: libc::c_int, flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: a fresh anonymous mapping at an address of the system's choice.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, access, KIND | flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range was just mapped; the advice only concerns core dumps.
    unsafe { advise_pages(at, bytes, libc::MADV_DONTDUMP) };
    Ok(at as usize)
}

/// If addresses or memory are limited, one table takes at most 1/PART of what is left.
const PART: u64 = 24;

/// Reserves up to `most` bytes of writable zeros. If the system refuses, half as much is tried, down to `least`.
pub fn reserve_memory(most: usize, least: usize) -> Option<MappedRange> {
    let affordable = match most > least && !cfg!(miri) {
        true => MemoryLimit::read_current().limit_written_bytes(most as u64, PART) as usize,
        false => most,
    };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    map_at_most(affordable.max(least), least, access).ok()
}

/// Reserves addresses without access, at most a part of what is left. The estimate of what the VM will need may be
/// too low, and a program that gets no memory ends.
fn reserve_addresses(most: usize, least: usize) -> io::Result<MappedRange> {
    const PART: u64 = 3;
    let affordable = MemoryLimit::read_current().limit_addresses(most as u64, PART) as usize;
    if affordable < least {
        return Err(io::Error::other("the agent takes a third of that at most"));
    }
    map_at_most(affordable & !(MIB - 1), least, libc::PROT_NONE)
}

fn map_at_most(most: usize, least: usize, access: libc::c_int) -> io::Result<MappedRange> {
    let mut bytes = if cfg!(miri) { least } else { most };
    loop {
        match map_zeroed(bytes, access, 0) {
            Ok(start) => return Ok(MappedRange { start, bytes }),
            Err(error) if bytes / 2 < least => return Err(error),
            Err(_) => bytes /= 2,
        }
    }
}

/// Makes reserved addresses writable.
///
/// # Safety
/// They are whole pages of a reservation of this module.
unsafe fn make_writable(from: usize, to: usize) -> bool {
    // SAFETY: the caller passes whole pages of a reservation of this module, which nothing else uses.
    let opened = unsafe {
        libc::mprotect(
            from as *mut libc::c_void,
            to - from,
            libc::PROT_READ | libc::PROT_WRITE,
        )
    };
    opened == 0
}

/// The shadow stacks: regions whose size follows the size of the thread's own stack.
pub struct ShadowStacks {
    range: MappedRange,
    /// Distance in bytes from each slot to its second part; 0: slots have none.
    pub beside: usize,
    regions: WatchedMutex<RegionPool>,
    /// Regions for threads that exist before native methods can be called.
    pub boot: MappedRange,
    /// Size of each boot region.
    pub boot_stack: usize,
}

/// Number of boot regions.
const BOOT_STACKS: usize = 16;
/// Maximum size of a boot region, if addresses are plentiful: more than any of those threads needs.
const BOOT_STACK: usize = 128 * MIB;
/// Bytes that are requested for all shadow stacks.
const MOST: usize = 32 << 40;
/// Below this, only a few hundred threads can have a shadow stack.
const FEW: usize = 64 << 30;

#[derive(Default)]
struct RegionPool {
    next: usize,
    /// The end of the writable memory.
    writable_end: usize,
    /// Returned regions, by size.
    free: BTreeMap<usize, VecDeque<usize>>,
}

/// A virtual thread makes its last calls after the VM has reported its end. So a region is reused only after this
/// number of others was returned.
const REST: usize = 16;

impl RegionPool {
    fn reuse_region(&mut self, bytes: usize) -> Option<usize> {
        let free = self.free.get_mut(&bytes)?;
        (free.len() > REST).then(|| free.pop_front())?
    }
}

const MIB: usize = 1 << 20;
/// Bytes of memory shared by all code without a thread, and by threads for which there is no room.
const SCRATCH: usize = 1 << SCRATCH_BITS;
/// Bytes of slots for each byte of stack. A compiled frame takes at least 32 bytes of stack and may hold several
/// inlined frames. The largest observed ratio is 240 bytes of slots on 48 bytes of stack.
const SLOTS_PER_STACK: usize = 8;

impl ShadowStacks {
    /// Reserves the shadow stacks. `doubled`: every slot has a second part of the same size elsewhere.
    ///
    /// # Errors
    /// One line for the user: the available and the missing address space.
    pub fn new(doubled: bool) -> Result<ShadowStacks, String> {
        // The first threads have stacks of the size of the thread that starts the VM.
        let small = slot_bytes(stack_size()).min(BOOT_STACK);
        let parts = if doubled { 2 } else { 1 };
        // The same amount again for later threads.
        let least = parts * 2 * BOOT_STACKS * small;
        let mut range = reserve_addresses(MOST, least)
            .map_err(|e| no_space_message("the shadow stacks", least, &e))?;
        let mut beside = 0;
        if doubled {
            range.bytes /= 2;
            beside = range.bytes;
        }
        let boot_stack = if range.bytes < FEW { small } else { BOOT_STACK };
        let boot = MappedRange {
            start: range.start,
            bytes: BOOT_STACKS * boot_stack,
        };
        let base =
            map_scratch(SCRATCH).map_err(|e| no_space_message("the shadow stacks", SCRATCH, &e))?;
        register_scratch(base, SCRATCH);
        Slot::from_pointer(0).below().write_site(SiteId(LOST));
        let stacks = ShadowStacks {
            range,
            beside,
            regions: WatchedMutex::new(RegionPool {
                next: boot.start + boot.bytes,
                writable_end: boot.start,
                free: BTreeMap::new(),
            }),
            boot,
            boot_stack,
        };
        if !stacks.ensure_writable(&mut stacks.lock(), boot.start + boot.bytes) {
            return Err(no_space_message(
                "the shadow stacks",
                boot.bytes,
                &io::Error::last_os_error(),
            ));
        }
        for index in 0..BOOT_STACKS {
            Slot::from_address(boot.start + index * boot_stack).write_site(SiteId::ENTRY);
        }
        Ok(stacks)
    }

    /// For a JVM whose code has no hooks: no stacks, only the word of the event mask.
    ///
    /// # Errors
    /// Like [`ShadowStacks::new`].
    pub fn without_stacks() -> Result<ShadowStacks, String> {
        let base =
            map_scratch(EVENT_MASK).map_err(|e| no_space_message("the agent", EVENT_MASK, &e))?;
        register_scratch(base, EVENT_MASK);
        let range = MappedRange { start: 0, bytes: 0 };
        Ok(ShadowStacks {
            range,
            beside: 0,
            regions: WatchedMutex::default(),
            boot: range,
            boot_stack: 0,
        })
    }

    /// The warning for the user if addresses are limited.
    pub fn scarcity_warning(&self) -> Option<String> {
        let rest = self.range.bytes - self.boot.bytes;
        let threads = rest / slot_bytes(MIB);
        (self.boot.bytes > 0 && self.range.bytes < FEW).then(|| {
            format!(
                "{} of addresses for shadow stacks, enough for some {threads} threads at a time, in place of {} ({}); what further threads do is counted as lost",
                ByteSize(self.range.bytes as u64),
                ByteSize(MOST as u64),
                MemoryLimit::read_current(),
            )
        })
    }

    fn lock(&self) -> MutexGuard<'_, RegionPool> {
        self.regions.lock()
    }

    /// Takes a region for a thread with `stack` bytes of stack. Its sentinel slot is written.
    pub fn take_region(&self, stack: usize) -> Option<MappedRange> {
        let bytes = slot_bytes(stack);
        let mut used = self.lock();
        let start = match used.reuse_region(bytes) {
            Some(start) => start,
            None => self.allocate_region(&mut used, bytes)?,
        };
        drop(used);
        let region = MappedRange { start, bytes };
        Slot::from_address(start).write_site(SiteId::ENTRY);
        Some(region)
    }

    /// The boot region that contains `pointer`.
    pub fn find_boot_region(&self, pointer: Slot) -> Option<MappedRange> {
        let first = Slot::from_address(self.boot.start);
        let offset = pointer.pointer().wrapping_sub(first.pointer());
        (offset < self.boot.bytes).then(|| MappedRange {
            start: self.boot.start + offset / self.boot_stack * self.boot_stack,
            bytes: self.boot_stack,
        })
    }

    fn allocate_region(&self, used: &mut RegionPool, bytes: usize) -> Option<usize> {
        let start = used.next;
        let end = start.checked_add(bytes)?;
        if end > self.range.start + self.range.bytes || !self.ensure_writable(used, end) {
            return None;
        }
        used.next = end;
        Some(start)
    }

    /// Makes everything up to `end` writable, and more, so that calls are rare.
    fn ensure_writable(&self, used: &mut RegionPool, end: usize) -> bool {
        const AHEAD: usize = 1 << 30;
        let most = self.range.start + self.range.bytes;
        let from = used.writable_end;
        if end <= from {
            return true;
        }
        let opened = |to: usize| {
            let parts = if self.beside == 0 { 1 } else { 2 };
            (0..parts).all(|part| {
                let beside = part * self.beside;
                // SAFETY: `from` and `to` lie in the range; with doubled slots there is a second range of the same
                // size.
                unsafe { make_writable(from + beside, to + beside) }
            })
        };
        let ahead = end.saturating_add(AHEAD).min(most);
        // A system that accounts for memory may have no room for more than is needed.
        let writable_end = [ahead, end].into_iter().find(|to| opened(*to));
        used.writable_end = writable_end.unwrap_or(from);
        self.publish_slots(used);
        writable_end.is_some()
    }

    /// Publishes the writable memory as memory of slots.
    fn publish_slots(&self, used: &RegionPool) {
        let (start, end) = (self.range.start, used.writable_end);
        // SAFETY: the parts of the reservation that `make_writable` has made writable. Both are never unmapped.
        // Except for the kernel's advice about whole pages, all accesses are word by word.
        unsafe {
            slots::map_slots(SlotMemoryPart::Stacks, start, end);
            if self.beside != 0 {
                slots::map_slots(
                    SlotMemoryPart::Beside,
                    start + self.beside,
                    end + self.beside,
                );
            }
        }
    }

    /// Returns a region. Its pages beyond the first 16 KB go back to the system.
    pub fn return_region(&self, region: MappedRange) {
        const KEPT: usize = 16 << 10;
        // Every frame below another one has written its slot.
        let went_further = Slot::from_address(region.start + KEPT).first_word() != 0;
        let parts = if self.beside == 0 { 1 } else { 2 };
        if went_further {
            for part in 0..parts {
                let start = region.start + part * self.beside + KEPT;
                let start = start as *mut libc::c_void;
                // SAFETY: the region is the stacks' own and its thread has ended.
                unsafe { advise_pages(start, region.bytes - KEPT, libc::MADV_DONTNEED) };
            }
        }
        self.lock()
            .free
            .entry(region.bytes)
            .or_default()
            .push_back(region.start);
    }
}

/// Bytes of slots for a thread with `stack` bytes of stack.
fn slot_bytes(stack: usize) -> usize {
    (stack.max(MIB) * SLOTS_PER_STACK).next_power_of_two()
}

#[cold]
fn no_space_message(what: &str, bytes: usize, error: &io::Error) -> String {
    let bytes = ByteSize(bytes as u64);
    format!(
        "no address space for {what}: {bytes} are needed, {} ({error})",
        MemoryLimit::read_current()
    )
}

thread_local! {
    static STACK_SIZE: usize = query_stack_size();
}

/// Bytes of the calling thread's stack. Virtual threads run on their carriers' stacks.
pub fn stack_size() -> usize {
    STACK_SIZE.with(|size| *size)
}

fn query_stack_size() -> usize {
    // SAFETY: plain C structures, filled in by the call before they are read.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return 8 * MIB;
        }
        let (mut address, mut bytes) = (ptr::null_mut(), 0);
        libc::pthread_attr_getstack(&attributes, &mut address, &mut bytes);
        libc::pthread_attr_destroy(&mut attributes);
        bytes.clamp(MIB, 1 << 36)
    }
}

/// Reserves `count` zero words that are never freed.
#[cfg(feature = "lab")]
pub fn reserve_words(count: usize) -> Option<&'static [AtomicU64]> {
    let bytes = count.checked_mul(size_of::<AtomicU64>())?;
    let range = reserve_memory(bytes, bytes)?;
    let start = ptr::with_exposed_provenance(range.start);
    // SAFETY: a fresh mapping of zeros, of this size, that is never unmapped and used as these words alone.
    Some(unsafe { std::slice::from_raw_parts(start, count) })
}

/// What Java code knows of sites: the method of each, as an array, and below it a bit for each.
///
/// ```text
/// … | bits of sites 64 to 127 | bits of sites 0 to 63 | method of site 0 | method of site 1 | …
///                             words of 8 bytes        address            words of 4 bytes
/// ```
///
/// A *countable* site has its bit set: Java code may add counters of it. The log has the size of its objects, and its
/// counters have no type.
#[derive(Clone, Copy)]
pub struct MethodOfSite {
    range: MappedRange,
    methods: MappedRange,
}

impl MethodOfSite {
    /// Bytes of methods for each byte of bits.
    const BYTES_BESIDE_BITS: usize = 8 << INT_BITS;

    /// Reserves the array. `None`: the system refuses the memory.
    pub fn new() -> Option<MethodOfSite> {
        const METHODS: usize = 1 << (SiteId::BITS + INT_BITS);
        let all = METHODS + METHODS / Self::BYTES_BESIDE_BITS;
        let range = reserve_memory(all, 4 << 20)?;
        // At least one byte of bits for the methods of eight sites; methods begin at a page.
        let bits = (range.bytes / (Self::BYTES_BESIDE_BITS + 1) + 1).next_multiple_of(PAGE);
        let methods = range.sub_range(range.start + bits, range.bytes.checked_sub(bits)?)?;
        Some(MethodOfSite { range, methods })
    }

    pub fn address(&self) -> usize {
        self.methods.start
    }

    /// Releases pages that are no longer needed. They read as zeros.
    pub fn release_pages(&self, pages: &[usize]) {
        release_pages(self.methods, pages);
    }

    /// Unmaps the array. No thread reads it any more or has its address.
    pub fn unmap(self) {
        // SAFETY: `new` made the reservation. No thread reads it any more or has its address.
        unsafe {
            libc::munmap(
                ptr::with_exposed_provenance_mut(self.range.start),
                self.range.bytes,
            )
        };
    }

    /// The number of sites for which there is room.
    pub fn site_capacity(&self) -> usize {
        self.methods.bytes >> INT_BITS
    }

    /// The method of a site. 0: no such site.
    pub fn get(&self, site: u32) -> u32 {
        self.method_word(site).map_or(0, site_method::load_method)
    }

    /// Sets the method of a site whose code has not run yet.
    pub fn set(&self, site: u32, method: u32) {
        if let Some(entry) = self.method_word(site) {
            site_method::set_method(entry, method);
        }
    }

    /// Marks a site as countable. The log must have the size of its objects.
    pub fn mark_countable(&self, site: u32) {
        if let Some(word) = self.bit_word(site) {
            // Release: pairs with Java code's acquiring load, so the log's records of the site come before its counters.
            word.fetch_or(site_bit(site), Ordering::Release);
        }
    }

    /// Whether a site is countable.
    pub fn is_countable(&self, site: u32) -> bool {
        // Acquire: pairs with the Release in `mark_countable`.
        let has_bit = |word: &AtomicU64| word.load(Ordering::Acquire) & site_bit(site) != 0;
        self.bit_word(site).is_some_and(has_bit)
    }

    /// The word of a site. `None`: there is no room for the site.
    fn method_word(&self, site: u32) -> Option<&AtomicU32> {
        let at = self.methods.start + ((site as usize) << INT_BITS);
        // SAFETY: within the reservation, which is never unmapped, and aligned, as that begins with a page.
        let entry = || unsafe { AtomicU32::from_ptr(ptr::with_exposed_provenance_mut(at)) };
        ((site as usize) < self.site_capacity()).then(entry)
    }

    /// The word with a site's bit. `None`: there is no room for the site.
    fn bit_word(&self, site: u32) -> Option<&AtomicU64> {
        let before = ((site >> WORD_SITES_BITS) as usize + 1) * size_of::<AtomicU64>();
        let at = self.methods.start.checked_sub(before)?;
        let is_in = (site as usize) < self.site_capacity() && at >= self.range.start;
        // SAFETY: within the reservation, which is never unmapped, and aligned, as the methods begin with a page.
        let entry = || unsafe { AtomicU64::from_ptr(ptr::with_exposed_provenance_mut(at)) };
        is_in.then(entry)
    }
}

fn site_bit(site: u32) -> u64 {
    1 << (site % u64::BITS)
}

#[cfg(test)]
mod address_space_tests {
    use super::*;

    #[test]
    fn threads_without_stacks_are_recognized() {
        let first = stackless_pointer();
        for (pointer, is_stackless) in [
            (Slot::from_pointer(0), false),
            (Slot::from_pointer(0).up_by(100), false),
            (first, true),
            (first.up_by(100_000), true),
            (Slot::from_pointer(SCRATCH), false),
        ] {
            assert_eq!(is_of_stackless_thread(pointer), is_stackless, "{pointer:?}");
        }
    }

    #[test]
    fn pointers_of_boot_threads_are_recognized() {
        let stacks = shared_stacks();
        let second = stacks.boot.start + stacks.boot_stack;
        let of = |address| {
            let region = stacks.find_boot_region(Slot::from_address(address));
            region.map(|region| (region.start, region.bytes))
        };
        assert_eq!(of(second), Some((second, stacks.boot_stack)));
        assert_eq!(of(second + 160), Some((second, stacks.boot_stack)));
        for other in [
            0,
            stacks.boot.start - 16,
            stacks.boot.start + stacks.boot.bytes,
        ] {
            assert_eq!(of(other), None);
        }
        assert!(stacks.find_boot_region(Slot::from_pointer(0)).is_none());
    }

    #[test]
    fn each_site_has_a_method_and_a_bit_of_its_own() {
        let sites = MethodOfSite::new().unwrap();
        let last = sites.site_capacity() as u32 - 1;
        let some = [0, 1, 63, 64, 65, 127, 128, last - 1, last];
        for site in some {
            assert!(!sites.is_countable(site) && sites.get(site) == 0, "{site}");
            sites.mark_countable(site);
            sites.set(site, site ^ 7);
        }
        for site in some {
            assert!(sites.is_countable(site) && sites.get(site) == site ^ 7);
        }
        // Neighbours, and sites for which there is no room.
        for other in [2, 62, 66, 126, 129, last - 2, last + 1, u32::MAX] {
            sites.mark_countable(other.max(last + 1));
            assert!(!sites.is_countable(other), "{other}");
        }
        sites.unmap();
    }
}
