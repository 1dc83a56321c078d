//! `docs`: reference pages that the command writes from its own definition.

use std::fs;

use crate::{Outcome, paths, tools};

/// A page, and the arguments of `lucce` that print it.
const PAGES: [(&str, [&str; 2]); 2] = [
    ("docs/reference/agent-options.md", ["options", "--markdown"]),
    ("docs/reference/command-line.md", ["man", "--markdown"]),
];

/// Writes the pages.
pub fn write() -> Outcome {
    for (page, arguments) in PAGES {
        let path = paths::root().join(page);
        let text = print_page(arguments)?;
        fs::write(path, text).map_err(|e| format!("{page}: {e}"))?;
        println!("docs: {page} is written");
    }
    Ok(())
}

/// # Errors
/// A page differs from what the command prints.
pub fn check() -> Outcome {
    for (page, arguments) in PAGES {
        let path = paths::root().join(page);
        let written = fs::read_to_string(path).map_err(|e| format!("{page}: {e}"))?;
        compare_page(page, &written, &print_page(arguments)?)?;
    }
    println!("docs: {} generated pages are current", PAGES.len());
    Ok(())
}

fn print_page(arguments: [&str; 2]) -> Result<String, String> {
    let mut lucce = paths::cargo();
    lucce.args(["run", "--quiet", "--package", "lucce-cli", "--"]);
    let text = tools::output(lucce.args(arguments))?;
    String::from_utf8(text).map_err(|e| e.to_string())
}

fn compare_page(page: &str, written: &str, generated: &str) -> Outcome {
    if written == generated {
        return Ok(());
    }
    let lines = written.lines().zip(generated.lines());
    let equal = lines.take_while(|(old, new)| old == new).count();
    let new = generated.lines().nth(equal).unwrap_or("(end of the page)");
    Err(format!(
        "{page} is not current from line {}: `cargo xtask docs` writes it; the line is now\n  {new}",
        equal + 1
    ))
}

#[cfg(test)]
mod reference_tests {
    use super::*;

    #[test]
    fn a_page_that_differs_is_named_with_its_line() {
        assert_eq!(compare_page("a.md", "x\ny\n", "x\ny\n"), Ok(()));
        let error = compare_page("a.md", "x\ny\n", "x\nz\n").unwrap_err();
        assert!(error.contains("a.md is not current from line 2") && error.ends_with("  z"));
        let shorter = compare_page("a.md", "x\ny\n", "x\n").unwrap_err();
        assert!(shorter.contains("line 2") && shorter.ends_with("(end of the page)"));
    }
}
