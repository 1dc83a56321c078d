//! docs/reference/agent-options.md and the text of `lucce options`, from the table.

use std::fmt::Write;

use crate::StartMode;
use crate::entry::{OptionChoice, OptionEntry, OptionGroup, OptionModes, OptionValue};
use crate::kinds::{self, KindConflict};
use crate::selection::REFUSED_COMBINATIONS;
use crate::table::OPTION_TABLE;

/// Beginning of the page.
const INTRODUCTION: &str = "# Agent options
<!-- Generated from the table of crates/options by `cargo xtask docs`. -->
`lucce run`, `lucce attach` and `lucce record` take these options by `--opt KEY=VALUE`; a JVM takes them directly:
```
java -agentpath:/path/to/liblucce.so=key=value,key=value …
```
- Options are `key=value`, separated by commas. `+` joins several values of one option: `events=alloc+lock`.
- Sizes are bytes or have a unit: `64k`, `512m`, `2g` (powers of 1024).
- Times have a unit: `us`, `ms`, `s`, `m`, `h` or `d`, such as `500ms`. A number without a unit is in seconds.
- If an option is unknown or malformed, the JVM does not start; the message names the option and a near known one.
- If the agent cannot record, it prints a warning and the program runs without it (see `strict=`).
- `lucce options` prints this page's options, and `lucce options NAME` one of them.
";

/// The page docs/reference/agent-options.md.
#[must_use]
pub fn agent_options_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for group in OptionGroup::SHOWN {
        let entries: Vec<&OptionEntry> = entries_of(group).collect();
        page.push_str(&format!("\n## {}\n", markdown_heading(group)));
        page.push_str(&group_introduction(group));
        if !entries.is_empty() {
            page.push_str("|option|default|meaning|\n|---|---|---|\n");
        }
        for entry in entries {
            let default = match entry.default {
                "" => "none".to_owned(),
                default => format!("`{default}`"),
            };
            let (form, meaning) = (escape_cell(&entry.value_form()), meaning_of(entry));
            let _ = writeln!(page, "|`{}={form}`|{default}|{meaning}|", entry.name);
        }
        if group == OptionGroup::Lab {
            page.push_str(&lab_choices());
        }
    }
    page.push_str(&refused_combinations());
    page
}

fn entries_of(group: OptionGroup) -> impl Iterator<Item = &'static OptionEntry> {
    OPTION_TABLE
        .iter()
        .filter(move |entry| entry.group == group)
}

fn markdown_heading(group: OptionGroup) -> String {
    let heading = group.heading();
    heading
        .replace("lucce attach", "`lucce attach`")
        .replace("lucce record", "`lucce record`")
}

/// The text before a group's table.
fn group_introduction(group: OptionGroup) -> String {
    match group {
        OptionGroup::Events => event_kinds_table(),
        OptionGroup::Scope => {
            let repeatable = OPTION_TABLE.iter().filter(|entry| entry.is_repeatable);
            let names: Vec<String> = repeatable
                .map(|entry| format!("`{}=`", entry.name))
                .collect();
            format!(
                "{} may be given several times; their patterns add up.\n\n",
                join_words(&names)
            )
        }
        OptionGroup::Push => {
            "These options send the log to [`lucce fleet collect`](../guide/fleet.md).\n\n".to_owned()
        }
        OptionGroup::Attach => attach_introduction(),
        OptionGroup::Lab => "These options compare the papers' schemes \
            ([encodings](../../lab/docs/encodings.md), [comparison modes](../../lab/docs/comparison-modes.md)).\n\n"
            .to_owned(),
        OptionGroup::Files | OptionGroup::Tracking | OptionGroup::Internal => String::new(),
    }
}

fn event_kinds_table() -> String {
    let mut table = "|kind|records|does not count|\n|---|---|---|\n".to_owned();
    for kind in kinds::ALL {
        let (name, summary) = (kind.name, kind.summary);
        let _ = writeln!(table, "|`{name}`|{summary}|{}|", kind.not_counted);
    }
    table.push_str(
        "|`none`|nothing; contexts are tracked, and [the API](../guide/api-and-log-correlation.md) returns context ids. \
         Stands alone||\n\n",
    );
    table
}

