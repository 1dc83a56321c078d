//! The identity of this agent: a hash of its own code and constants, as the dynamic loader has mapped them. Every other build
//! has another hash.
#![allow(
    unsafe_code,
    reason = "asks the loader where this library lies, and reads that"
)]

use std::ffi::c_int;
use std::ffi::c_void;

use xxhash_rust::xxh3::Xxh3;

/// The address to find, and the hash of the library that contains it.
struct LibrarySearch {
    address: usize,
    found: Option<u128>,
}

/// `None`: the loader does not know the library.
pub fn hash_own_code() -> Option<u128> {
    let mut search = LibrarySearch {
        address: hash_own_code as *const () as usize,
        found: None,
    };
    let data = (&raw mut search).cast::<c_void>();
    // SAFETY: the function takes what it is given here, and keeps none of it.
    unsafe { libc::dl_iterate_phdr(Some(look), data) };
    search.found
}

/// Called for each library; nonzero ends the search.
unsafe extern "C" fn look(
    library: *mut libc::dl_phdr_info,
    _: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a library that stays for now, and what `hash_own_code` passes.
    let (library, search) = unsafe { (&*library, &mut *data.cast::<LibrarySearch>()) };
    // SAFETY: the library's own headers.
    let headers =
        unsafe { std::slice::from_raw_parts(library.dlpi_phdr, library.dlpi_phnum.into()) };
    let parts = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD);
    let range = |header: &libc::Elf64_Phdr| {
        let start = (library.dlpi_addr + header.p_vaddr) as usize;
        start..start + header.p_filesz as usize
    };
    if !parts
        .clone()
        .any(|header| range(header).contains(&search.address))
    {
        return 0;
    }
    let mut sum = Xxh3::new();
    // Loading changes writable parts.
    let same = parts.filter(|header| {
        let flags = header.p_flags & (libc::PF_R | libc::PF_W);
        flags == libc::PF_R
    });
    for part in same {
        let range = range(part);
        // SAFETY: mapped to be read for as long as the library is there, and never written to.
        sum.update(unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance(range.start), range.len())
        });
    }
    search.found = Some(sum.digest128());
    1
}

#[cfg(test)]
mod own_code_tests {
    use super::*;

    #[test]
    fn the_sum_is_always_the_same() {
        let first = hash_own_code().unwrap();
        assert_ne!(first, Xxh3::new().digest128());
        assert_eq!(hash_own_code(), Some(first));
    }
}
