//! Pages of the reference that the command prints from its own definition: the repository has them as they are printed.

use std::fs;
use std::path::Path;
use std::process::Command;

fn check_page(page: &str, arguments: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/reference")
        .join(page);
    let written = fs::read_to_string(path).unwrap();
    let lucce = Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(arguments)
        .output()
        .unwrap();
    let printed = String::from_utf8(lucce.stdout).unwrap();
    let lines = written.lines().zip(printed.lines());
    let equal = lines.take_while(|(old, new)| old == new).count();
    let new = printed.lines().nth(equal).unwrap_or("(end of the page)");
    assert!(
        written == printed,
        "{page} is not current from line {}: `cargo xtask docs` writes it; the line is now\n  {new}",
        equal + 1
    );
}

#[test]
fn options_of_the_agent_are_current() {
    check_page("agent-options.md", &["options", "--markdown"]);
}

#[test]
fn the_command_line_is_current() {
    check_page("command-line.md", &["man", "--markdown"]);
}
