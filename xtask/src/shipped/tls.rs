//! Variables of threads that a file brings along.

use std::path::Path;
use std::process::Command;

use crate::tools;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tls {
    /// Of each thread.
    pub bytes: u64,
    /// They want to lie at a fixed distance from the thread's own description (the model "initial-exec"), where glibc has little
    /// room for libraries that come while a program runs.
    pub is_fixed: bool,
}

impl Tls {
    /// # Errors
    /// `readelf` is missing, or does not know such files.
    pub fn of(file: &Path) -> Result<Tls, String> {
        let said = tools::output(Command::new("readelf").args(["-lWd"]).arg(file))?;
        read(&String::from_utf8_lossy(&said)).ok_or_else(|| format!("{}: no sizes", file.display()))
    }
}

/// `TLS OFFSET ADDRESS ADDRESS SIZE_IN_FILE SIZE FLAGS ALIGNMENT`, and `(FLAGS) …`.
fn read(said: &str) -> Option<Tls> {
    let mut lines = said.lines().map(str::trim_start);
    let segment = lines.clone().find(|line| line.starts_with("TLS "));
    let bytes = match segment {
        None => 0,
        Some(line) => {
            let size = line.split_whitespace().nth(5)?;
            u64::from_str_radix(size.strip_prefix("0x")?, 16).ok()?
        }
    };
    let is_fixed = lines.any(|line| line.contains("(FLAGS)") && line.contains("STATIC_TLS"));
    Some(Tls { bytes, is_fixed })
}

#[cfg(test)]
mod tls_tests {
    use super::*;

    #[test]
    fn the_size_in_memory_counts() {
        let said = "\
  LOAD           0x22a7f0 0x000000000022d7f0 0x000000000022d7f0 0x001b38 0x001c88 RW  0x1000
  TLS            0x220960 0x0000000000222960 0x0000000000222960 0x000080 0x000108 R   0x8
 0x000000000000001e (FLAGS)              BIND_NOW";
        let own = Tls {
            bytes: 264,
            is_fixed: false,
        };
        assert_eq!(read(said), Some(own));
        let fixed = read(&said.replace("BIND_NOW", "BIND_NOW STATIC_TLS"));
        assert!(fixed.is_some_and(|tls| tls.is_fixed));
        assert_eq!(read("").map(|tls| tls.bytes), Some(0));
    }
}
