//! HotSpot's flags that JVMTI does not report, read from the VM's self-description for debuggers.
//!
//! `libjvm.so` exports a table of its structures' fields (`gHotSpotVMStructs`), an entry each:
//!
//! ```text
//! type name | field name | … | is static | offset in the type | address if static
//! ```
//! `libjvm.so` also exports the offsets of an entry's parts, and a table of types with their sizes. The flags are an
//! array of `JVMFlag`, which has the fields `_name` (a text) and `_addr` (the address of the value). Anything that is
//! missing is treated as absent.
#![allow(unsafe_code, reason = "reads the VM's own description of itself")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use jvmti_bindings::sys::jni::JavaVM;

use crate::VmHandle;

/// Returns a warning for the user if this JVM writes a class archive for later JVMs.
///
/// Such an archive must not hold hooks: HotSpot crashes on them.
pub fn archive_warning(vm: *mut JavaVM) -> Option<String> {
    let flags = VmFlags::from_vm(vm)?;
    let mode = flags
        .read_text(c"AOTMode")
        .filter(|mode| mode == "record" || mode == "create")?;
    let options = ["AOTCacheOutput", "AOTConfiguration", "AOTCache"];
    let option = options.into_iter().find_map(|name| {
        let value = flags.read_text(&std::ffi::CString::new(name).ok()?)?;
        Some(format!("-XX:{name}={value}"))
    });
    let option = option.unwrap_or_else(|| format!("-XX:AOTMode={mode}"));
    Some(format!(
        "this JVM writes an archive of classes ({option}), which cannot hold the agent's hooks"
    ))
}

/// Returns the bytes of addresses that the VM will reserve once its agents are started: for the heap with the
/// collector's data, for classes, for code, and some for threads.
pub fn expected_addresses(vm: *mut JavaVM) -> u64 {
    const THREADS: u64 = 768 << 20;
    let flags = VmFlags::from_vm(vm);
    let number = |name| {
        flags
            .as_ref()
            .and_then(|flags| flags.read_number(name))
            .unwrap_or(0)
    };
    let heap = number(c"MaxHeapSize");
    [
        heap,
        heap / 8,
        number(c"CompressedClassSpaceSize"),
        number(c"ReservedCodeCacheSize"),
    ]
    .into_iter()
    .fold(THREADS, u64::saturating_add)
}

/// Whether the VM checks who handles signals and reports foreign handlers (`-Xcheck:jni`).
pub fn checks_handlers(vm: *mut JavaVM) -> bool {
    VmFlags::from_vm(vm).and_then(|flags| flags.is_on(c"CheckJNICalls")) == Some(true)
}

/// Makes HotSpot's compilers accept methods of any length.
///
/// `false`: they do not, because the user set the flag, or because the VM does not describe its flags.
pub fn compile_long_methods(vm: VmHandle) -> bool {
    const NAME: &CStr = c"DontCompileHugeMethods";
    let done = || {
        let flags = VmFlags::from_vm(vm.as_raw())?;
        let flag = flags.find_flag(NAME)?;
        if !flags.is_on(NAME)? {
            return Some(true);
        }
        if !flags.is_default(flag) {
            return Some(false);
        }
        let at = ptr::with_exposed_provenance_mut(flags.value_address(NAME)?);
        // SAFETY: the flag's value is a byte, which compilers read whenever they choose a method, and nobody else
        // writes it.
        let value = unsafe { AtomicU8::from_ptr(at) };
        // Relaxed: no other data depends on the byte.
        value.store(0, Ordering::Relaxed);
        Some(true)
    };
    done() == Some(true)
}

/// Makes HotSpot create its table of symbols with [`SYMBOL_BUCKETS`] buckets. Must be called before the VM creates it:
/// in `Agent_OnLoad`.
///
/// Without the archive of classes, all symbols of the JDK are in that table. With 32,768 buckets, each look-up then
/// follows a long chain. Nothing changes if the user set the flag, or if the VM does not describe its flags.
pub fn enlarge_symbol_table(vm: *mut JavaVM) {
    const NAME: &CStr = c"SymbolTableSize";
    let Some(flags) = VmFlags::from_vm(vm) else {
        return;
    };
    let is_default = flags
        .find_flag(NAME)
        .is_some_and(|flag| flags.is_default(flag));
    let is_small = flags
        .read_number(NAME)
        .is_some_and(|size| size < SYMBOL_BUCKETS as u64);
    if let (true, true, Some(address)) = (is_default, is_small, flags.value_address(NAME)) {
        // SAFETY: the flag's value is a word. The VM has one thread now, and reads the word when it creates the table.
        let value = unsafe { AtomicUsize::from_ptr(ptr::with_exposed_provenance_mut(address)) };
        // Relaxed: the same thread reads it.
        value.store(SYMBOL_BUCKETS, Ordering::Relaxed);
    }
}

