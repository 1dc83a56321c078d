//! Functions that loaded libraries import: replaces them in the libraries' tables of addresses.
//!
//! A library calls an imported function through a slot. The dynamic linker writes the function's address to the slot when it loads
//! the library, or, bound lazily, at the first call. Until then the slot leads back into the library itself.
//!
//! ```text
//! PT_DYNAMIC ─► relocations (JUMP_SLOT, GLOB_DAT) ─► name of the symbol, slot ─► address of the function
//! ```
//! A slot changes only if it leads to the expected function or is not bound yet. So a library with another allocator keeps it. A
//! library that defines one of the functions is an allocator: its slots stay.
//!
//! Another thread may load a library meanwhile. The linker lists it first, relocates it, and then makes the pages of `PT_GNU_RELRO`
//! read-only. Slots that are not relocated, or whose pages the linker is going to protect, wait for a later pass. Pages that are
//! read-only become so again.
#![allow(
    unsafe_code,
    reason = "reads tables of the dynamic linker and writes to slots of libraries"
)]

use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::memory::address_space::PAGE;
use crate::memory::locks::WatchedMutex;

/// An imported function and what takes its place.
#[derive(Clone, Copy, Debug)]
pub struct ReplacedImport {
    pub name: &'static CStr,
    pub original: usize,
    pub replacement: usize,
}

/// The functions to replace in a library with this file name.
pub type ImportSelection = fn(&str) -> &'static [ReplacedImport];

/// Tags of `Elf64_Dyn`.
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_JMPREL: u64 = 23;
/// The section of symbols that other libraries define.
const SHN_UNDEF: u16 = 0;

#[cfg(target_arch = "x86_64")]
const GLOB_DAT: u32 = 6;
#[cfg(target_arch = "x86_64")]
const JUMP_SLOT: u32 = 7;
#[cfg(target_arch = "aarch64")]
const GLOB_DAT: u32 = 1025;
#[cfg(target_arch = "aarch64")]
const JUMP_SLOT: u32 = 1026;

/// `Elf64_Dyn`
#[repr(C)]
#[derive(Clone, Copy)]
struct DynamicEntry {
    tag: u64,
    value: u64,
}

/// `Elf64_Rela`
#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: u64,
    info: u64,
    _addend: i64,
}

/// One thread at a time changes the protection of pages.
static REPLACING: WatchedMutex<RepeatedPasses> = WatchedMutex::new(RepeatedPasses {
    loads: 0,
    passes: 0,
});

/// Passes since a library was loaded last.
struct RepeatedPasses {
    loads: usize,
    passes: usize,
}

/// Number of times that a library was loaded, before the last pass that left no slot for later.
static LOADS_SEEN: AtomicUsize = AtomicUsize::new(0);

/// Maximum number of passes that leave a slot for later while no library is loaded.
const MAX_REPEATED: usize = 100;

/// Replaces functions in all loaded libraries, if a library was loaded since the last call.
pub fn replace_in_new_libraries(selection: ImportSelection) {
    let mut loads = 0;
    // SAFETY: the function is called with this variable, before this call returns.
    unsafe { libc::dl_iterate_phdr(Some(read_load_count), (&raw mut loads).cast()) };
    // Relaxed: a later call sees what an earlier one missed.
    if loads == LOADS_SEEN.load(Ordering::Relaxed) {
        return;
    }
    let mut repeated = REPLACING.lock();
    // Another thread may have done it meanwhile.
    if loads == LOADS_SEEN.load(Ordering::Relaxed) {
        return;
    }
    let mut pass = ReplacingPass::new(selection);
    // SAFETY: the function is called with this variable, before this call returns.
    unsafe { libc::dl_iterate_phdr(Some(replace_in_object), (&raw mut pass).cast()) };
    if pass.is_complete || !repeated.may_repeat(loads) {
        LOADS_SEEN.store(loads, Ordering::Relaxed);
    }
}

