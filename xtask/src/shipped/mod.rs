//! `shipped`: the agent and the command as `build` made them, against what users may rely on: how large they are, which glibc
//! they need, and how much memory of each thread the agent takes.
//!
//! It takes a second. `dist` links both against the old glibc itself, which takes minutes, and asserts what came of it; here the
//! functions that are called say whether it could.

pub mod glibc;
mod tls;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Outcome, paths, tools};

use glibc::Glibc;
use tls::Tls;

/// The oldest glibc that users have.
pub const FLOOR: Glibc = Glibc(2, 17);

/// What a file may be.
struct Limits {
    /// Without debug information, in bytes.
    size: u64,
    /// glibc keeps 1664 bytes for the variables of threads of all libraries that come later and want a fixed place; what is
    /// larger is allocated for each thread by its first use.
    tls: u64,
}

/// A little more than what they are, so that a package that doubles them is seen.
const AGENT: Limits = Limits {
    size: 3_700_000,
    tls: 512,
};
const COMMAND: Limits = Limits {
    size: 9_000_000,
    tls: 2048,
};

/// # Errors
/// One of them is larger than it may be, or would not load somewhere.
pub fn check() -> Outcome {
    let wrong: Vec<String> = [(paths::agent(), AGENT), (paths::lucce(), COMMAND)]
        .into_iter()
        .filter_map(|(file, limits)| of(&file, &limits).err())
        .collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("what is shipped:\n  {}", wrong.join("\n  "))),
    }
}

fn of(file: &Path, limits: &Limits) -> Outcome {
    let name = paths::short(file);
    let size = stripped_size(file)?;
    let tls = Tls::of(file)?;
    let needed = glibc::needed(file)?;
    let newest = needed.last().map_or(Glibc(2, 0), |symbol| symbol.version);
    println!(
        "{name}: {size} bytes without debug information, {} of each thread; needs glibc {newest}, linked against {}",
        tls.bytes,
        glibc::linked(file)?
    );
    let mut wrong = Vec::new();
    if size > limits.size {
        wrong.push(format!("{size} bytes, more than {}", limits.size));
    }
    if tls.bytes > limits.tls {
        let (is, may) = (tls.bytes, limits.tls);
        wrong.push(format!("{is} bytes of each thread, more than {may}"));
    }
    if tls.is_fixed {
        wrong.push("its variables of threads want a fixed place (STATIC_TLS): a JVM that runs may have none left".to_owned());
    }
    let too_new = needed.iter().filter(|symbol| symbol.version > FLOOR);
    wrong.extend(too_new.map(|symbol| {
        let (function, version) = (&symbol.name, symbol.version);
        format!("{function} came with glibc {version}, and users have {FLOOR}")
    }));
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("{name}: {}", wrong.join("; "))),
    }
}

fn stripped_size(file: &Path) -> Result<u64, String> {
    let stripped = paths::target().join("shipped.stripped");
    let mut strip = Command::new("objcopy");
    strip.arg("--strip-unneeded").arg(file).arg(&stripped);
    tools::run_quietly(&mut strip)?;
    let size = fs::metadata(&stripped).map(|file| file.len());
    fs::remove_file(&stripped).map_err(|e| e.to_string())?;
    size.map_err(|e| e.to_string())
}

#[cfg(test)]
mod shipped_tests {
    use super::*;

    const MUCH: Limits = Limits {
        size: 1 << 20,
        tls: 512,
    };

    /// What is wrong with a library of this C code.
    fn wrong(code: &str, limits: &Limits) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let (source, library) = (folder.path().join("it.c"), folder.path().join("it.so"));
        fs::write(&source, code).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library);
        tools::run_quietly(cc.arg(&source)).unwrap();
        of(&library, limits).err()
    }

    #[test]
    fn a_library_is_refused_for_each_reason() {
        let old = "#include <string.h>\nvoid f(char *a, char *b, long n) { memcpy(a, b, n); }";
        assert_eq!(wrong(old, &MUCH), None);
        let small = Limits { size: 100, ..MUCH };
        assert!(wrong(old, &small).unwrap().contains("more than 100"));
        let new = "#include <sys/random.h>\nlong f(char *a) { return getrandom(a, 8, 0); }";
        let said = wrong(new, &MUCH).unwrap();
        assert!(said.contains("getrandom came with glibc 2.25"), "{said}");
        let weak =
            format!("#pragma weak getrandom\n{new}\n{old}").replace("f(char *a)", "g(char *a)");
        assert_eq!(wrong(&weak, &MUCH), None);
        let large = format!("{old}\n__thread char own[600]; char *g(void) {{ return own; }}");
        let said = wrong(&large, &MUCH).unwrap();
        assert!(
            said.contains("bytes of each thread, more than 512"),
            "{said}"
        );
        let fixed = "__attribute__((tls_model(\"initial-exec\"))) static __thread long own; long *g(void) { return &own; }";
        let said = wrong(&format!("{old}\n{fixed}"), &MUCH).unwrap();
        assert!(said.contains("STATIC_TLS"), "{said}");
    }
}
