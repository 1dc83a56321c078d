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

const POM: &str = "<project>
  <build>
    <plugins>
    </plugins>
  </build>
</project>
";

/// What the plugin's page in docs/guide/compare-and-ci.md says, with the repository.
#[test]
fn plugins_are_put_into_build_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let output = init(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no pom.xml"), "{said}");
    let files = [
        ("pom.xml", POM),
        ("build.gradle", "plugins {\n    id 'java'\n}\n"),
        ("build.gradle.kts", "plugins {\n    java\n}\n"),
        ("settings.gradle", "pluginManagement {\n}\n"),
        (
            "settings.gradle.kts",
            "dependencyResolutionManagement {\n}\n",
        ),
    ];
    for (name, text) in files {
        fs::write(path(name), text).unwrap();
    }
    let output = init(dir.path(), &["--repository", "file:///r"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(output.stdout.is_empty());
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "<project>
  <build>
    <plugins>
      <plugin>
        <groupId>io.lucce</groupId>
        <artifactId>lucce-maven-plugin</artifactId>
        <version>{version}</version>
        <executions>
          <execution>
            <goals>
              <goal>prepare-agent</goal>
              <goal>gate</goal>
            </goals>
          </execution>
        </executions>
      </plugin>
    </plugins>
  </build>
  <pluginRepositories>
    <pluginRepository>
      <id>lucce</id>
      <url>file:///r</url>
    </pluginRepository>
  </pluginRepositories>
</project>
"
    );
    assert_eq!(read("pom.xml"), expected);
    assert_eq!(
        read("build.gradle"),
        format!(
            "plugins {{\n    id 'io.lucce' version '{version}'\n    id 'java'\n}}\n\n\
             repositories {{\n    maven {{ url 'file:///r' }}\n}}\n"
        )
    );
    assert_eq!(
        read("build.gradle.kts"),
        format!("plugins {{\n    id(\"io.lucce\") version \"{version}\"\n    java\n}}\n")
    );
    // The settings have the repositories of all projects.
    let message = "in settings.gradle.kts, add to the repositories of dependencyResolutionManagement: maven { url = uri(\"file:///r\") }";
    assert!(said.contains(message), "{said}");
    // A block that is there is the user's to change.
    assert_eq!(read("settings.gradle"), "pluginManagement {\n}\n");
    assert!(
        said.contains("in settings.gradle, add to the repositories of pluginManagement: maven { url 'file:///r' }"),
        "{said}"
    );
    assert!(read("settings.gradle.kts").starts_with("pluginManagement {\n    repositories {\n"));
    // One file that cannot be changed: none is.
    fs::write(path("pom.xml"), POM).unwrap();
    let output = init(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("build.gradle has the plugin io.lucce already"),
        "{said}"
    );
    assert_eq!(read("pom.xml"), POM);
}
