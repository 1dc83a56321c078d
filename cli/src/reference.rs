//! docs/reference/command-line.md, from the definition of the command line.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::{Arg, Command};
use lucce_command::CommandStatus;
use lucce_command::exit_codes::EXIT_CODE_NOTES;

/// Beginning of the page.
const INTRODUCTION: &str = "# Command line
<!-- Generated from the definition of the command line by `cargo xtask docs`. -->
This page lists the commands and options of `lucce`. `lucce COMMAND --help` prints each with examples. `-h` and `--help`
work everywhere; `lucce -V` prints the version and the versions of readable files. The commands of `lucce fleet` are in
[its guide](../guide/fleet.md); `lucce fleet COMMAND --help` prints their options.
";

/// Values that several commands take.
const VALUES: &str = "
## Common arguments and options
JVM is a process id, a main class or jar, or the end of one. RUN is a log; FILE may be packed with gzip. TIME is a number
with `ns`, `us`, `ms`, `s`, `m`, `h` or `d`, such as `500ms` (without a unit: seconds). SIZE is a number with `k`, `m` or
`g`, such as `64k` (without a unit: bytes). PATTERNS are class names joined by `+`, such as `org.h2.*+com.acme.Foo`.

Letters stand for commands:
";

/// End of the page.
const ENVIRONMENT: &str = "
## Environment
|variable|meaning|
|---|---|
|`LUCCE_PUSH_TOKEN`, `LUCCE_FLEET_TOKEN`|tokens for `--token-file` that is not given|
|`LUCCE_FLEET`|the dataset of `lucce fleet` commands|
|`JAVA_TOOL_OPTIONS`|extended by `lucce run`|
|`ASYNC_PROFILER`|the library of async-profiler, for `lucce bench`|
|`NO_COLOR`, `TERM=dumb`|no colours|
|`XDG_CACHE_HOME`|place of the agent's [cache](files.md#the-cache)|
|`LUCCE_HOME`|where the [jar](support.md#maven-and-gradle) unpacks the agent|
";

/// An option with the same name and meaning in this number of commands is listed once.
const LEAST_COMMANDS: usize = 2;
/// Arguments that the page describes at its beginning.
const DESCRIBED_VALUES: [&str; 5] = ["JVM", "RUN", "FILE", "JVM|RUN", "FILE..."];

/// The page. `groups`: headings, and the commands below each.
pub fn command_line_page(command: &Command, groups: &[(&str, &[&str])]) -> String {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let shared = shared_options(&command);
    let mut page = [INTRODUCTION, &exit_codes(), VALUES].concat();
    let sets = list_command_sets(&shared);
    for (letter, names) in ('A'..).zip(&sets) {
        let _ = writeln!(page, "- {letter}: {}", format_commands(names));
    }
    page.push_str("\n|option|commands|meaning|\n|---|---|---|\n");
    for (row, names) in &shared {
        let set = ('A'..).zip(&sets).find(|(_, set)| *set == names);
        let commands = match set {
            Some((letter, _)) => letter.to_string(),
            None => format_commands(names),
        };
        let _ = writeln!(page, "|{}|{commands}|{}|", row.option, row.meaning);
    }
    for (heading, names) in groups {
        let _ = writeln!(page, "\n## {heading}");
        let commands = names
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        commands.for_each(|own| page.push_str(&command_section(own, "lucce", &shared)));
    }
    page.push_str(ENVIRONMENT);
    page
}

/// Sets of so many commands that several options have: the page names each by a letter.
const LEAST_OF_SET: usize = 6;

fn list_command_sets(shared: &SharedOptions) -> Vec<Vec<String>> {
    let mut sets: Vec<Vec<String>> = Vec::new();
    for names in shared.values() {
        let options = shared.values().filter(|other| *other == names).count();
        if names.len() >= LEAST_OF_SET && options > 1 && !sets.contains(names) {
            sets.push(names.clone());
        }
    }
    sets
}

fn format_commands(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// An option as the page shows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OptionRow {
    option: String,
    meaning: String,
}

impl OptionRow {
    fn from_arg(arg: &Arg) -> OptionRow {
        OptionRow {
            option: option_text(arg),
            meaning: meaning_text(arg),
        }
    }
}

impl OptionRow {
    /// Whether the page describes the argument at its beginning.
    fn is_described(&self) -> bool {
        let name = self.option.trim_matches('`').replace("\\|", "|");
        DESCRIBED_VALUES.contains(&name.as_str())
    }
}

/// The options of several commands, each with the names of the commands.
type SharedOptions = BTreeMap<OptionRow, Vec<String>>;

fn shared_options(command: &Command) -> SharedOptions {
    let mut all = SharedOptions::new();
    for own in command.get_subcommands() {
        for arg in shown_arguments(own).filter(|arg| !arg.is_positional()) {
            let commands = all.entry(OptionRow::from_arg(arg)).or_default();
            commands.push(own.get_name().to_owned());
        }
    }
    all.retain(|_, commands| commands.len() >= LEAST_COMMANDS);
    all
}

fn exit_codes() -> String {
    let mut text = "\n## Exit codes\n|code|meaning|\n|---|---|\n".to_owned();
    for status in CommandStatus::ALL {
        let _ = writeln!(text, "|{}|{}|", status.code(), status.meaning());
    }
    text.push_str("\n|command|differences|\n|---|---|\n");
    for note in &EXIT_CODE_NOTES {
        let _ = writeln!(text, "|`{}`|{}|", note.command, note.note);
    }
    text
}

/// Heading, description, arguments and subcommands of a command. `above`: the words before the command, as typed.
fn command_section(command: &Command, above: &str, shared: &SharedOptions) -> String {
    let positionals: Vec<String> = command.get_positionals().map(ToString::to_string).collect();
    let called = [
        &[above.to_owned(), command.get_name().to_owned()][..],
        &positionals,
    ]
    .concat();
    let called = called.join(" ").replace(['<', '>'], "");
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    let mut text = format!("\n### `{}`\n{}\n", called.trim(), as_sentences(&about));
    let rows: Vec<OptionRow> = shown_arguments(command)
        .map(OptionRow::from_arg)
        .filter(|row| !shared.contains_key(row) && !row.is_described())
        .collect();
    if !rows.is_empty() {
        text.push_str("\n|argument|meaning|\n|---|---|\n");
    }
    for row in rows {
        let _ = writeln!(text, "|{}|{}|", row.option, row.meaning);
    }
    let subcommands: Vec<&Command> = command.get_subcommands().collect();
    if !subcommands.is_empty() {
        text.push_str("\n|command|meaning|\n|---|---|\n");
    }
    for own in &subcommands {
        let positionals: Vec<String> = own.get_positionals().map(ToString::to_string).collect();
        let words = [&[own.get_name().to_owned()][..], &positionals]
            .concat()
            .join(" ");
        let about = own.get_about().map(ToString::to_string).unwrap_or_default();
        let words = words.replace(['<', '>'], "");
        let _ = writeln!(text, "|`{words}`|{}|", escape_cell(&about));
    }
    for own in subcommands {
        let is_own = |arg: &&Arg| !arg.is_positional() && !arg.is_global_set();
        let rows: Vec<OptionRow> = shown_arguments(own)
            .filter(is_own)
            .map(OptionRow::from_arg)
            .collect();
        if !rows.is_empty() {
            let _ = write!(
                text,
                "\n|option of `{}`|meaning|\n|---|---|\n",
                own.get_name()
            );
        }
        for row in rows {
            let _ = writeln!(text, "|{}|{}|", row.option, row.meaning);
        }
    }
    text
}

fn shown_arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    let arguments = command.get_arguments();
    arguments
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
}

