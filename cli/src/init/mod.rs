//! `lucce init`: writes the lines that a project needs for tests and builds with lucce.

mod gradle_files;
mod pom_file;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use lucce_page::escape_html;

use super::agent_path::agent_beside;
use super::output::lock_stdout;
use super::{CommandError, CommandStatus, prefix_path, print_diagnostic};

use gradle_files::{ScriptLanguage, quote_groovy};

/// Write the lines that a project needs: lucce's plugin; repository, test dependency and agent for Maven or Gradle; or a job that
/// fails if the program allocates more.
///
/// Without SYSTEM, the plugin is put into pom.xml, build.gradle or build.gradle.kts of this folder, and the repository too, also
/// into Gradle's settings.
///
/// With SYSTEM, Maven's lines are printed; the others are new files in this folder. Existing files stay as they are. Standard error
/// says what is left to do by hand.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce init
  lucce init maven --repository file:///opt/lucce/repository
  lucce init gradle
  lucce init github")]
pub struct InitArgs {
    /// The build or CI system [default: the plugin for the build files in this folder]
    #[arg(value_name = "SYSTEM", value_enum)]
    system: Option<BuildSystem>,
    /// Repository with lucce's artifacts (`cargo xtask maven` makes one) [default: those of the project]
    #[arg(long, value_name = "URL")]
    repository: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BuildSystem {
    /// A profile for pom.xml, on standard output
    Maven,
    /// lucce.gradle
    Gradle,
    /// .github/workflows/allocations.yml and ci/allocations.sh
    Github,
}

/// The block of Gradle's settings script with the repositories of all projects.
const SETTINGS_REPOSITORIES: &str = "dependencyResolutionManagement";

/// A new file of the project.
struct ProjectFile {
    path: &'static str,
    text: String,
    is_program: bool,
}

pub fn run(args: &InitArgs) -> Result<CommandStatus, CommandError> {
    let Some(system) = args.system else {
        add_plugins(args.repository.as_deref())?;
        return Ok(CommandStatus::Fine);
    };
    if args.repository.is_some() && system == BuildSystem::Github {
        let text =
            "--repository is for Maven and Gradle: the job takes the command from an archive";
        return Err(CommandError::Usage(text.into()));
    }
    match system {
        BuildSystem::Maven => {
            let repository = args.repository.as_deref().map(escape_html);
            let repositories = repository.map_or_else(String::new, |url| {
                include_str!("maven_repository.xml").replace("REPOSITORY", &url)
            });
            let agent = escape_html(&agent_text()?);
            let text = fill_template(include_str!("maven.xml"), &agent, &repositories);
            let mut out = lock_stdout();
            out.write_all(text.as_bytes())?;
            out.flush()?;
            print_steps(&[
                "put these lines between <profiles> and </profiles> of pom.xml",
                "if surefire has an argLine already, join both",
                "limit a test by @AllocatesAtMost, and run: mvn -Plucce test",
            ]);
        }
        BuildSystem::Gradle => {
            let repository = args.repository.as_deref().map(quote_groovy);
            let repositories = repository.map_or_else(String::new, |url| {
                format!("    repositories {{\n        maven {{ url {url} }}\n    }}\n")
            });
            // The agent's path stands between quotes of the template.
            let agent = quote_groovy(&agent_text()?);
            let agent = agent.trim_matches('\'');
            create_files(&[ProjectFile {
                path: "lucce.gradle",
                text: fill_template(include_str!("lucce.gradle"), agent, &repositories),
                is_program: false,
            }])?;
            print_steps(&[
                "add to build.gradle, below its plugins: apply from: 'lucce.gradle'",
                "limit a test by @AllocatesAtMost, and run: gradle -Plucce test",
            ]);
        }
        BuildSystem::Github => {
            create_files(&[
                ProjectFile {
                    path: ".github/workflows/allocations.yml",
                    text: fill_template(include_str!("allocations.yml"), "", ""),
                    is_program: false,
                },
                ProjectFile {
                    path: "ci/allocations.sh",
                    text: include_str!("allocations.sh").to_owned(),
                    is_program: true,
                },
            ])?;
            print_steps(&[
                concat!(
                    "put lucce-",
                    env!("CARGO_PKG_VERSION"),
                    "-linux-x64.tar.gz into ci/"
                ),
                "in the workflow, set how the program is built and started, and THROUGH, the methods to judge",
                "the first run makes the base; later ones fail above 3% growth",
            ]);
        }
    }
    Ok(CommandStatus::Fine)
}

/// A file of the project with its new text.
struct ChangedFile {
    path: &'static str,
    text: String,
}

/// Puts the plugin into the build files of this folder. Changes all of them or none.
fn add_plugins(repository: Option<&str>) -> Result<(), CommandError> {
    let (mut files, mut steps) = (Vec::new(), Vec::new());
    if let Some(pom) = read_project_file("pom.xml")? {
        let changed = pom_file::add_plugin(&pom, repository)
            .map_err(|reason| CommandError::Usage(format!("pom.xml {reason}")))?;
        files.push(ChangedFile {
            path: "pom.xml",
            text: changed.text,
        });
        if changed.has_own_arguments {
            steps.push("in pom.xml, write @{argLine} into the argLine of the tests".to_owned());
        }
        steps.push("run: mvn verify; a later build compares with this version's log by -Dlucce.baseVersion".to_owned());
    }
    for language in ScriptLanguage::ALL {
        let path = language.build_script();
        if let Some(script) = read_project_file(path)? {
            let mut text = gradle_files::add_plugin(&script, language)
                .map_err(|reason| CommandError::Usage(format!("{path} {reason}")))?;
            if let Some(url) = repository {
                let (settings_path, line) =
                    (language.settings_script(), language.repository_line(url));
                let settings = read_project_file(settings_path)?.unwrap_or_default();
                // There, a project's own repositories may be forbidden, and would replace those of the settings.
                if settings.contains(SETTINGS_REPOSITORIES) {
                    steps.push(format!(
                        "in {settings_path}, add to the repositories of {SETTINGS_REPOSITORIES}: {line}"
                    ));
                } else {
                    text = gradle_files::add_project_repository(&text, language, url);
                }
                match gradle_files::add_plugin_repository(&settings, language, url) {
                    Some(text) => files.push(ChangedFile {
                        path: settings_path,
                        text,
                    }),
                    None => steps.push(format!(
                        "in {settings_path}, add to the repositories of pluginManagement: {line}"
                    )),
                }
            }
            files.push(ChangedFile { path, text });
            steps.push("run: gradle check; a later build compares with this version's log by -Plucce.baseVersion".to_owned());
        }
    }
    if files.is_empty() {
        let text = "there is no pom.xml, build.gradle or build.gradle.kts in this folder";
        return Err(CommandError::Usage(text.into()));
    }
    for file in &files {
        fs::write(file.path, &file.text)
            .map_err(|error| CommandError::Usage(prefix_path(Path::new(file.path), error)))?;
        print_diagnostic(format_args!("wrote {}", file.path));
    }
    print_steps(&steps.iter().map(String::as_str).collect::<Vec<_>>());
    Ok(())
}

/// The text of a file in this folder; None: there is none.
fn read_project_file(name: &str) -> Result<Option<String>, CommandError> {
    match fs::read_to_string(name) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::Usage(prefix_path(Path::new(name), error))),
    }
}

