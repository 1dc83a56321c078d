//! What compilers and linkers put into the agent and the command beside packages that cargo fetches.

use std::fs;
use std::path::Path;

use crate::systems::CLibrary;

/// Something of others, with the licence that it has.
pub struct Part {
    pub name: &'static str,
    /// As SPDX has it.
    pub licence: &'static str,
    /// What is permitted beyond that licence, in words.
    pub permission: Option<&'static str>,
    pub repository: &'static str,
    pub copyrights: &'static [&'static str],
    /// Whether it comes with the compiler, in the compiler's version.
    pub of_the_compiler: bool,
    /// The C library with which it is linked; None: with each.
    pub c_library: Option<CLibrary>,
}

const RUST: &str = "Copyright The Rust Project Developers (see https://thanks.rust-lang.org)";

pub const PARTS: [Part; 15] = [
    Part {
        name: "Rust's standard library",
        licence: "(MIT OR Apache-2.0) AND Unicode-3.0",
        permission: None,
        repository: "https://github.com/rust-lang/rust",
        copyrights: &[
            RUST,
            "Copyright 2014 Alex Crichton",
            "Copyright 2019 The Crossbeam Project Developers",
            "Copyright 1991-2024 Unicode, Inc",
        ],
        of_the_compiler: true,
        c_library: None,
    },
    of_rust(
        "addr2line",
        "Apache-2.0 OR MIT",
        "https://github.com/gimli-rs/addr2line",
        &[],
    ),
    of_rust(
        "adler2",
        "0BSD OR MIT OR Apache-2.0",
        "https://github.com/oyvindln/adler2",
        &[],
    ),
    of_rust(
        "cfg-if",
        "MIT OR Apache-2.0",
        "https://github.com/rust-lang/cfg-if",
        &["Copyright (c) 2014 Alex Crichton"],
    ),
    of_rust(
        "compiler_builtins",
        "MIT AND Apache-2.0 WITH LLVM-exception AND (MIT OR Apache-2.0)",
        "https://github.com/rust-lang/compiler-builtins",
        &[RUST],
    ),
    of_rust(
        "gimli",
        "MIT OR Apache-2.0",
        "https://github.com/gimli-rs/gimli",
        &["Copyright (c) 2015 The Rust Project Developers"],
    ),
    of_rust(
        "hashbrown",
        "MIT OR Apache-2.0",
        "https://github.com/rust-lang/hashbrown",
        &["Copyright (c) 2016 Amanieu d'Antras"],
    ),
    of_rust(
        "libc",
        "MIT OR Apache-2.0",
        "https://github.com/rust-lang/libc",
        &["Copyright (c) 2014-2020 The Rust Project Developers"],
    ),
    of_rust(
        "memchr",
        "Unlicense OR MIT",
        "https://github.com/BurntSushi/memchr",
        &["Copyright (c) 2015 Andrew Gallant"],
    ),
    of_rust(
        "miniz_oxide",
        "MIT OR Zlib OR Apache-2.0",
        "https://github.com/Frommi/miniz_oxide",
        &[
            "Copyright (c) 2017 Frommi",
            "Copyright (c) 2017-2024 oyvindln",
            "Copyright (c) 2020 Frommi",
        ],
    ),
    of_rust(
        "object",
        "Apache-2.0 OR MIT",
        "https://github.com/gimli-rs/object",
        &["Copyright (c) 2015 The Gimli Developers"],
    ),
    of_rust(
        "rustc-demangle",
        "MIT OR Apache-2.0",
        "https://github.com/rust-lang/rustc-demangle",
        &["Copyright (c) 2014 Alex Crichton"],
    ),
    Part {
        name: "LLVM's libunwind",
        licence: "Apache-2.0 WITH LLVM-exception",
        permission: None,
        repository: "https://github.com/llvm/llvm-project",
        copyrights: &["Copyright (c) 2009-2019 by the contributors listed in CREDITS.TXT"],
        of_the_compiler: false,
        c_library: None,
    },
    // How a program starts, and those functions that glibc links into each program (`stat` and its like).
    Part {
        name: "glibc's start files and libc_nonshared",
        licence: "LGPL-2.1-or-later",
        permission: Some("with permission to link them into any program"),
        repository: "https://sourceware.org/git/glibc.git",
        copyrights: &["Copyright (C) Free Software Foundation, Inc."],
        of_the_compiler: false,
        c_library: Some(CLibrary::Glibc),
    },
    Part {
        name: "musl's start files",
        licence: "MIT",
        permission: None,
        repository: "https://git.musl-libc.org/cgit/musl",
        copyrights: &["Copyright (c) 2005-2020 Rich Felker, et al."],
        of_the_compiler: false,
        c_library: Some(CLibrary::Musl),
    },
];

