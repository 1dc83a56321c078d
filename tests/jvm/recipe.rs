//! The script of `lucce init github`: it makes a base, passes, and fails when a program allocates more.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lucce_tests::{Checked, Setup, ensure};

use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    vec![test("recipe::allocations_sh", false, move || recipe(setup))]
}

/// Writes the script into a folder.
fn write_script(setup: &Setup, folder: &Path) -> Checked {
    let mut lucce = Command::new(&setup.lucce);
    let output = lucce.args(["init", "github"]).current_dir(folder).output();
    let output = output.map_err(|e| e.to_string())?;
    ensure(output.status.success(), || {
        String::from_utf8_lossy(&output.stderr).into_owned()
    })
}

fn recipe(setup: &Setup) -> Checked {
    let folder = setup.scratch.join("recipe");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    write_script(setup, &folder)?;
    let run = |objects: &str| run(setup, &folder, objects);
    let ends = |output: &Output, code: i32, text: &str| {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let ended = output.status.code() == Some(code) && said.contains(text);
        ensure(ended, || {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!(
                "{:?}, not {code} and {text:?}:\n{said}{errors}",
                output.status
            )
        })
    };
    ends(&run("1000")?, 0, "this run is the base from now on")?;
    ends(&run("1000")?, 0, "passed")?;
    ensure(folder.join("gate.xml").exists(), || {
        "there is no gate.xml".into()
    })?;
    ends(&run("1100")?, 1, "failed: alloc")?;
    let markdown = fs::read_to_string(folder.join("gate.md")).map_err(|e| e.to_string())?;
    ensure(markdown.contains("io.lucce.programs.Counts"), || {
        markdown.clone()
    })?;
    let xml = fs::read_to_string(folder.join("gate.xml")).map_err(|e| e.to_string())?;
    ensure(xml.contains("<failure"), || xml.clone())?;
    fs::remove_dir_all(&folder).map_err(|e| e.to_string())
}

fn run(setup: &Setup, folder: &Path, objects: &str) -> Result<Output, String> {
    let command = setup.lucce.parent().ok_or("the command is in no folder")?;
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        command.display(),
        setup.jdk().home.join("bin").display()
    );
    let mut script = Command::new(folder.join("ci/allocations.sh"));
    script
        .args(["java", "-cp"])
        .arg(setup.programs())
        .args(["io.lucce.programs.Counts", objects])
        .current_dir(folder)
        .env("PATH", path)
        .env("THROUGH", r"io\.lucce\.programs\.");
    script.output().map_err(|e| e.to_string())
}
