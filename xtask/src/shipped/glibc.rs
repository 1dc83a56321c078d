//! Which glibc a file wants.
//!
//! The linker takes each function in the version that the glibc of the building machine has, although an older glibc may have the
//! function, too: `pthread_create` was in another library once, and has version 2.34 since it moved. So a file has two numbers:
//! ```text
//! linked    the newest version that the file names: no older glibc loads it
//! needed    the newest of the versions in which the functions first appeared: what a link against an old glibc gives
//! ```
//! References that are weak are asked for at run time and done without; a link against an old glibc leaves them open.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools;

/// A version of glibc.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Glibc(pub u32, pub u32);

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Functions that an older glibc links in from its static part (`libc_nonshared.a`), on a function with another name: from 2.33 on
/// they are in the library itself.
const STATIC_BEFORE: [&str; 9] = [
    "stat",
    "stat64",
    "lstat",
    "lstat64",
    "fstat",
    "fstat64",
    "fstatat",
    "fstatat64",
    "mknod",
];

/// A function of glibc's that a file takes, or that a library has.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Symbol {
    pub version: Glibc,
    pub name: String,
    is_weak: bool,
    is_taken: bool,
}

/// The newest of all versions that it names.
///
/// # Errors
/// `objdump` is missing, or says nothing of symbols.
pub fn linked(file: &Path) -> Result<Glibc, String> {
    let newest = taken(file)?.into_iter().map(|symbol| symbol.version).max();
    newest.ok_or_else(|| format!("{}: no symbols of glibc", file.display()))
}

/// The functions that it cannot do without, by the version in which each first appeared.
///
/// # Errors
/// `objdump` is missing, or says nothing of symbols.
pub fn needed(file: &Path) -> Result<Vec<Symbol>, String> {
    let first = first_versions()?;
    let mut needed = needed_of(taken(file)?, &first);
    needed.sort();
    match needed.is_empty() {
        true => Err(format!("{}: no symbols of glibc", file.display())),
        false => Ok(needed),
    }
}

fn needed_of(taken: Vec<Symbol>, first: &BTreeMap<String, Glibc>) -> Vec<Symbol> {
    let strong = taken.into_iter().filter(|symbol| !symbol.is_weak);
    let shared = strong.filter(|symbol| !STATIC_BEFORE.contains(&symbol.name.as_str()));
    let first = shared.map(|symbol| Symbol {
        version: first.get(&symbol.name).copied().unwrap_or(symbol.version),
        ..symbol
    });
    first.collect()
}

fn taken(file: &Path) -> Result<Vec<Symbol>, String> {
    let mut all = symbols(file)?;
    all.retain(|symbol| symbol.is_taken);
    Ok(all)
}

/// By function, of all libraries of this machine's glibc: they keep the versions of all earlier ones.
fn first_versions() -> Result<BTreeMap<String, Glibc>, String> {
    let mut first = BTreeMap::new();
    for library in libraries()? {
        for symbol in symbols(&library)?.into_iter().filter(|own| !own.is_taken) {
            let version = first.entry(symbol.name).or_insert(symbol.version);
            *version = symbol.version.min(*version);
        }
    }
    Ok(first)
}

/// Those that this program runs with, and what lies beside them.
fn libraries() -> Result<Vec<PathBuf>, String> {
    const PARTS: [&str; 3] = ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"];
    let maps = fs::read_to_string("/proc/self/maps").map_err(|e| e.to_string())?;
    let mapped = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    let libc = mapped.map(Path::new).find(|file| file.ends_with(PARTS[0]));
    let folder = libc.and_then(Path::parent);
    let folder = folder.ok_or("this program runs without glibc")?;
    Ok(PARTS.map(|part| folder.join(part)).into())
}

fn symbols(file: &Path) -> Result<Vec<Symbol>, String> {
    let said = tools::output(Command::new("objdump").arg("-T").arg(file))?;
    let said = String::from_utf8_lossy(&said);
    Ok(said.lines().filter_map(symbol).collect())
}

/// `ADDRESS FLAGS SECTION<tab>SIZE  VERSION NAME`: seven flags, of which the second place has the `w`; a version in parentheses is
/// not the newest of its function, or another library's.
fn symbol(line: &str) -> Option<Symbol> {
    let (_, behind) = line.split_once(' ')?;
    let (flags, rest) = behind.split_at_checked(7)?;
    let section = rest.split_whitespace().next()?;
    let mut last = rest.split_whitespace().rev();
    let name = last.next()?.to_owned();
    let version = last.next()?.trim_matches(['(', ')']);
    let mut parts = version.strip_prefix("GLIBC_")?.split('.');
    let mut part = || parts.next()?.parse().ok();
    Some(Symbol {
        version: Glibc(part()?, part()?),
        name,
        is_weak: flags.contains('w'),
        is_taken: section == "*UND*",
    })
}

#[cfg(test)]
mod glibc_tests {
    use super::*;

    const SAID: &str = "\
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) memcpy
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.34) pthread_create
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.17) clock_gettime
0000000000000000  w   DF *UND*\t0000000000000000 (GLIBC_2.30) gettid
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.33) fstat64
0000000000000000  w   D  *UND*\t0000000000000000              __gmon_start__
0000000000001000 g    DF .text\t0000000000000000  Base        lucce_current
0000000000001000 g    DF .text\t0000000000000031 (GLIBC_2.9)  not_taken";

    fn said() -> Vec<Symbol> {
        let mut said: Vec<_> = SAID.lines().filter_map(symbol).collect();
        said.retain(|symbol| symbol.is_taken);
        said
    }

    #[test]
    fn what_is_taken_is_told_from_what_is_there() {
        let names: Vec<_> = said().into_iter().map(|symbol| symbol.name).collect();
        let expected = [
            "memcpy",
            "pthread_create",
            "clock_gettime",
            "gettid",
            "fstat64",
        ];
        assert_eq!(names, expected);
        assert_eq!(symbol("nothing"), None);
        assert!(Glibc(2, 34) > Glibc(2, 17));
    }

    #[test]
    fn what_has_moved_counts_by_its_first_version() {
        let first = BTreeMap::from([("pthread_create".to_owned(), Glibc(2, 2))]);
        let needed = needed_of(said(), &first);
        let newest = needed.iter().max().unwrap();
        assert_eq!(
            (newest.version, &*newest.name),
            (Glibc(2, 17), "clock_gettime")
        );
    }

    /// The glibc of this machine says when its functions came.
    #[test]
    fn functions_have_first_versions() {
        let first = first_versions().unwrap();
        let of = |name: &str| first.get(name).copied();
        assert_eq!(of("pthread_create"), Some(Glibc(2, 2)));
        assert_eq!(of("clock_gettime"), Some(Glibc(2, 2)));
        assert_eq!(of("exp2"), Some(Glibc(2, 2)));
        assert_eq!(of("getrandom"), Some(Glibc(2, 25)));
    }
}
