//! Puts lucce's plugin into a `pom.xml`. All other bytes of the file stay as they are.

use lucce_page::escape_html;
use roxmltree::{Document, Node};

/// Spaces of a level in the templates.
const TEMPLATE_INDENTATION: &str = "  ";
const PLUGIN: &str = include_str!("maven_plugin.xml");
const REPOSITORY: &str = include_str!("plugin_repository.xml");

/// A changed POM.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedPom {
    pub text: String,
    /// Whether the POM sets an `argLine` that ignores the plugin's.
    pub has_own_arguments: bool,
}

/// Adds the plugin, and the repository that has it.
///
/// # Errors
/// The text is no POM, or the plugin is in it.
pub fn add_plugin(pom: &str, repository: Option<&str>) -> Result<ChangedPom, String> {
    let document = parse_pom(pom)?;
    let mut ids = document
        .descendants()
        .filter(|node| is_named(node, "artifactId"));
    if ids.any(|id| id.text().map(str::trim) == Some("lucce-maven-plugin")) {
        return Err("has lucce-maven-plugin already, and stays as it is".into());
    }
    let mut arguments = document.descendants().filter(|node| {
        let parent = node.parent_element();
        is_named(node, "argLine") && parent.is_some_and(|parent| is_named(&parent, "configuration"))
    });
    let has_own_arguments =
        arguments.any(|node| !node.text().unwrap_or_default().contains("@{argLine}"));
    let plugin = PLUGIN.replace("VERSION", env!("CARGO_PKG_VERSION"));
    let mut text = append_element(pom, &["build", "plugins"], &plugin)?;
    if let Some(url) = repository {
        let repository = REPOSITORY.replace("REPOSITORY", &escape_html(url));
        text = append_element(&text, &["pluginRepositories"], &repository)?;
    }
    Ok(ChangedPom {
        text,
        has_own_arguments,
    })
}

fn parse_pom(pom: &str) -> Result<Document<'_>, String> {
    let document = Document::parse(pom).map_err(|e| e.to_string())?;
    match is_named(&document.root_element(), "project") {
        true => Ok(document),
        false => Err("is no POM: its root is not <project>".into()),
    }
}