/// The options and kinds that an attached agent accepts.
fn attach_introduction() -> String {
    let shared = OPTION_TABLE
        .iter()
        .filter(|entry| entry.modes == OptionModes::Both);
    let shared: Vec<String> = shared.map(|entry| format!("`{}`", entry.name)).collect();
    let attachable = kinds::ALL
        .iter()
        .filter(|kind| kind.conflict_message(KindConflict::Attach).is_none());
    let attachable: Vec<String> = attachable.map(|kind| format!("`{}`", kind.name)).collect();
    format!(
        "An attached agent has no hooks. It takes {}; others are refused. `events` may be {}.\n\n",
        join_words(&shared),
        join_words(&attachable)
    )
}

/// Summary, details and choices of an option, as a cell.
fn meaning_of(entry: &OptionEntry) -> String {
    let mut sentences = vec![format!("{}.", entry.summary)];
    if !entry.details.is_empty() {
        sentences.push(entry.details.to_owned());
    }
    let choices =
        choices_of(entry).filter(|choice| !choice.summary.is_empty() && !choice.needs_lab);
    sentences.extend(choices.map(|choice| format!("`{}`: {}", choice.name, choice_text(choice))));
    let cell = escape_cell(&sentences.join(" "));
    cell.trim_end_matches('.').to_owned()
}

fn choices_of(entry: &OptionEntry) -> impl Iterator<Item = &'static OptionChoice> {
    let choices = match &entry.value {
        OptionValue::Choice(choices) => choices,
        OptionValue::Text { .. } => &[][..],
    };
    choices.iter()
}

/// The summary of a choice, with the names of kinds in place of `{later kinds}`.
fn choice_text(choice: &OptionChoice) -> String {
    let later = kinds::ALL.iter().filter(|kind| kind.can_come_later);
    let names: Vec<String> = later.map(|kind| format!("`{}`", kind.name)).collect();
    choice.summary.replace("{later kinds}", &join_words(&names))
}

/// The values that need the laboratory's agent.
fn lab_choices() -> String {
    let mut table = "\nThese values need `liblucce-lab.so` in place of `liblucce.so`.\n\n|lab only|meaning|\n|---|---|\n".to_owned();
    for entry in &OPTION_TABLE {
        for choice in choices_of(entry).filter(|choice| choice.needs_lab) {
            let summary = choice.summary.trim_end_matches('.');
            let _ = writeln!(table, "|`{}={}`|{summary}|", entry.name, choice.name);
        }
    }
    table
}

fn refused_combinations() -> String {
    let mut table = "\n## Combinations that are refused\n|options|reason|\n|---|---|\n".to_owned();
    let mut add = |combination: &str, reason: &str| {
        let _ = writeln!(table, "|{combination}|{reason}|");
    };
    for rule in &REFUSED_COMBINATIONS {
        add(rule.combination, rule.reason);
    }
    // Kinds with the same conflict share a row.
    let mut kinds_by_conflict: Vec<(KindConflict, Vec<String>)> = Vec::new();
    for kind in kinds::ALL {
        let conflicts = kind.conflicts.iter().map(|(with, _)| *with);
        for conflict in conflicts.filter(|with| *with != KindConflict::Attach) {
            let name = format!("`{}`", kind.name);
            let mut rows = kinds_by_conflict.iter_mut();
            match rows.find(|(other, _)| *other == conflict) {
                Some((_, names)) => names.push(name),
                None => kinds_by_conflict.push((conflict, vec![name])),
            }
        }
    }
    for (conflict, names) in &kinds_by_conflict {
        let combination = format!("{} with {}", names.join(", "), conflict.option_text());
        add(&combination, conflict.reason());
    }
    for conflict in OPTION_TABLE.iter().flat_map(|entry| entry.conflicts) {
        add(conflict.combination, conflict.reason);
    }
    table
}

/// The text of `lucce options`: each option with its values and one line. `mode`: only options of this way to start the
/// agent.
#[must_use]
pub fn option_list(mode: Option<StartMode>) -> String {
    let mut text = String::new();
    for group in OptionGroup::SHOWN {
        let entries = entries_of(group).filter(|entry| entry.modes.include(mode));
        let entries: Vec<&OptionEntry> = entries.collect();
        if entries.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}{}:", newline_unless_first(&text), group.heading());
        for entry in entries {
            let setting = format!("{}={}", entry.name, entry.value_form());
            let summary = plain_text(entry.summary);
            let default = default_text(entry);
            let _ = match setting.chars().count() {
                0..=24 => writeln!(text, "  {setting:<24}  {summary}{default}"),
                _ => writeln!(text, "  {setting}\n  {:<24}  {summary}{default}", ""),
            };
        }
        if group == OptionGroup::Events {
            text.push_str(&event_list(mode));
        }
    }
    text
}