/// Buckets for the symbols of a large program, of 8 bytes each.
const SYMBOL_BUCKETS: usize = 1 << 18;

/// Returns the maximum size of the Java heap in bytes. `None`: unknown.
pub fn max_heap_bytes(vm: *mut JavaVM) -> Option<u64> {
    VmFlags::from_vm(vm)?.read_number(c"MaxHeapSize")
}

/// Returns the size above which G1 allocates an object in regions of its own, in the old generation: half a region.
/// `None`: another collector.
pub fn humongous_bytes(vm: *mut JavaVM) -> Option<u64> {
    let flags = VmFlags::from_vm(vm)?;
    let is_g1 = flags.is_on(c"UseG1GC")?;
    let region = flags.read_number(c"G1HeapRegionSize")?;
    (is_g1 && region > 0).then_some(region / 2)
}

/// Returns the flag that makes this JVM exit on an exhausted heap before it notifies agents. `None`: it continues.
pub fn exit_on_exhaustion(vm: *mut JavaVM) -> Option<&'static str> {
    let flags = VmFlags::from_vm(vm)?;
    let names = [c"ExitOnOutOfMemoryError", c"CrashOnOutOfMemoryError"];
    let name = names
        .into_iter()
        .find(|name| flags.is_on(name) == Some(true))?;
    name.to_str().ok()
}

/// Returns the value of a static field of the VM, of one word. `None`: the VM does not describe it.
pub(crate) fn static_word(vm: *mut JavaVM, class: &'static CStr, field: &[u8]) -> Option<usize> {
    let library = VmLibrary::from_vm(vm)?;
    let fields = VmTable::new(&library, "Struct", "TypeName")?;
    let part = |name| library.read_variable(&format!("gHotSpotVMStructEntry{name}Offset"));
    let (field_name, fixed) = (part("FieldName")?, part("Address")?);
    // SAFETY: a part of an entry of the VM's, at the place that the VM says.
    let name_of = |entry: &usize| unsafe { text_at(entry + field_name) };
    let mut entries = fields.entries_named(class);
    let entry =
        entries.find(|entry| name_of(entry).is_some_and(|name| name.to_bytes() == field))?;
    // SAFETY: parts of an entry of the VM's, at the offsets that the VM says.
    let address = unsafe { read_word(entry + fixed) };
    // SAFETY: the address of the VM's own variable.
    (address != 0).then(|| unsafe { read_word(address) })
}

/// All flags, in the VM's own array.
struct VmFlags {
    first: usize,
    count: usize,
    size: usize,
    name: usize,
    address: usize,
    /// The offset of the field whose lowest bits say who set the flag.
    origin: Option<usize>,
}

impl VmFlags {
    fn from_vm(vm: *mut JavaVM) -> Option<VmFlags> {
        let library = VmLibrary::from_vm(vm)?;
        let fields = VmTable::new(&library, "Struct", "TypeName")?;
        let (mut name, mut address, mut first, mut count) = (None, None, None, None);
        let mut origin = None;
        let part = |name| library.read_variable(&format!("gHotSpotVMStructEntry{name}Offset"));
        let (field_name, offset, fixed) = (part("FieldName")?, part("Offset")?, part("Address")?);
        for entry in fields.entries_named(c"JVMFlag") {
            // SAFETY: a part of an entry of the VM's, at the place that the VM says.
            let field = unsafe { text_at(entry + field_name) }?;
            // SAFETY: parts of an entry of the VM's, at the offsets that the VM says.
            let (offset, fixed) = unsafe { (read_word(entry + offset), read_word(entry + fixed)) };
            match field.to_bytes() {
                b"_name" => name = Some(offset),
                b"_addr" => address = Some(offset),
                b"_flags" => origin = Some(offset),
                b"flags" => first = Some(fixed),
                b"numFlags" => count = Some(fixed),
                _ => {}
            }
        }
        let types = VmTable::new(&library, "Type", "TypeName")?;
        let size = types.entries_named(c"JVMFlag").next()?
            + library.read_variable("gHotSpotVMTypeEntrySizeOffset")?;
        let (first, count) = (first.filter(|at| *at != 0)?, count.filter(|at| *at != 0)?);
        // SAFETY: addresses of the VM's own variables.
        let (first, count, size) = unsafe { (read_word(first), read_word(count), read_word(size)) };
        Some(VmFlags {
            first,
            count,
            size,
            name: name?,
            address: address?,
            origin,
        })
    }