/// `-d`, `--duration TIME`
fn option_text(arg: &Arg) -> String {
    if arg.is_positional() {
        let text = format!("`{}`", arg.to_string().replace(['<', '>'], ""));
        return escape_cell(&text);
    }
    let short = arg.get_short().map(|short| format!("`-{short}`, "));
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = match arg.get_action().takes_values() {
        true => values.iter().map(|value| format!(" {value}")).collect(),
        false => Vec::new(),
    };
    let long = arg.get_long().unwrap_or_default();
    let option = format!("{}`--{long}{}`", short.unwrap_or_default(), values.concat());
    escape_cell(&option)
}

/// Help, possible values and default.
fn meaning_text(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> =
        match arg.get_action().takes_values() && !arg.is_hide_possible_values_set() {
            true => arg
                .get_possible_values()
                .iter()
                .filter(|value| !value.is_hide_set())
                .map(|value| format!("`{}`", value.get_name()))
                .collect(),
            false => Vec::new(),
        };
    if !values.is_empty() {
        let _ = write!(text, ": {}", values.join(", "));
    }
    let defaults = arg.get_default_values();
    if !defaults.is_empty() && arg.get_action().takes_values() && !arg.is_hide_default_value_set() {
        let defaults: Vec<String> = defaults
            .iter()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let _ = write!(text, " [default: {}]", defaults.join(" "));
    }
    escape_cell(&text)
}

/// One line, with a period at the end.
fn as_sentences(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.ends_with(['.', ':']) || text.is_empty() {
        true => text,
        false => format!("{text}."),
    }
}

/// Text for a cell of a table.
fn escape_cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('|', "\\|")
}

#[cfg(test)]
mod reference_tests {
    use super::*;
    use clap::builder::PossibleValue;
    use clap::{ArgAction, arg};

    fn sample() -> Command {
        let shared = arg!(--json "Print JSON").action(ArgAction::SetTrue);
        let own = Arg::new("by")
            .long("by")
            .value_name("BY")
            .default_value("a")
            .value_parser([
                PossibleValue::new("a").help("first|last"),
                PossibleValue::new("b"),
            ])
            .help("Sort by");
        let with = |name: &'static str| Command::new(name).about("Do it").arg(shared.clone());
        Command::new("lucce")
            .subcommand(with("x").arg(own).arg(arg!(<FILE> "File to read")))
            .subcommand(with("y"))
            .subcommand(with("z").arg(arg!(--secret "Hidden").hide(true)))
    }

    #[test]
    fn options_of_several_commands_are_listed_once() {
        let page = command_line_page(&sample(), &[("All", &["x", "y", "z"])]);
        assert_eq!(page.matches("--json").count(), 1, "{page}");
        assert!(
            page.contains("|`--json`|`x`, `y`, `z`|Print JSON|"),
            "{page}"
        );
        assert!(page.contains("\n### `lucce x FILE`\nDo it.\n"), "{page}");
        let by = "|`--by BY`|Sort by: `a`, `b` [default: a]|";
        assert!(page.contains(by), "{page}");
        assert!(
            !page.contains("secret") && !page.contains("`--help`|"),
            "{page}"
        );
    }

    #[test]
    fn every_exit_code_is_in_the_page() {
        let codes = exit_codes();
        for status in CommandStatus::ALL {
            assert!(codes.contains(&format!("|{}|{}|", status.code(), status.meaning())));
        }
    }
}
