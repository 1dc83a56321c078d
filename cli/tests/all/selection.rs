//! Commands that follow a JVM select events as `lucce report` does.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn lucce(folder: &Path, args: &[&str]) -> Output {
    let mut lucce = Command::new(env!("CARGO_BIN_EXE_lucce"));
    lucce.current_dir(folder).args(args).output().unwrap()
}

/// The output of `lucce top` for a run whose contexts A (strings) and C (byte arrays) go on counting.
fn top(more: &[&str]) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let (writer, counters, _) = lucce_testkit::live(&dir.path().join("live.log"));
    let is_over = AtomicBool::new(false);
    let args = ["top", "live.log", "--once", "--interval", "300ms"];
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // The counters of A and C; the size of A's objects is fixed.
                for (counter, bytes) in counters.iter().zip([0, 16]) {
                    counter.count_event(bytes);
                }
                thread::yield_now();
            }
        });
        let output = lucce(dir.path(), &[&args, more].concat());
        is_over.store(true, Ordering::Relaxed);
        output
    });
    drop(writer);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert_eq!(output.status.code(), Some(0), "{more:?}");
    (text(output.stdout), text(output.stderr))
}

/// The rows below the head and its empty line.
fn row_names(out: &str) -> Vec<&str> {
    let (_, rows) = out.split_once("\n\n").unwrap();
    let mut names: Vec<_> = rows
        .lines()
        .map(|row| row.split_whitespace().last().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn top_shows_selected_events_only() {
    let by_type = ["--by", "type"];
    let select = |more: &[&str]| top(&[&by_type[..], more].concat()).0;
    assert_eq!(row_names(&select(&[])), ["byte[]", "java.lang.String"]);
    let arrays = select(&["--type", "byte"]);
    assert_eq!(row_names(&arrays), ["byte[]"]);
    assert!(arrays.contains("100.0%"), "{arrays}");
    assert_eq!(row_names(&select(&["--through", "Main\\.work$"])).len(), 2);
    assert_eq!(row_names(&select(&["--exclude", "app.Main"])).len(), 0);
    for nothing in [["--type", "nothing"], ["--through", "nothing"]] {
        let (out, said) = top(&nothing);
        assert!(row_names(&out).is_empty(), "{out}");
        let message = format!("no event of kind alloc matches {} 'nothing'", nothing[0]);
        assert!(said.contains(&message), "{said}");
    }
}

/// An option that could not have an effect is no option of the command.
#[test]
fn commands_refuse_members_that_do_not_apply() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("run.log"));
    for (command, option) in [
        (&["stats", "run.log"][..], "--event"),
        (&["check", "run.log"], "--type"),
        (&["decode", "run.log", "0x1"], "--through"),
        (&["annotate", "app.log", "run.log"], "--tag"),
        (&["leaks", "run.log"], "--event"),
        (&["leaks", "run.log"], "--tag"),
        (&["top", "run.log", "--once"], "--from"),
        (&["serve", "run.log"], "--thread"),
    ] {
        let output = lucce(dir.path(), &[command, &[option, "1s"]].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?} {option}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("unexpected argument"), "{said}");
    }
}