/// Of what Rust's standard library is made of.
const fn of_rust(
    name: &'static str,
    licence: &'static str,
    repository: &'static str,
    copyrights: &'static [&'static str],
) -> Part {
    Part {
        name,
        licence,
        permission: None,
        repository,
        copyrights,
        of_the_compiler: true,
        c_library: None,
    }
}

/// What is told by a file that a Rust compiler made, with its debug information.
pub struct Made(Vec<u8>);

impl Made {
    /// # Errors
    /// The file cannot be read.
    pub fn read(file: &Path) -> Result<Made, String> {
        let bytes = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Made(bytes))
    }

    /// The compiler's version.
    pub fn compiler(&self) -> Option<String> {
        self.version_behind("rustc version ")
    }

    /// The version of a package that the standard library is made of, if something of it is in the file.
    pub fn version_of(&self, part: &Part) -> Option<String> {
        let source = format!("/rust/deps/{}-", part.name);
        part.of_the_compiler
            .then(|| self.version_behind(&source))
            .flatten()
    }

    /// The first version behind this text.
    fn version_behind(&self, text: &str) -> Option<String> {
        let mut places = self.0.windows(text.len()).enumerate();
        places.find_map(|(at, part)| {
            let rest = self.0.get(at + text.len()..)?;
            let of_it = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
            let digits = rest.iter().take_while(of_it);
            let found: String = digits.map(|byte| char::from(*byte)).collect();
            (part == text.as_bytes() && found.contains('.')).then_some(found)
        })
    }
}

#[cfg(test)]
mod linked_tests {
    use super::*;
    use crate::tools;
    use std::process::Command;

    /// Of the standard library's folder: what has an entry of its own by its name, and what is of the library itself.
    const OWN: [&str; 15] = [
        "alloc",
        "core",
        "panic_abort",
        "panic_unwind",
        "proc_macro",
        "profiler_builtins",
        "rustc_literal_escaper",
        "rustc_std_workspace_alloc",
        "rustc_std_workspace_core",
        "rustc_std_workspace_std",
        "std",
        "std_detect",
        "sysroot",
        "test",
        "unwind",
    ];
    /// Of `test`, which is in no program.
    const OF_TESTS: [&str; 1] = ["getopts"];

    /// Another compiler's library may have other packages in it.
    #[test]
    fn all_that_the_standard_library_is_made_of_is_named() {
        let mut ask = Command::new("rustc");
        let folder = tools::output(ask.args(["--print", "target-libdir"])).unwrap();
        let folder = String::from_utf8(folder).unwrap();
        let mut packages = 0;
        for file in fs::read_dir(folder.trim()).unwrap().flatten() {
            let name = file.file_name().into_string().unwrap();
            let Some(name) = name.strip_suffix(".rlib") else {
                continue;
            };
            let name = name.strip_prefix("lib").unwrap().rsplit_once('-');
            let (name, _) = name.unwrap();
            packages += 1;
            let is_named = PARTS.iter().any(|part| part.name.replace('-', "_") == name);
            assert!(
                is_named || OWN.contains(&name) || OF_TESTS.contains(&name),
                "{name}"
            );
        }
        assert!(packages > OWN.len());
    }

    #[test]
    fn versions_are_found_in_what_was_made() {
        let bytes = b"\x7fELF rustc version of\0/rust/deps/gimli-0.32.3/src/lib.rs\0rustc version 1.95.0 (59807616e)\0";
        let made = Made(bytes.to_vec());
        assert_eq!(made.compiler().as_deref(), Some("1.95.0"));
        let named = |name: &str| PARTS.iter().find(|part| part.name == name).unwrap();
        let of = |name: &str| made.version_of(named(name));
        assert_eq!(of("gimli").as_deref(), Some("0.32.3"));
        assert_eq!(of("object"), None);
        assert_eq!(Made(b"rustc version ".to_vec()).compiler(), None);
    }
}
