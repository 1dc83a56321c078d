//! `lucce init`: the lines for a project.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn init(folder: &Path, args: &[&str]) -> Output {
    let mut lucce = Command::new(env!("CARGO_BIN_EXE_lucce"));
    let lucce = lucce.arg("init").args(args).current_dir(folder);
    lucce.output().unwrap()
}

/// The texts of the elements, by their paths. Panics unless each element ends where it must.
fn elements(xml: &str) -> Vec<(String, String)> {
    let (mut open, mut elements) = (Vec::new(), Vec::new());
    let (first, rest) = xml.split_once('<').unwrap();
    assert!(first.trim().is_empty(), "{xml}");
    for part in rest.split('<') {
        let (tag, text) = part.split_once('>').unwrap();
        match tag.strip_prefix('/') {
            Some(tag) => assert_eq!(open.pop(), Some(tag), "{xml}"),
            None => {
                open.push(tag);
                elements.push((open.join("/"), text.trim().to_owned()));
            }
        }
    }
    assert!(open.is_empty(), "{xml}");
    elements
}

#[test]
fn maven_s_lines_are_a_profile() {
    let dir = tempfile::tempdir().unwrap();
    for repository in [None, Some("file:///a&b<VERSION>")] {
        let mut args = vec!["maven"];
        args.extend(repository.iter().flat_map(|url| ["--repository", url]));
        let output = init(dir.path(), &args);
        assert_eq!(output.status.code(), Some(0));
        let elements = elements(&String::from_utf8(output.stdout).unwrap());
        let text = |path: &str| {
            let mut found = elements.iter().filter(|(own, _)| own == path);
            found.next().map(|(_, text)| text.as_str())
        };
        let version = text("profile/dependencies/dependency/version");
        assert_eq!(version, Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(
            text("profile/build/plugins/plugin/configuration/argLine"),
            Some(
                "-agentpath:${lucce.agent}=events=alloc+thread,out=target/tests-%p.lucce,log=warn"
            )
        );
        let agent = text("profile/properties/lucce.agent").unwrap();
        assert!(
            agent.starts_with('/') && agent.ends_with("/liblucce.so"),
            "{agent}"
        );
        assert_eq!(
            text("profile/repositories/repository/url"),
            repository.map(|_| "file:///a&amp;b&lt;VERSION&gt;")
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("mvn -Plucce test"), "{said}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn files_of_the_project_are_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let gradle = ["gradle", "--repository", "file:///o'hara"];
    assert_eq!(init(dir.path(), &gradle).status.code(), Some(0));
    let text = fs::read_to_string(path("lucce.gradle")).unwrap();
    assert!(text.contains(r"maven { url 'file:///o\'hara' }"), "{text}");
    let dependency = concat!("'io.lucce:lucce-junit:", env!("CARGO_PKG_VERSION"), "'");
    assert!(text.contains(dependency), "{text}");
    assert_eq!(text.matches('{').count(), text.matches('}').count());
    assert_eq!(init(dir.path(), &["github"]).status.code(), Some(0));
    let script = path("ci/allocations.sh");
    let mode = fs::metadata(&script).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    let checked = Command::new("bash").arg("-n").arg(&script).output();
    assert!(checked.unwrap().status.success());
    let workflow = fs::read_to_string(path(".github/workflows/allocations.yml")).unwrap();
    let archive = concat!("ci/lucce-", env!("CARGO_PKG_VERSION"), "-linux-x64.tar.gz");
    assert!(workflow.contains(archive) && workflow.contains("ci/allocations.sh java"));
    // What is there stays, and nothing else is written beside it.
    fs::write(&script, "own").unwrap();
    fs::remove_dir_all(path(".github")).unwrap();
    for args in [&gradle[..], &["github"]] {
        let output = init(dir.path(), args);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("is there already"), "{said}");
    }
    assert_eq!(fs::read_to_string(&script).unwrap(), "own");
    assert!(!path(".github").exists());
    let output = init(dir.path(), &["github", "--repository", "x"]);
    assert_eq!(output.status.code(), Some(2));
}