impl RepeatedPasses {
    fn may_repeat(&mut self, loads: usize) -> bool {
        if self.loads != loads {
            *self = RepeatedPasses { loads, passes: 0 };
        }
        self.passes += 1;
        self.passes < MAX_REPEATED
    }
}

unsafe extern "C" fn read_load_count(
    info: *mut libc::dl_phdr_info,
    _: usize,
    count: *mut c_void,
) -> c_int {
    // SAFETY: the linker passes its description, and the caller of this module the address of a number.
    unsafe { *count.cast::<usize>() = (*info).dlpi_adds as usize };
    1
}

struct ReplacingPass {
    selection: ImportSelection,
    /// The writable addresses, read when the first slot is to be changed.
    writable: Option<Vec<Range<usize>>>,
    /// No slot waits for a later pass.
    is_complete: bool,
}

impl ReplacingPass {
    fn new(selection: ImportSelection) -> ReplacingPass {
        ReplacingPass {
            selection,
            writable: None,
            is_complete: true,
        }
    }
}

/// While it runs, the linker unloads no library.
unsafe extern "C" fn replace_in_object(
    info: *mut libc::dl_phdr_info,
    _: usize,
    pass: *mut c_void,
) -> c_int {
    // SAFETY: the linker passes its description, and the caller of this module the address of its pass.
    let (info, pass) = unsafe { (&*info, &mut *pass.cast::<ReplacingPass>()) };
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: the linker's own text.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
    let file = path.rsplit('/').next().unwrap_or_default();
    let imports = (pass.selection)(file);
    if !imports.is_empty()
        && let Some(object) = LoadedObject::new(info)
        && !object.defines_any(imports)
    {
        object.replace_imports(pass, imports);
    }
    0
}

/// A symbol of a library's table.
struct ImportedSymbol<'t> {
    name: &'t CStr,
    /// The library itself defines it.
    is_defined: bool,
}

/// A loaded library.
struct LoadedObject {
    base: usize,
    addresses: Range<usize>,
    /// Pages that the linker makes read-only when it has relocated the library.
    protected: Range<usize>,
    symbols: usize,
    texts: usize,
    /// Relocations: address and bytes.
    tables: [(usize, usize); 2],
}

impl LoadedObject {
    /// `None`: it imports nothing.
    fn new(info: &libc::dl_phdr_info) -> Option<LoadedObject> {
        let base = info.dlpi_addr as usize;
        // SAFETY: the linker's own table of this object.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loaded = headers.iter().filter(|of| of.p_type == libc::PT_LOAD);
        let end = loaded.map(|of| (of.p_vaddr + of.p_memsz) as usize).max()?;
        let addresses = base..base.checked_add(end)?;
        let protected = headers.iter().find(|of| of.p_type == libc::PT_GNU_RELRO);
        let protected = protected.map_or(0..0, |of| {
            let start = base + of.p_vaddr as usize;
            let end = start + of.p_memsz as usize;
            first_of_page(start)..first_of_page(end)
        });
        let dynamic = headers.iter().find(|of| of.p_type == libc::PT_DYNAMIC)?;
        let first = base + dynamic.p_vaddr as usize;
        let count = dynamic.p_memsz as usize / size_of::<DynamicEntry>();
        let entries = (0..count).map_while(|index| {
            let at = first + index * size_of::<DynamicEntry>();
            // SAFETY: an entry of the object's dynamic section, which is loaded.
            let entry = unsafe { std::ptr::with_exposed_provenance::<DynamicEntry>(at).read() };
            (entry.tag != 0).then_some(entry)
        });
        let entries: Vec<_> = entries.collect();
        let number = |tag| {
            let entry = entries.iter().find(|entry| entry.tag == tag);
            entry.map(|entry| entry.value as usize)
        };
        // Some linkers leave addresses as offsets.
        let address = |tag| {
            number(tag).map(|at| match at < base {
                true => base + at,
                false => at,
            })
        };
        let table = |at, size| (address(at).unwrap_or(0), number(size).unwrap_or(0));
        Some(LoadedObject {
            base,
            addresses,
            protected,
            symbols: address(DT_SYMTAB)?,
            texts: address(DT_STRTAB)?,
            tables: [table(DT_JMPREL, DT_PLTRELSZ), table(DT_RELA, DT_RELASZ)],
        })
    }