/// The text of `lucce options NAME`; `None`: there is no such option.
#[must_use]
pub fn option_details(name: &str) -> Option<String> {
    let entry = crate::find_option(name)?;
    let mut text = format!(
        "{name}={}\n  {}{}\n",
        entry.value_form(),
        plain_text(entry.summary),
        default_text(entry)
    );
    for sentence in plain_text(entry.details).split_inclusive(". ") {
        let _ = writeln!(text, "  {}", sentence.trim_end());
    }
    for choice in choices_of(entry).filter(|choice| !choice.summary.is_empty()) {
        let lab = if choice.needs_lab { " (lab only)" } else { "" };
        let summary = plain_text(&choice_text(choice));
        let _ = writeln!(text, "  {}{lab}: {summary}", choice.name);
    }
    if name == "events" {
        text.push_str(&event_list(None));
    }
    let accepted = match entry.modes {
        OptionModes::Start => "lucce run and -agentpath only",
        OptionModes::Attach => "lucce attach and lucce record only",
        OptionModes::Both => "all ways to start the agent",
    };
    let _ = writeln!(text, "  Accepted by: {accepted}");
    for conflict in entry.conflicts {
        let _ = writeln!(text, "  Refused: {}", plain_text(conflict.combination));
    }
    Some(text)
}

fn event_list(mode: Option<StartMode>) -> String {
    let is_attached = mode == Some(StartMode::Attached);
    let mut text = "  Kinds of events:\n".to_owned();
    for kind in kinds::ALL {
        if !is_attached || kind.conflict_message(KindConflict::Attach).is_none() {
            let _ = writeln!(text, "    {:<11} {}", kind.name, plain_text(kind.summary));
        }
    }
    if !is_attached {
        text.push_str("    none        nothing; contexts are tracked for the API\n");
    }
    text
}

fn default_text(entry: &OptionEntry) -> String {
    match entry.default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    }
}

fn newline_unless_first(text: &str) -> &'static str {
    match text.is_empty() {
        true => "",
        false => "\n",
    }
}

/// Markdown without quotes and targets of links.
fn plain_text(markdown: &str) -> String {
    let mut plain = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        // A target follows the words of a link; other brackets stay.
        let parts = link.split_once(']').and_then(|(words, behind)| {
            Some((words, behind.strip_prefix('(')?.split_once(')')?.1))
        });
        match parts {
            Some((words, behind)) => {
                plain.push_str(words);
                rest = behind;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain.push_str(rest);
    plain.replace('`', "")
}

/// Text for a cell of a table: bars are escaped.
fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// `a, b and c`
fn join_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod reference_tests {
    use super::*;

    #[test]
    fn the_page_has_each_option_and_each_kind() {
        let page = agent_options_page();
        for entry in OPTION_TABLE
            .iter()
            .filter(|entry| entry.group != OptionGroup::Internal)
        {
            assert!(
                page.contains(&format!("|`{}=", entry.name)),
                "{}",
                entry.name
            );
            assert!(option_list(None).contains(&format!("  {}=", entry.name)));
        }
        for kind in kinds::ALL {
            assert!(
                page.contains(&format!("|`{}`|{}|", kind.name, kind.summary)),
                "{}",
                kind.name
            );
        }
    }

    /// The page names the kinds that `ctl=all` prepares, and no others.
    #[test]
    fn control_of_all_kinds_is_documented() {
        let page = agent_options_page();
        let line = page.lines().find(|line| line.starts_with("|`ctl="));
        let (_, prepared) = line.unwrap().split_once("`all`:").unwrap();
        let (prepared, _) = prepared.split_once(". ").unwrap();
        for kind in kinds::ALL {
            let name = format!("`{}`", kind.name);
            assert_eq!(prepared.contains(&name), kind.can_come_later, "{name}");
        }
        assert!(prepared.contains("`exception`, `io`") && !prepared.contains("`call`"));
    }

    #[test]
    fn every_option_can_be_explained() {
        for entry in &OPTION_TABLE {
            let text = option_details(entry.name).unwrap();
            assert!(text.lines().count() >= 3 && !text.contains('`'), "{text}");
        }
        assert_eq!(option_details("evnts"), None);
        assert!(
            option_details("tracking")
                .unwrap()
                .contains("paper (lab only): ")
        );
    }

    #[test]
    fn markdown_becomes_plain() {
        assert_eq!(plain_text("a [b `c`](d.md#e), `f`"), "a b c, f");
        assert_eq!(plain_text("[default: 512k] x"), "[default: 512k] x");
        assert_eq!(plain_text("a["), "a[");
    }
}
