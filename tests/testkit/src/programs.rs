//! Programs that tests write and start. Another process writes them: a test that starts a process meanwhile would inherit
//! the open file, and a file that is open for writing cannot be executed.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies a program.
pub fn copy_program(from: &str, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "cp {from}");
}

/// Writes a script that its user can execute.
pub fn write_script(path: &Path, text: &str) {
    let mut shell = Command::new("sh")
        .args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    assert!(shell.wait().unwrap().success(), "{}", path.display());
}
