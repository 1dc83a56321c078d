//! `lucce man`: writes manual pages, from the definition of the command line.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;

use super::output::lock_stdout;
use super::{CommandError, CommandStatus, prefix_path, reference};

/// Write the manual pages of all commands.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce man ~/.local/share/man/man1
  man lucce-report")]
pub struct ManArgs {
    /// Folder to write them to; created if missing
    #[arg(value_name = "FOLDER", required_unless_present = "markdown")]
    folder: Option<PathBuf>,
    /// Print the page of the documents
    #[arg(long, hide = true, conflicts_with = "folder")]
    markdown: bool,
}

pub fn run(args: &ManArgs) -> Result<CommandStatus, CommandError> {
    match &args.folder {
        Some(folder) => write_manual(folder),
        None => {
            let page = reference::command_line_page(&super::command(), &super::COMMAND_GROUPS);
            let mut out = lock_stdout();
            out.write_all(page.as_bytes())?;
            out.flush()?;
            Ok(CommandStatus::Fine)
        }
    }
}

fn write_manual(folder: &Path) -> Result<CommandStatus, CommandError> {
    let mut command = super::command()
        .disable_help_subcommand(true)
        // The page has the version in its footer.
        .long_version(None);
    command.build();
    let written = fs::create_dir_all(folder).and_then(|()| write_pages(&command, "", folder));
    match written {
        Ok(()) => Ok(CommandStatus::Fine),
        Err(e) => Err(CommandError::Usage(prefix_path(folder, e))),
    }
}

/// Writes the pages of a command and of its subcommands. `above`: the words before the command, as typed.
fn write_pages(command: &Command, above: &str, folder: &Path) -> io::Result<()> {
    let called = match above {
        "" => format_bold(command.get_name()),
        above => format!("{above} {}", format_bold(command.get_name())),
    };
    let before = [vec![called.clone()], format_positionals(command)]
        .concat()
        .join(" ");
    command
        .get_subcommands()
        .try_for_each(|own| write_pages(own, &before, folder))?;
    let page = Man::new(command.clone())
        .source(concat!("lucce ", env!("CARGO_PKG_VERSION")))
        .manual("lucce");
    let mut text = Vec::new();
    page.render(&mut text)?;
    // The text below a command's options is its examples, and for the whole program the exit codes.
    let heading = match command.get_name() {
        "lucce" => ".SH \"EXIT STATUS\"\n",
        _ => ".SH EXAMPLES\n",
    };
    let text = String::from_utf8_lossy(&text).replace(".SH EXTRA\n", heading);
    let text = replace_synopsis(&text, &format_synopsis(command, &called));
    fs::write(folder.join(page.get_filename()), text)
}

/// Replaces the page's synopsis, which lacks values of options and words before a subcommand.
fn replace_synopsis(page: &str, synopsis: &str) -> String {
    const HEADING: &str = "\n.SH SYNOPSIS\n";
    let Some((before, behind)) = page.split_once(HEADING) else {
        return page.to_owned();
    };
    let behind = behind.find("\n.SH ").and_then(|end| behind.get(end..));
    format!("{before}{HEADING}{synopsis}{}", behind.unwrap_or("\n"))
}

/// The synopsis: `lucce ctl <JVM> holders [--walks <N>] <ID>...`
fn format_synopsis(command: &Command, called: &str) -> String {
    let options = command.get_arguments().filter(|arg| !arg.is_positional());
    let options = options.filter(|arg| !arg.is_hide_set()).map(format_option);
    let verbs = command.has_subcommands().then(|| escape_roff("<COMMAND>"));
    let parts = std::iter::once(called.to_owned()).chain(options);
    let parts = parts.chain(format_positionals(command)).chain(verbs);
    parts.collect::<Vec<_>>().join(" ")
}

fn format_option(arg: &Arg) -> String {
    let shown = escape_roff(&arg.to_string());
    let again = match arg.get_action() {
        ArgAction::Append => "...",
        _ => "",
    };
    match arg.is_required_set() {
        true => format!("{shown}{again}"),
        false => format!("[{shown}]{again}"),
    }
}

fn format_positionals(command: &Command) -> Vec<String> {
    let shown = command.get_positionals().map(|arg| arg.to_string());
    shown.map(|text| escape_roff(&text)).collect()
}

fn format_bold(text: &str) -> String {
    format!("\\fB{}\\fR", escape_roff(text))
}

fn escape_roff(text: &str) -> String {
    text.replace('\\', "\\\\").replace('-', "\\-")
}

#[cfg(test)]
mod man_tests {
    use super::*;

    #[test]
    fn a_synopsis_can_be_typed() {
        let dir = std::env::temp_dir().join(format!("lucce-man-{}", std::process::id()));
        assert!(write_manual(&dir).is_ok());
        let synopsis = |page: &str| {
            let text = fs::read_to_string(dir.join(page)).unwrap();
            let (_, behind) = text.split_once(".SH SYNOPSIS\n").unwrap();
            let text = behind.lines().next().unwrap_or_default();
            text.replace("\\fB", "")
                .replace("\\fR", "")
                .replace("\\-", "-")
        };
        let holders = synopsis("lucce-ctl-holders.1");
        assert!(
            holders.starts_with("lucce ctl <JVM> holders ["),
            "{holders}"
        );
        assert!(holders.contains("<ID>..."), "{holders}");
        let run = synopsis("lucce-run.1");
        assert!(run.contains("[--opt <KEY=VALUE>]..."), "{run}");
        assert!(run.ends_with("<COMMAND>..."), "{run}");
        assert!(synopsis("lucce.1").ends_with("<COMMAND>"));
        let _ = fs::remove_dir_all(dir);
    }
}
