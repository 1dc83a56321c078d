//! The floors of the agent: folders of `agent/src`, each of which imports lower ones only. Read from the code's own
//! imports.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{Outcome, paths};

/// From the lowest one on, and what each is for.
const FLOORS: [(&str, &str); 15] = [
    ("memory", "maps, slots, tables of Java code, the event mask"),
    ("options", "what the user asked for"),
    ("registry", "classes, methods, sites by id; the journal"),
    ("core", "what every layer above uses"),
    (
        "comparison",
        "the papers' systems, in the lab's agent alone",
    ),
    ("tracking", "how a thread keeps the contexts of its frames"),
    ("thread", "a thread's state, counters and their lookup"),
    ("stack", "where a thread is: VM entries, frames, tasks"),
    ("counting", "event types, counters of a site, streams"),
    ("classes", "classes that the VM loads"),
    ("events", "kinds of events, one file for each"),
    ("hookless", "stack walks by the VM, for an attached agent"),
    ("leaks", "followed objects, snapshots, GC root paths"),
    ("session", "start, control, end; the one instance"),
    ("entry", "entry points: what the VM, Java and C code call"),
];

/// Only these floors may name the one instance.
const WITH_THE_INSTANCE: [&str; 2] = ["session", "entry"];
const BEGIN: &str = "<!-- floors: cargo xtask arch --draw -->\n";
const END: &str = "<!-- end of floors -->";

/// Which floor imports which.
type Imports = BTreeSet<(usize, usize)>;

/// # Errors
/// Names each import of a higher floor, each file on no floor, and a drawing that is not today's.
pub fn check() -> Outcome {
    let root = paths::root().join("agent/src");
    let mut wrong = Vec::new();
    let imports = imports(&root, &mut wrong)?;
    let document = paths::root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&document).map_err(|e| format!("{}: {e}", document.display()))?;
    if drawn_in(&text) != Some(&*drawing(&imports)) {
        wrong.push(
            "ARCHITECTURE.md: the floors are drawn otherwise; cargo xtask arch --draw".into(),
        );
    }
    if !wrong.is_empty() {
        return Err(format!(
            "against the architecture:\n  {}",
            wrong.join("\n  ")
        ));
    }
    println!(
        "architecture: {} floors of the agent import lower ones only",
        FLOORS.len()
    );
    Ok(())
}

/// Draws the floors anew in ARCHITECTURE.md.
///
/// # Errors
/// The document has no place for it, or cannot be written.
pub fn draw() -> Outcome {
    let imports = imports(&paths::root().join("agent/src"), &mut Vec::new())?;
    let drawing = drawing(&imports);
    let document = paths::root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&document).map_err(|e| format!("{}: {e}", document.display()))?;
    let missing = "ARCHITECTURE.md has no place for the drawing";
    let (before, rest) = text.split_once(BEGIN).ok_or(missing)?;
    let (_, after) = rest.split_once(END).ok_or(missing)?;
    let text = format!("{before}{BEGIN}{drawing}{END}{after}");
    fs::write(&document, text).map_err(|e| format!("{}: {e}", document.display()))?;
    print!("{drawing}");
    Ok(())
}

fn drawn_in(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(BEGIN)?;
    rest.split_once(END).map(|(drawn, _)| drawn)
}

fn imports(root: &Path, wrong: &mut Vec<String>) -> Result<Imports, String> {
    let mut imports = Imports::new();
    for path in files(root)? {
        let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let mut parts = name.iter().map(|part| part.to_string_lossy());
        let floor = parts.next().unwrap_or_default();
        if parts.next().is_none() {
            if floor != "lib.rs" {
                wrong.push(format!("agent/src/{floor} is on no floor"));
            }
            continue;
        }
        let Some(own) = floor_of(&floor) else {
            wrong.push(format!("agent/src/{floor} is no floor"));
            continue;
        };
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let code = without_comments(&text);
        for other in imported(&code) {
            let Some(other) = floor_of(&other) else {
                continue;
            };
            if other > own {
                let (floor, _) = FLOORS[other];
                wrong.push(format!("agent/src/{} imports {floor}", name.display()));
            }
            if other != own {
                imports.insert((own, other));
            }
        }
        if code.contains("Agent::get") && !WITH_THE_INSTANCE.contains(&&*floor) {
            wrong.push(format!(
                "agent/src/{} asks for the instance",
                name.display()
            ));
        }
    }
    Ok(imports)
}

fn floor_of(name: &str) -> Option<usize> {
    FLOORS.iter().position(|(floor, _)| *floor == name)
}

pub fn files(folder: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

pub fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The floors that code names: behind `crate::`, each once, also where one `use` names several.
pub fn imported(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(first_names(group)),
            None => found.extend(name(rest)),
        }
    }
    found
}

fn name(text: &str) -> Option<String> {
    let name: String = text
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    (!name.is_empty()).then_some(name)
}

/// Of a group `a::b, c::{d, e}}`, the names that are not within another group.
fn first_names(group: &str) -> Vec<String> {
    let (mut depth, mut names, mut begins) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && depth == 0 && !c.is_whitespace() => {
                names.extend(name(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// The highest floor first; behind the arrow what it imports.
fn drawing(imports: &Imports) -> String {
    let mut lines = vec!["```".to_string()];
    for (own, (floor, what)) in FLOORS.iter().enumerate().rev() {
        let below = (0..own)
            .rev()
            .filter(|other| imports.contains(&(own, *other)));
        let below: Vec<&str> = below.map(|other| FLOORS[other].0).collect();
        let arrow = if below.is_empty() { "" } else { "─► " };
        let line = format!("{floor:<11}{what:<52}{arrow}{}", below.join(" "));
        lines.push(line.trim_end().to_owned());
    }
    lines.push("```\n".into());
    lines.join("\n")
}

#[cfg(test)]
mod floors_tests {
    use super::*;

    #[test]
    fn imports_are_found_wherever_they_stand() {
        let code = "use crate::memory::slots::Slot;\nuse crate::{book, core::{Here, Core}, thread::lane};\nlet a = crate::stack::here::of();";
        let found = imported(code);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["book", "core", "memory", "stack", "thread"]);
    }

    #[test]
    fn an_import_of_a_higher_floor_is_told() {
        let folder = std::env::temp_dir().join(format!("lucce-floors-{}", std::process::id()));
        for (path, text) in [
            ("memory/a.rs", "use crate::entry::door;"),
            (
                "entry/b.rs",
                "use crate::memory::a;\n// use crate::nothing;",
            ),
            ("stack/c.rs", "fn f() { Agent::get(); }"),
            ("cellar/d.rs", ""),
            ("e.rs", ""),
        ] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut wrong = Vec::new();
        let imports = imports(&folder, &mut wrong).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            wrong,
            [
                "agent/src/cellar is no floor",
                "agent/src/e.rs is on no floor",
                "agent/src/memory/a.rs imports entry",
                "agent/src/stack/c.rs asks for the instance",
            ]
        );
        let top = FLOORS.len() - 1;
        assert_eq!(imports, Imports::from([(top, 0), (0, top)]));
    }
}
