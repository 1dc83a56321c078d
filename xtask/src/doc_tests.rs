//! Examples in documentation comments, which rustdoc runs. It reads each crate for that, which takes a second or more, so
//! it is asked only for crates with examples.

use std::fs;
use std::path::Path;

use crate::arch;

/// Languages of a code block that rustdoc compiles.
const RUST_LANGUAGES: [&str; 8] = [
    "rust",
    "should_panic",
    "no_run",
    "ignore",
    "compile_fail",
    "test_harness",
    "custom",
    "edition",
];

/// The packages of the workspace with examples.
///
/// # Errors
/// A source cannot be read.
pub fn packages() -> Result<Vec<String>, String> {
    let mut packages = Vec::new();
    for package in arch::metadata()? {
        let targets = package["targets"].as_array().into_iter().flatten();
        let tested = targets.filter(|target| target["doctest"] == true);
        for target in tested {
            let source = Path::new(target["src_path"].as_str().unwrap_or_default());
            if has_examples(source.parent().unwrap_or(source))? {
                packages.push(package["name"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    Ok(packages)
}

fn has_examples(folder: &Path) -> Result<bool, String> {
    for file in arch::source_files(folder)? {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        if has_example(&text) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a source may have an example: a fenced or indented block of Rust, or documentation in another form.
fn has_example(source: &str) -> bool {
    let mut fence: Option<&str> = None;
    let mut is_after_blank = true;
    for line in source.lines().map(str::trim_start) {
        if ["#[doc =", "#![doc =", "/**", "/*!"]
            .iter()
            .any(|form| line.starts_with(form))
        {
            return true;
        }
        let comment = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let Some(comment) = comment.filter(|comment| !comment.starts_with('/')) else {
            (fence, is_after_blank) = (None, true);
            continue;
        };
        let text = comment.trim();
        let marker = ["```", "~~~"].into_iter().find(|m| text.starts_with(m));
        match (fence, marker) {
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, Some(marker)) if is_rust(&text[marker.len()..]) => return true,
            (None, Some(marker)) => fence = Some(marker),
            (None, None) if is_after_blank && comment.starts_with("     ") => return true,
            _ => {}
        }
        is_after_blank = text.is_empty();
    }
    false
}

/// Whether rustdoc compiles a block of this language: one without a language, or any of Rust's.
fn is_rust(language: &str) -> bool {
    let mut words = language
        .split([',', ' ', '{', '}'])
        .filter(|word| !word.is_empty());
    let is_rust_word = |word: &str| RUST_LANGUAGES.iter().any(|known| word.starts_with(known));
    language.trim().is_empty() || words.any(is_rust_word)
}

#[cfg(test)]
mod doc_tests_tests {
    use super::*;

    #[test]
    fn what_rustdoc_compiles_is_found() {
        for example in [
            "/// Adds.\n/// ```\n/// assert_eq!(1 + 1, 2);\n/// ```\nfn add() {}",
            "    //! ```rust\n    //! let x = 1;\n    //! ```",
            "/// ```no_run\n/// loop {}\n/// ```",
            "/// ```ignore,edition2024\n/// x\n/// ```",
            "/// ~~~\n/// x();\n/// ~~~",
            "/// ```text\n/// a\n/// ```\n/// ```\n/// x();\n/// ```",
            "/// Text\n///\n///     indented();\n",
            "#[doc = include_str!(\"README.md\")]\nfn x() {}",
            "/** A comment of many lines. */",
        ] {
            assert!(has_example(example), "{example}");
        }
    }

    #[test]
    fn other_blocks_are_none() {
        for other in [
            "/// ```text\n/// a ─► b\n/// ```",
            "/// ```json\n///\n///     {}\n/// ```",
            "// ```\n// x();\n// ```",
            "//// ```\n",
            "/// A line\n///     that continues",
            "let text = \"```\";\n#[doc(hidden)]\nfn x() {}",
        ] {
            assert!(!has_example(other), "{other}");
        }
    }
}
