//! Puts lucce's plugin into Gradle's build script, and its repository into both scripts: the plugin comes from the repositories of
//! the settings script, its agent from those of the build script.

/// The language of a project's scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScriptLanguage {
    Groovy,
    Kotlin,
}

impl ScriptLanguage {
    pub const ALL: [ScriptLanguage; 2] = [ScriptLanguage::Groovy, ScriptLanguage::Kotlin];

    pub fn build_script(self) -> &'static str {
        match self {
            ScriptLanguage::Groovy => "build.gradle",
            ScriptLanguage::Kotlin => "build.gradle.kts",
        }
    }

    pub fn settings_script(self) -> &'static str {
        match self {
            ScriptLanguage::Groovy => "settings.gradle",
            ScriptLanguage::Kotlin => "settings.gradle.kts",
        }
    }

    /// The plugin's line in the block `plugins`.
    pub fn plugin_line(self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        match self {
            ScriptLanguage::Groovy => format!("id 'io.lucce' version '{version}'"),
            ScriptLanguage::Kotlin => format!("id(\"io.lucce\") version \"{version}\""),
        }
    }

    /// A repository's line in a block `repositories`.
    pub fn repository_line(self, url: &str) -> String {
        match self {
            ScriptLanguage::Groovy => format!("maven {{ url {} }}", quote_groovy(url)),
            ScriptLanguage::Kotlin => format!("maven {{ url = uri({}) }}", quote_kotlin(url)),
        }
    }
}

/// Adds the plugin to the block `plugins`.
///
/// # Errors
/// The plugin is in the script, or no line begins with `plugins {`.
pub fn add_plugin(script: &str, language: ScriptLanguage) -> Result<String, String> {
    if script.contains("'io.lucce'") || script.contains("\"io.lucce\"") {
        return Err("has the plugin io.lucce already, and stays as it is".into());
    }
    let line = language.plugin_line();
    add_to_block(script, "plugins", &line)
        .ok_or_else(|| format!("has no line plugins {{: add plugins {{ {line} }}"))
}

/// Adds the repository to the block `repositories` of a build script, or such a block at the script's end.
pub fn add_project_repository(script: &str, language: ScriptLanguage, url: &str) -> String {
    let line = language.repository_line(url);
    add_to_block(script, "repositories", &line).unwrap_or_else(|| {
        let newline = newline_of(script);
        let end = if script.ends_with('\n') { "" } else { newline };
        format!("{script}{end}{newline}repositories {{{newline}    {line}{newline}}}{newline}")
    })
}

/// Puts the line first into a block of the script's top level; None: no line begins with `NAME {`.
fn add_to_block(script: &str, name: &str, line: &str) -> Option<String> {
    let (before, after) = script.split_at(find_block(script, name)?);
    let rest = after.lines().next().unwrap_or_default();
    if !rest.trim().is_empty() && !rest.trim().starts_with("//") {
        return Some(format!("{before} {line};{after}"));
    }
    let (rest, after) = after.split_at(rest.len());
    let next = after.lines().find(|line| !line.trim().is_empty());
    let indentation = next.map_or(0, |next| next.len() - next.trim_start().len());
    let indentation = next.map_or("", |next| next.split_at(indentation).0);
    let indentation = if indentation.is_empty() {
        "    "
    } else {
        indentation
    };
    let newline = newline_of(script);
    Some(format!("{before}{rest}{newline}{indentation}{line}{after}"))
}

fn newline_of(script: &str) -> &'static str {
    match script.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    }
}

/// The byte behind the brace of the block.
fn find_block(script: &str, name: &str) -> Option<usize> {
    let mut start = 0;
    for line in script.split_inclusive('\n') {
        let behind = line.strip_prefix(name).map(str::trim_start);
        if let Some(inside) = behind.and_then(|behind| behind.strip_prefix('{')) {
            return Some(start + line.len() - inside.len());
        }
        start += line.len();
    }
    None
}