fn fill_template(template: &str, agent: &str, repositories: &str) -> String {
    template
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
        .replace("AGENT", agent)
        .replace("REPOSITORIES", repositories)
}

/// The path of the agent that is installed with this command.
fn agent_text() -> Result<String, CommandError> {
    let agent = agent_beside()?;
    let text = agent.to_str().map(str::to_owned);
    text.ok_or_else(|| CommandError::Usage(format!("{} is no UTF-8", agent.display())))
}

/// Creates all files or none.
fn create_files(files: &[ProjectFile]) -> Result<(), CommandError> {
    let existing = files
        .iter()
        .find(|file| Path::new(file.path).symlink_metadata().is_ok());
    if let Some(file) = existing {
        return Err(CommandError::Usage(format!(
            "{} is there already, and stays as it is",
            file.path
        )));
    }
    for file in files {
        let path = PathBuf::from(file.path);
        let failed = |error| CommandError::Usage(prefix_path(&path, error));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mode = if file.is_program { 0o755 } else { 0o644 };
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path);
        created
            .and_then(|mut created| created.write_all(file.text.as_bytes()))
            .map_err(failed)?;
        print_diagnostic(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

fn print_steps(steps: &[&str]) {
    for (number, step) in steps.iter().enumerate() {
        print_diagnostic(format_args!("to do by hand, {}: {step}", number + 1));
    }
}