    /// Whether it is the agent, whatever its file is called, or the allocator whose functions the agent calls. Neither may enter
    /// itself through them.
    fn defines_any(&self, imports: &[ReplacedImport]) -> bool {
        let functions = imports
            .iter()
            .flat_map(|import| [import.original, import.replacement]);
        functions
            .into_iter()
            .any(|function| self.addresses.contains(&function))
    }

    fn replace_imports(&self, pass: &mut ReplacingPass, imports: &[ReplacedImport]) {
        for (table, bytes) in self.tables {
            for index in 0..bytes / size_of::<Relocation>() {
                let at = table + index * size_of::<Relocation>();
                // SAFETY: a relocation of the object, which is loaded.
                let relocation =
                    unsafe { std::ptr::with_exposed_provenance::<Relocation>(at).read() };
                let kind = relocation.info as u32;
                if (kind == JUMP_SLOT || kind == GLOB_DAT)
                    && let Some(symbol) = self.find_symbol(relocation)
                    && let Some(import) = imports.iter().find(|import| import.name == symbol.name)
                {
                    let slot = self.base + relocation.offset as usize;
                    // The library's own function also lies within it.
                    let may_be_unbound = kind == JUMP_SLOT && !symbol.is_defined;
                    self.replace_slot(pass, slot, import, may_be_unbound);
                }
            }
        }
    }

    fn find_symbol(&self, relocation: Relocation) -> Option<ImportedSymbol<'_>> {
        let index = (relocation.info >> 32) as usize;
        // Symbol 0 has no name.
        let index = std::num::NonZeroUsize::new(index)?.get();
        let at = self.symbols + index * size_of::<libc::Elf64_Sym>();
        // SAFETY: the object's symbol, which its relocation names.
        let symbol = unsafe { std::ptr::with_exposed_provenance::<libc::Elf64_Sym>(at).read() };
        let text = self.texts + symbol.st_name as usize;
        Some(ImportedSymbol {
            // SAFETY: the symbol's name in the object's texts.
            name: unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(text)) },
            is_defined: symbol.st_shndx != SHN_UNDEF,
        })
    }

    fn replace_slot(
        &self,
        pass: &mut ReplacingPass,
        address: usize,
        import: &ReplacedImport,
        may_be_unbound: bool,
    ) {
        if !self.addresses.contains(&address) || !address.is_multiple_of(align_of::<usize>()) {
            return;
        }
        let at = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: a slot of the object, which is loaded. The linker and other threads access it as a word.
        let slot = unsafe { AtomicUsize::from_ptr(at) };
        // Acquire: pairs with the linker's write of the address.
        let found = slot.load(Ordering::Acquire);
        // An offset in the library, or nothing yet.
        if found < self.addresses.len() {
            pass.is_complete = false;
            return;
        }
        let is_unbound = may_be_unbound && self.addresses.contains(&found);
        if found != import.original && !is_unbound {
            return;
        }
        let writable = pass.writable.get_or_insert_with(read_writable_ranges);
        let is_writable = writable.iter().any(|range| range.contains(&address));
        if is_writable && self.protected.contains(&address) {
            pass.is_complete = false;
            return;
        }
        let page = first_of_page(address) as *mut c_void;
        let protect = |protection| {
            // SAFETY: a page of the object with slots, whose content stays.
            unsafe { libc::mprotect(page, page_bytes(), protection) == 0 }
        };
        if is_writable || protect(libc::PROT_READ | libc::PROT_WRITE) {
            // Release: a thread that calls the replacement sees what it uses.
            slot.store(import.replacement, Ordering::Release);
            if !is_writable {
                protect(libc::PROT_READ);
            }
        }
    }
}