/// Puts a block with the repository at the top of the settings script, before all else, as Gradle wants it. Gradle's own
/// repository of plugins is named too, because the block replaces it. None: the script has such a block, or imports.
pub fn add_plugin_repository(
    settings: &str,
    language: ScriptLanguage,
    url: &str,
) -> Option<String> {
    let is_first = |line: &str| line.starts_with("import ") || line.starts_with("@file:");
    if settings.contains("pluginManagement") || settings.lines().any(is_first) {
        return None;
    }
    let line = language.repository_line(url);
    let space = if settings.is_empty() { "" } else { "\n" };
    Some(format!(
        "pluginManagement {{\n    repositories {{\n        {line}\n        gradlePluginPortal()\n    }}\n}}\n{space}{settings}"
    ))
}

/// The text as a literal of Groovy.
pub fn quote_groovy(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn quote_kotlin(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('$', "\\$"))
}

#[cfg(test)]
mod gradle_files_tests {
    use super::*;

    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[test]
    fn the_plugin_is_the_first_of_its_block() {
        let groovy = |script: &str| add_plugin(script, ScriptLanguage::Groovy).unwrap();
        let line = format!("id 'io.lucce' version '{VERSION}'");
        for (script, expected) in [
            (
                "plugins {\n  id 'java'\n}\n",
                format!("plugins {{\n  {line}\n  id 'java'\n}}\n"),
            ),
            (
                "// top\nplugins { // all\n}\n",
                format!("// top\nplugins {{ // all\n    {line}\n}}\n"),
            ),
            (
                "plugins { id 'java' }",
                format!("plugins {{ {line}; id 'java' }}"),
            ),
            ("plugins{}", format!("plugins{{ {line};}}")),
            (
                "plugins {\r\n\tid 'java'\r\n}",
                format!("plugins {{\r\n\t{line}\r\n\tid 'java'\r\n}}"),
            ),
        ] {
            assert_eq!(groovy(script), expected);
            let again = add_plugin(&expected, ScriptLanguage::Groovy).unwrap_err();
            assert!(again.contains("already"), "{again}");
        }
        let kotlin = add_plugin("plugins {\n    java\n}\n", ScriptLanguage::Kotlin).unwrap();
        let line = format!("id(\"io.lucce\") version \"{VERSION}\"");
        assert_eq!(kotlin, format!("plugins {{\n    {line}\n    java\n}}\n"));
    }

    #[test]
    fn a_script_without_the_block_is_refused() {
        for script in [
            "",
            "apply plugin: 'java'",
            "subprojects {\n    plugins { }\n}",
        ] {
            let refused = add_plugin(script, ScriptLanguage::Groovy).unwrap_err();
            assert!(refused.contains("id 'io.lucce' version"), "{refused}");
        }
    }

    #[test]
    fn the_project_has_the_repository() {
        let add =
            |script: &str| add_project_repository(script, ScriptLanguage::Groovy, "file:///r");
        let line = "maven { url 'file:///r' }";
        for (script, expected) in [
            (
                "plugins {\n}\nrepositories {\n  mavenCentral()\n}\n",
                format!("plugins {{\n}}\nrepositories {{\n  {line}\n  mavenCentral()\n}}\n"),
            ),
            // Another block's repositories are not the project's.
            (
                "publishing {\n    repositories {\n    }\n}",
                format!(
                    "publishing {{\n    repositories {{\n    }}\n}}\n\nrepositories {{\n    {line}\n}}\n"
                ),
            ),
            (
                "plugins {\r\n}\r\n",
                format!("plugins {{\r\n}}\r\n\r\nrepositories {{\r\n    {line}\r\n}}\r\n"),
            ),
        ] {
            assert_eq!(add(script), expected);
        }
    }

    #[test]
    fn the_repository_comes_first() {
        let settings = "rootProject.name = 'a'\n";
        let groovy =
            add_plugin_repository(settings, ScriptLanguage::Groovy, "file:///o'hara").unwrap();
        let block = "pluginManagement {\n    repositories {\n        maven { url 'file:///o\\'hara' }\n        gradlePluginPortal()\n    }\n}\n";
        assert_eq!(groovy, format!("{block}\n{settings}"));
        let kotlin = add_plugin_repository("", ScriptLanguage::Kotlin, "file:///$a").unwrap();
        assert!(
            kotlin.contains("maven { url = uri(\"file:///\\$a\") }"),
            "{kotlin}"
        );
        for script in [&*groovy, "import a.B\n", "@file:C\n"] {
            assert_eq!(
                add_plugin_repository(script, ScriptLanguage::Kotlin, "x"),
                None
            );
        }
    }
}