/// Whether it is an element of this name, in any namespace.
fn is_named(node: &Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

/// Puts a block of lines at the end of the element that `path` names, from the root on. Creates missing elements.
fn append_element(pom: &str, path: &[&str], block: &str) -> Result<String, String> {
    let document = parse_pom(pom)?;
    let mut parent = document.root_element();
    let mut missing = path;
    while let [name, rest @ ..] = missing {
        let Some(child) = parent.children().find(|child| is_named(child, name)) else {
            break;
        };
        (parent, missing) = (child, rest);
    }
    let mut block = block.to_owned();
    for name in missing.iter().rev() {
        let inner = indent_lines(&block, TEMPLATE_INDENTATION, TEMPLATE_INDENTATION);
        block = format!("<{name}>\n{inner}</{name}>\n");
    }
    Ok(append_block(pom, &document, parent, &block))
}

fn append_block(pom: &str, document: &Document<'_>, parent: Node<'_, '_>, block: &str) -> String {
    let unit = indentation_unit(pom, document);
    let own = line_indentation(pom, parent.range().start);
    let block = indent_lines(block, &format!("{own}{unit}"), unit);
    let (before, element) = pom.split_at(parent.range().start);
    let (element, after) = element.split_at(parent.range().len());
    let changed = match element.strip_suffix("/>") {
        Some(start) => {
            let (start, name) = (start.trim_end(), tag_in_text(element));
            format!("{before}{start}>\n{block}{own}</{name}>{after}")
        }
        None => {
            let (content, end) = element.split_at(element.rfind("</").unwrap_or(element.len()));
            let lines = content.trim_end_matches([' ', '\t']);
            // The end tag may stand in a line with other elements.
            let lines = if lines.ends_with('\n') {
                lines
            } else {
                content
            };
            let newline = if lines.ends_with('\n') { "" } else { "\n" };
            format!("{before}{lines}{newline}{block}{own}{end}{after}")
        }
    };
    match pom.contains("\r\n") {
        true => changed.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => changed,
    }
}

/// The name in a start tag, with its prefix.
fn tag_in_text(element: &str) -> &str {
    let name = element.trim_start_matches('<');
    let end = name.find(|letter: char| letter.is_whitespace() || letter == '/' || letter == '>');
    name.split_at(end.unwrap_or(name.len())).0
}

/// The white space before the first element of the project.
fn indentation_unit<'p>(pom: &'p str, document: &Document<'_>) -> &'p str {
    let first = document.root_element().first_element_child();
    let unit = first.map_or("", |first| line_indentation(pom, first.range().start));
    if unit.is_empty() {
        TEMPLATE_INDENTATION
    } else {
        unit
    }
}

/// The white space with which the line of this byte begins.
fn line_indentation(text: &str, at: usize) -> &str {
    let before = text.split_at(at).0;
    let line = before.rsplit('\n').next().unwrap_or_default();
    let white = line.find(|letter| letter != ' ' && letter != '\t');
    line.split_at(white.unwrap_or(line.len())).0
}

/// Puts `indentation` before each line of a template, and `unit` in place of each of its levels.
fn indent_lines(lines: &str, indentation: &str, unit: &str) -> String {
    let indent = |line: &str| {
        let text = line.trim_start();
        let levels = (line.len() - text.len()) / TEMPLATE_INDENTATION.len();
        format!("{indentation}{}{text}\n", unit.repeat(levels))
    };
    lines.lines().map(indent).collect()
}

#[cfg(test)]
mod pom_file_tests {
    use super::*;

    const PROJECT: &str =
        "<?xml version=\"1.0\"?>\n<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n";

    fn lines(unit: &str, depth: usize) -> String {
        let plugin = PLUGIN.replace("VERSION", env!("CARGO_PKG_VERSION"));
        let lines = plugin.replace("  ", unit);
        let lines = lines
            .lines()
            .map(|line| format!("{}{line}\n", unit.repeat(depth)));
        lines.collect()
    }

    #[test]
    fn missing_elements_are_created() {
        let pom = format!("{PROJECT}    <version>1</version>\n</project>\n");
        let plugin = lines("    ", 3);
        let expected = format!(
            "{PROJECT}    <version>1</version>\n    <build>\n        <plugins>\n{plugin}        </plugins>\n    </build>\n</project>\n"
        );
        assert_eq!(add_plugin(&pom, None).unwrap().text, expected);
    }

    /// The first plugins in the text are not those of the build.
    #[test]
    fn other_bytes_stay() {
        let pom = format!(
            "{PROJECT}\t<!-- <plugins> </build> -->\n\t<profiles><profile><build><plugins/></build></profile></profiles>\n\
             \t<build>\n\t\t<pluginManagement><plugins></plugins></pluginManagement>\n\t\t<plugins>\n\t\t\t<plugin/> \n\t\t</plugins>\n\t</build>\n</project>"
        );
        let (before, after) = pom.split_at(pom.rfind("\t\t</plugins>").unwrap());
        let expected = format!("{before}{}{after}", lines("\t", 3));
        let changed = add_plugin(&pom, None).unwrap();
        assert_eq!(changed.text, expected);
        assert!(!changed.has_own_arguments);
        let again = add_plugin(&changed.text, None).unwrap_err();
        assert!(again.contains("already"), "{again}");
    }

    #[test]
    fn elements_of_one_line_are_opened() {
        let plugin = lines("  ", 3);
        for (plugins, opened) in [
            ("<plugins />", "<plugins>"),
            ("<plugins></plugins>", "<plugins>"),
            ("<plugins><plugin/></plugins>", "<plugins><plugin/>"),
        ] {
            let pom = format!("{PROJECT}  <build>\n    {plugins}\n  </build>\n</project>");
            let expected = format!(
                "{PROJECT}  <build>\n    {opened}\n{plugin}    </plugins>\n  </build>\n</project>"
            );
            assert_eq!(add_plugin(&pom, None).unwrap().text, expected);
        }
    }

    #[test]
    fn the_repository_is_one_for_plugins() {
        let pom = format!("{PROJECT}  <build/>\n</project>\n").replace('\n', "\r\n");
        let text = add_plugin(&pom, Some("file:///a&b")).unwrap().text;
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
        let expected = "  <pluginRepositories>\n    <pluginRepository>\n      <id>lucce</id>\n      <url>file:///a&amp;b</url>\n    \
                        </pluginRepository>\n  </pluginRepositories>\n</project>\n";
        assert!(text.replace("\r\n", "\n").ends_with(expected), "{text}");
        assert!(parse_pom(&text).is_ok());
    }

    #[test]
    fn own_arguments_are_noticed() {
        for (argument, own) in [("-Xmx1g", true), ("@{argLine} -Xmx1g", false)] {
            let pom = format!(
                "{PROJECT}<build><plugins><plugin><configuration><argLine>{argument}</argLine></configuration></plugin></plugins></build></project>"
            );
            assert_eq!(add_plugin(&pom, None).unwrap().has_own_arguments, own);
        }
    }

    #[test]
    fn other_files_are_refused() {
        for other in ["", "text", "<project>", "<settings/>"] {
            assert!(add_plugin(other, None).is_err(), "{other}");
        }
    }
}
