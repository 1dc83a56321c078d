//! `lucce view`: what its page has of a run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn lucce(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lucce"));
    let output = command.args(args).current_dir(dir).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The data of the page of this log.
fn data(dir: &Path, log: &str) -> Value {
    lucce(dir, &["view", log, "-o", "page.html"]);
    written(dir)
}

/// The data of the page that is there.
fn written(dir: &Path) -> Value {
    let page = std::fs::read_to_string(dir.join("page.html")).unwrap();
    let (_, behind) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = behind.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// Both say the same of what lives, word by word; the page has more room.
#[test]
fn suspects_are_those_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    lucce_testkit::leaks::leaking(&dir.join("leaking.log"));
    lucce_testkit::leaks::early(&dir.join("early.log"));
    let mut seen = 0;
    for log in ["leaking.log", "early.log"] {
        let text = lucce(dir, &["leaks", log]);
        let data = data(dir, log);
        let suspects = data["leaks"]["suspects"].as_array().unwrap();
        for suspect in suspects.iter().take(3) {
            for key in ["head", "at", "verdict"] {
                let value = suspect[key].as_str().unwrap();
                assert!(text.contains(value), "{log}: {value}\n{text}");
            }
            seen += 1;
        }
        let leaks = data["leaks"]["found"].as_array().unwrap().len();
        assert_eq!(leaks, text.matches("\n  ages: ").count(), "{log}");
        assert_eq!(text.contains("not proven, but alive"), !suspects.is_empty());
    }
    assert!(seen > 1, "{seen} suspects");
}

/// `lucce diff --html` is the page of both runs, opened at the selected view.
#[test]
fn the_page_of_a_difference_opens_there() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    lucce_testkit::sample(&dir.join("sample.log"));
    lucce_testkit::kinds(&dir.join("kinds.log"));
    let arguments = [
        "diff",
        "sample.log",
        "kinds.log",
        "--html",
        "page.html",
        "--by",
        "type",
        "--event",
        "alloc",
        "--sort",
        "count",
    ];
    lucce(dir, &arguments);
    let data = written(dir);
    assert_eq!(data["runs"].as_array().unwrap().len(), 2);
    let opening = &data["opening"];
    assert_eq!(
        opening.to_string(),
        r#"{"group":"type","kind":"alloc","measure":"count","tab":"difference"}"#
    );
    let changes = lucce(
        dir,
        &["diff", "sample.log", "kinds.log", "--by", "type", "--json"],
    );
    let changes: Value = serde_json::from_str(&changes).unwrap();
    let values = &data["kinds"][0]["value"];
    assert_eq!(values[0].as_f64(), changes["total"]["old"][0].as_f64());
    assert_eq!(values[1].as_f64(), changes["total"]["new"][0].as_f64());
}

/// A file asks for nothing.
#[test]
fn a_page_is_not_live() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("sample.log"));
    assert!(data(dir.path(), "sample.log").get("live").is_none());
    let page = std::fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(!page.contains("connect-src"));
}

/// A page without an explicit name replaces no file; it is as private as the log.
#[test]
fn a_page_without_a_name_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    lucce_testkit::sample(&dir.join("a.log"));
    lucce_testkit::sample(&dir.join("b.log"));
    std::fs::write(dir.join("a.html"), "another page").unwrap();
    for _ in 0..2 {
        lucce(dir, &["view", "a.log"]);
    }
    lucce(dir, &["view", "b.log"]);
    lucce(dir, &["view", "a.log", "b.log"]);
    let first = std::fs::read_to_string(dir.join("a.html")).unwrap();
    assert_eq!(first, "another page");
    for page in ["a-2.html", "a-3.html", "b.html", "a-b.html"] {
        let file = std::fs::metadata(dir.join(page)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{page}");
    }
    let html = std::fs::read_to_string(dir.join("b.html")).unwrap();
    assert!(!html.contains("a.log"), "the page of one run stays");
    // A file that is there keeps its rights.
    let shared = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(dir.join("b.html"), shared).unwrap();
    lucce(dir, &["view", "a.log", "-o", "b.html"]);
    let file = std::fs::metadata(dir.join("b.html")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o644);
}
