//! Manual pages and completions, which the command itself writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::created;
use crate::{Outcome, tools};

/// Where shells look for completions, below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/lucce"),
    ("zsh", "zsh/site-functions/_lucce"),
    ("fish", "fish/vendor_completions.d/lucce.fish"),
];

/// Asks the command that is packed.
pub fn write(share: &Path, lucce: &dyn Fn() -> Command) -> Outcome {
    let man = share.join("man/man1");
    created(&man)?;
    tools::run_quietly(lucce().arg("man").arg(&man))?;
    for (shell, file) in COMPLETIONS {
        let text = tools::output(lucce().args(["completions", shell]))?;
        let file = share.join(file);
        created(file.parent().unwrap_or(share))?;
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

/// All that is in `share`, and where a Debian package has it, below `usr`: pages are packed, and Debian's zsh has a folder for packages.
pub fn installed(share: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(share.join(&folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let own = folder.join(entry.file_name());
            match entry.path().is_dir() {
                true => folders.push(own),
                false => files.push(own),
            }
        }
    }
    let there = |own: &Path| {
        let text = own.display().to_string();
        Path::new("usr/share").join(text.replace("site-functions", "vendor-completions"))
    };
    files.sort();
    let both = |own: PathBuf| (share.join(&own), there(&own));
    files.into_iter().map(both).collect()
}

/// `FILE.gz` in the file's place, as Debian has manual pages; equal pages are equal bytes.
pub fn pack(page: &Path) -> Outcome {
    tools::run_quietly(Command::new("gzip").args(["-n", "-9"]).arg(page))
}