    /// `None`: there is no such flag.
    fn find_flag(&self, name: &CStr) -> Option<usize> {
        let mut all = (0..self.count).map(|n| self.first + n * self.size);
        // SAFETY: parts of an element of the VM's array; the last one has no name.
        all.find(|flag| unsafe { text_at(flag + self.name) } == Some(name))
    }

    /// Returns the address of a flag's value. `None`: there is no such flag.
    fn value_address(&self, name: &CStr) -> Option<usize> {
        // SAFETY: a part of an element of the VM's array.
        Some(unsafe { read_word(self.find_flag(name)? + self.address) })
    }

    /// Whether the flag has its default value (`JVMFlagOrigin::DEFAULT`).
    fn is_default(&self, flag: usize) -> bool {
        const ORIGIN: u32 = 0xf;
        self.origin.is_some_and(|at| {
            // SAFETY: a part of an element of the VM's array, which is an int.
            let flags = unsafe { ptr::with_exposed_provenance::<u32>(flag + at).read() };
            flags & ORIGIN == 0
        })
    }

    fn is_on(&self, name: &CStr) -> Option<bool> {
        let at = self.value_address(name)?;
        // SAFETY: the flag's value is a byte.
        Some(unsafe { ptr::with_exposed_provenance::<u8>(at).read() } != 0)
    }

    /// Returns the value of a flag that is a size.
    fn read_number(&self, name: &CStr) -> Option<u64> {
        let at = self.value_address(name)?;
        // SAFETY: the flag's value is a word.
        Some(unsafe { read_word(at) } as u64)
    }

    /// Returns the value of a flag that is a text. `None`: the flag has no value.
    fn read_text(&self, name: &CStr) -> Option<String> {
        let at = self.value_address(name)?;
        // SAFETY: the flag's value is a pointer to a text, or null.
        let value = unsafe { text_at(at) };
        value.map(|value| value.to_string_lossy().into_owned())
    }
}

/// One of the VM's tables. It ends with an entry without a name.
struct VmTable {
    first: usize,
    stride: usize,
    name: usize,
}

impl VmTable {
    fn new(library: &VmLibrary, kind: &str, name: &str) -> Option<VmTable> {
        Some(VmTable {
            first: library.read_variable(&format!("gHotSpotVM{kind}s"))?,
            stride: library.read_variable(&format!("gHotSpotVM{kind}EntryArrayStride"))?,
            name: library.read_variable(&format!("gHotSpotVM{kind}Entry{name}Offset"))?,
        })
    }

    /// Returns the addresses of the entries with this name.
    fn entries_named(&self, name: &'static CStr) -> impl Iterator<Item = usize> {
        const MOST: usize = 100_000;
        let (first, stride, at) = (self.first, self.stride, self.name);
        // SAFETY: entries up to the one without a name are the VM's.
        let named = move |n| unsafe { text_at(first + n * stride + at) }.map(|found| (n, found));
        (0..MOST)
            .map_while(named)
            .filter(move |(_, found)| *found == name)
            .map(move |(n, _)| first + n * stride)
    }
}

/// The VM's library.
struct VmLibrary(*mut c_void);

impl VmLibrary {
    fn from_vm(vm: *mut JavaVM) -> Option<VmLibrary> {
        // SAFETY: the VM's table of functions, one of which lies in its library. The library stays loaded.
        let handle = unsafe {
            let functions = (*vm).cast::<usize>();
            let mut info: libc::Dl_info = std::mem::zeroed();
            // The first three words of the table are reserved.
            let function = ptr::with_exposed_provenance(functions.add(3).read());
            if libc::dladdr(function, &raw mut info) == 0 || info.dli_fname.is_null() {
                return None;
            }
            libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD)
        };
        (!handle.is_null()).then_some(VmLibrary(handle))
    }

    /// Reads an exported variable of one word.
    fn read_variable(&self, name: &str) -> Option<usize> {
        let name = std::ffi::CString::new(name).ok()?;
        // SAFETY: the library is loaded.
        let at = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: all requested variables are words.
        (!at.is_null()).then(|| unsafe { read_word(at as usize) })
    }
}

/// # Safety
/// A word lies there.
unsafe fn read_word(at: usize) -> usize {
    // SAFETY: the caller says that a word lies there.
    unsafe { ptr::with_exposed_provenance::<usize>(at).read() }
}

/// # Safety
/// The address of a text lies there, or null.
unsafe fn text_at<'a>(at: usize) -> Option<&'a CStr> {
    // SAFETY: the caller says that an address lies there.
    let text = unsafe { ptr::with_exposed_provenance::<*const c_char>(at).read() };
    // SAFETY: the caller says that a text lies at this address. The VM keeps texts of flags and fields.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
