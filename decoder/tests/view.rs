//! `lucce view`: what its page has of a run.

mod fixture;

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
    fixture::leaks::leaking(&dir.join("leaking.log"));
    fixture::leaks::early(&dir.join("early.log"));
    let mut seen = 0;
    for log in ["leaking.log", "early.log"] {
        let text = lucce(dir, &["leaks", log]);
        let data = data(dir, log);
        let suspects = data["leaks"]["suspects"].as_array().unwrap();
        for suspect in suspects.iter().take(3) {
            for key in ["head", "at", "verdict"] {
                let said = suspect[key].as_str().unwrap();
                assert!(text.contains(said), "{log}: {said}\n{text}");
            }
            seen += 1;
        }
        let found = data["leaks"]["found"].as_array().unwrap().len();
        assert_eq!(found, text.matches("\n  ages: ").count(), "{log}");
        assert_eq!(text.contains("not proven, but alive"), !suspects.is_empty());
    }
    assert!(seen > 1, "{seen} suspects");
}

/// A file asks for nothing.
#[test]
fn a_page_is_not_live() {
    let dir = tempfile::tempdir().unwrap();
    fixture::sample(&dir.path().join("sample.log"));
    assert!(data(dir.path(), "sample.log").get("live").is_none());
    let page = std::fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(!page.contains("connect-src"));
}
