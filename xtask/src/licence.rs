//! Licences: expressions of them, which ones are allowed, who holds the rights.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const MIT: &str = "The MIT License

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the \"Software\"), to deal in the Software without restriction, including without
limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of
the Software, and to permit persons to whom the Software is furnished to do so, subject to the following
conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions
of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED
TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
DEALINGS IN THE SOFTWARE.
";

/// The texts of licences under which something is used that cannot be had under the Apache License alone: that one is in
/// `LICENSE`.
pub const TEXTS: [(&str, &str); 5] = [
    ("MIT", MIT),
    ("BSL-1.0", include_str!("dist/licences/BSL-1.0.txt")),
    ("Unicode-3.0", include_str!("dist/licences/Unicode-3.0.txt")),
    ("Zlib", include_str!("dist/licences/Zlib.txt")),
    (
        "Apache-2.0 WITH LLVM-exception",
        include_str!("dist/licences/LLVM-exception.txt"),
    ),
];

/// Licences that packages name without their text.
const FORMS: [(&str, &str); 1] = [(
    "BSD-3-Clause",
    include_str!("dist/licences/BSD-3-Clause.txt"),
)];

/// The licences that dependencies may have.
pub struct Allowed(BTreeSet<String>);

impl Allowed {
    /// From the list `allow` of the section `[licenses]`.
    ///
    /// # Errors
    /// The file cannot be read or has no such list.
    pub fn read(file: &Path) -> Result<Allowed, String> {
        let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        Allowed::parse(&text).ok_or_else(|| format!("{}: no list of licences", file.display()))
    }

    /// Those whose texts users get.
    pub fn with_texts() -> Allowed {
        let names = TEXTS.iter().map(|(name, _)| *name);
        Allowed(names.chain(["Apache-2.0"]).map(str::to_owned).collect())
    }

    fn parse(text: &str) -> Option<Allowed> {
        let (_, section) = text.split_once("[licenses]")?;
        let (_, list) = section.split_once("allow = [")?;
        let (list, _) = list.split_once(']')?;
        let names = list.split('"').skip(1).step_by(2);
        Some(Allowed(names.map(str::to_owned).collect()))
    }

    /// Whether something under this expression may be used. None is not allowed.
    pub fn admits(&self, expression: &str) -> bool {
        // Old packages separate alternatives by a stroke.
        let spaced = expression
            .replace('/', " OR ")
            .replace('(', " ( ")
            .replace(')', " ) ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut rest = &words[..];
        self.any(&mut rest) == Some(true) && rest.is_empty()
    }

    /// `ALL { OR ALL }`; `None`: it is malformed.
    fn any(&self, rest: &mut &[&str]) -> Option<bool> {
        let mut admitted = self.all(rest)?;
        while take(rest, "OR") {
            admitted |= self.all(rest)?;
        }
        Some(admitted)
    }

    /// `ONE { AND ONE }`
    fn all(&self, rest: &mut &[&str]) -> Option<bool> {
        let mut admitted = self.one(rest)?;
        while take(rest, "AND") {
            admitted &= self.one(rest)?;
        }
        Some(admitted)
    }

    /// A name, perhaps `WITH` an exception, which makes it another licence; or an expression in parentheses.
    fn one(&self, rest: &mut &[&str]) -> Option<bool> {
        if take(rest, "(") {
            let admitted = self.any(rest)?;
            return take(rest, ")").then_some(admitted);
        }
        let (name, tail) = rest.split_first()?;
        *rest = tail;
        if !take(rest, "WITH") {
            return Some(self.0.contains(*name));
        }
        let (exception, tail) = rest.split_first()?;
        *rest = tail;
        Some(self.0.contains(&format!("{name} WITH {exception}")))
    }
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, tail)) if *first == word => {
            *rest = tail;
            true
        }
        _ => false,
    }
}

/// The lines of a package's licences that say whose it is.
pub fn copyrights(folder: &Path) -> BTreeSet<String> {
    let texts = licence_files(folder, &["LICEN", "COPYING", "COPYRIGHT", "NOTICE"]);
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter_map(copyright).collect()
}

/// The texts of a package's licences, one behind the other; for a package without any, the common form of its licence.
pub fn texts(folder: &Path, licence: &str) -> String {
    let own = licence_files(folder, &["LICEN", "COPYING"]);
    let form = FORMS.iter().find(|(name, _)| *name == licence);
    match (own.is_empty(), form) {
        (true, Some((_, form))) => (*form).to_owned(),
        _ => own.join("\n"),
    }
}

fn licence_files(folder: &Path, starts: &[&str]) -> Vec<String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
    paths.sort();
    let is_licence = |path: &&PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| starts.iter().any(|start| name.starts_with(start)))
    };
    let texts = paths.iter().filter(is_licence).map(fs::read_to_string);
    texts.filter_map(Result::ok).collect()
}

/// Not the form to fill in at the end of licences.
fn copyright(line: &str) -> Option<String> {
    let line = line.trim();
    let named = line.starts_with("Copyright ") && !line.contains(['[', '{']);
    let dated =
        line.contains("(c)") || line.contains("©") || line.contains(|c: char| c.is_ascii_digit());
    (named && dated).then(|| line.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod licence_tests {
    use super::*;

    fn allowed() -> Allowed {
        Allowed::parse(
            "[bans]\nallow = [\"X\"]\n[licenses]\nallow = [\n  \"MIT\",\n  \"Unicode-3.0\",\n]\n",
        )
        .unwrap()
    }

    #[test]
    fn expressions_are_as_they_are_meant() {
        let allowed = allowed();
        for fine in [
            "MIT",
            "GPL-3.0 OR MIT",
            "Apache-2.0/MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ] {
            assert!(allowed.admits(fine), "{fine}");
        }
        for wrong in [
            "",
            "X",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT WITH Some-exception",
            "(MIT",
            "MIT MIT",
            "(GPL-3.0 OR MIT) AND Apache-2.0",
        ] {
            assert!(!allowed.admits(wrong), "{wrong}");
        }
    }

    #[test]
    fn texts_are_those_of_the_licences() {
        let allowed = Allowed::with_texts();
        for fine in ["Zlib", "BSL-1.0", "Unlicense OR MIT", "Apache-2.0"] {
            assert!(allowed.admits(fine), "{fine}");
        }
        assert!(!allowed.admits("LGPL-2.1-or-later"));
        let words = ["MIT", "Boost", "UNICODE", "zlib", "LLVM Exceptions"];
        for ((name, text), word) in TEXTS.iter().zip(words) {
            let head = text.lines().next().unwrap_or_default();
            assert!(head.contains(word) && text.ends_with(".\n"), "{name}");
        }
    }

    #[test]
    fn forms_to_fill_in_are_nobodys_copyright() {
        assert_eq!(
            copyright("   Copyright [yyyy] [name of copyright owner]"),
            None
        );
        assert_eq!(copyright("Copyright License. Subject to the terms"), None);
        let found = copyright("  Copyright (c) 2014 The Authors.");
        assert_eq!(found.as_deref(), Some("Copyright (c) 2014 The Authors"));
    }
}
