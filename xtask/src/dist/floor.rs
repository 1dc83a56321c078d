//! Which glibc a file wants.

use std::fmt;
use std::path::Path;
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

/// The newest of all symbols that it takes from there.
///
/// # Errors
/// `objdump` is missing, or says nothing of symbols.
pub fn of(file: &Path) -> Result<Glibc, String> {
    let said = tools::output(Command::new("objdump").arg("-T").arg(file))?;
    let said = String::from_utf8_lossy(&said);
    newest(&said).ok_or_else(|| format!("{}: no symbols of glibc", file.display()))
}

fn newest(symbols: &str) -> Option<Glibc> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|behind| {
        let version = behind
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .next()?;
        let mut parts = version.split('.').map(|part| part.parse().ok());
        Some(Glibc(parts.next()??, parts.next()??))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts() {
        let symbols = "\
0000 DF *UND* 0000 (GLIBC_2.2.5) memcpy
0000 DF *UND* 0000 (GLIBC_2.17) clock_gettime
0000 DF *UND* 0000 (GLIBC_2.9)  x
0000 DF .text 0000 Base lucce_current";
        assert_eq!(newest(symbols), Some(Glibc(2, 17)));
        assert_eq!(newest("nothing"), None);
        assert!(Glibc(2, 34) > Glibc(2, 17));
    }
}