fn first_of_page(address: usize) -> usize {
    address & !(page_bytes() - 1)
}

/// 4,096, or more on some ARM machines.
fn page_bytes() -> usize {
    // SAFETY: reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(PAGE).max(PAGE)
}

fn read_writable_ranges() -> Vec<Range<usize>> {
    let text = fs::read("/proc/self/maps").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let ranges = text.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let range = address(start)?..address(end)?;
        rest.get(1..2).filter(|of| *of == "w").map(|_| range)
    });
    ranges.collect()
}

#[cfg(test)]
mod library_imports_tests {
    use super::*;

    #[test]
    fn pages_are_writable_or_not() {
        let ranges = read_writable_ranges();
        let contains = |address: usize| ranges.iter().any(|range| range.contains(&address));
        let local = 1_u8;
        assert!(contains((&raw const local).addr()));
        assert!(contains((&raw const LOADS_SEEN).addr()));
        assert!(!contains(read_writable_ranges as *const () as usize));
    }

    const IMPORT: ReplacedImport = ReplacedImport {
        name: c"malloc",
        original: 1_000,
        replacement: 2_000,
    };

    /// An object without symbols.
    fn object_at(addresses: Range<usize>, protected: Range<usize>) -> LoadedObject {
        LoadedObject {
            base: addresses.start,
            addresses,
            protected,
            symbols: 0,
            texts: 0,
            tables: [(0, 0); 2],
        }
    }

    #[test]
    fn a_slot_of_another_function_stays() {
        static OTHER: AtomicUsize = AtomicUsize::new(0);
        let slot = (&raw const OTHER).addr();
        let object = object_at(slot..slot + size_of::<usize>(), 0..0);
        let mut pass = ReplacingPass::new(|_| &[]);
        let mut replace = |value, may_be_unbound| {
            OTHER.store(value, Ordering::Relaxed);
            object.replace_slot(&mut pass, slot, &IMPORT, may_be_unbound);
            OTHER.load(Ordering::Relaxed)
        };
        assert_eq!(replace(1_000, false), 2_000);
        assert_eq!(replace(1_001, true), 1_001);
        // Not bound yet: it leads back into the library.
        assert_eq!(replace(slot, true), 2_000);
        assert_eq!(replace(slot, false), slot);
        assert!(pass.is_complete);
    }

    #[test]
    fn a_slot_waits_for_the_linker() {
        static SLOT: AtomicUsize = AtomicUsize::new(0);
        let slot = (&raw const SLOT).addr();
        let mut object = object_at(slot..slot + 100, slot..slot + 100);
        let replace = |object: &LoadedObject, value| {
            let mut pass = ReplacingPass::new(|_| &[]);
            SLOT.store(value, Ordering::Relaxed);
            object.replace_slot(&mut pass, slot, &IMPORT, true);
            (SLOT.load(Ordering::Relaxed), pass.is_complete)
        };
        assert_eq!(replace(&object, 1_000), (1_000, false));
        assert_eq!(replace(&object, slot), (slot, false));
        object.protected = 0..0;
        assert_eq!(replace(&object, 0), (0, false));
        assert_eq!(replace(&object, 99), (99, false));
        assert_eq!(replace(&object, 1_000), (2_000, true));
        assert!(!object.defines_any(&[IMPORT]));
        let original = slot + 1;
        assert!(object.defines_any(&[ReplacedImport { original, ..IMPORT }]));
        let replacement = original;
        assert!(object.defines_any(&[ReplacedImport {
            replacement,
            ..IMPORT
        }]));
    }

    #[test]
    fn passes_repeat_up_to_a_limit() {
        let mut repeated = RepeatedPasses {
            loads: 0,
            passes: 0,
        };
        let passes = (0..).take_while(|_| repeated.may_repeat(1)).count();
        assert_eq!(passes, MAX_REPEATED - 1);
        assert!(repeated.may_repeat(2));
    }
}
