//! The function table of JVMTI.
//!
//! All environments of a VM share it, so a replaced function is replaced for every agent and debugger.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use jvmti_bindings::sys::jvmti as ti;

use super::Jvmti;

/// The functions of this version of the interface.
pub type ToolTable = ti::jvmtiInterface_1_;

impl Jvmti {
    /// Returns the table. `None`: its memory is read-only.
    pub fn writable_table(self) -> Option<*mut ToolTable> {
        // SAFETY: the environment is the VM's own, and begins with the address of its table.
        let table = unsafe { (*self.0).functions }.cast_mut();
        let start = table.addr();
        let end = start + size_of::<ToolTable>();
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let mut writable = maps.lines().filter_map(writable_range);
        let is_in = writable.any(|(from, to)| from <= start && end <= to);
        is_in.then_some(table)
    }
}

/// Returns the address range of a line of `/proc/self/maps`, if the memory is writable.
fn writable_range(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let is_writable = words.next()?.starts_with("rw");
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(from)?, address(to)?)).filter(|_| is_writable)
}

/// Replaces a function. Threads that call it meanwhile find either the old or the new one.
///
/// # Safety
/// `place` is the address of a function in the table of [`Jvmti::writable_table`]; `function` has the same prototype.
pub unsafe fn replace_function(place: *mut usize, function: usize) {
    // SAFETY: the caller passes the address of a function in the VM's table. It is an aligned word that lives as long as
    // the VM.
    let place = unsafe { AtomicUsize::from_ptr(place) };
    // Release: a thread that finds the function sees the data that it needs.
    place.store(function, Ordering::Release);
}

#[cfg(test)]
mod tool_table_tests {
    use super::*;

    #[test]
    fn only_writable_memory_is_reported() {
        let line = |flags: &str| format!("7f00-7f80 {flags} 00001000 fe:00 42    /lib/libjvm.so");
        assert_eq!(writable_range(&line("rw-p")), Some((0x7f00, 0x7f80)));
        for flags in ["r--p", "r-xp", "---p"] {
            assert_eq!(writable_range(&line(flags)), None, "{flags}");
        }
        assert_eq!(writable_range(""), None);
        assert_eq!(writable_range("7f00 rw-p"), None);
    }
}
