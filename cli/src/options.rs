//! `lucce options`: the options of the agent, from their table.

use std::io::Write;

use lucce_options::{OPTION_TABLE, find_near_name, reference};

use super::output::lock_stdout;
use super::{CommandError, CommandStatus};

/// Print the options of the agent, or describe one of them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce options
  lucce options events")]
pub struct OptionsArgs {
    /// Option to describe [default: list all]
    #[arg(value_name = "NAME", conflicts_with = "markdown")]
    name: Option<String>,
    /// Print the page of the documents
    #[arg(long, hide = true)]
    markdown: bool,
}

pub fn run(args: &OptionsArgs) -> Result<CommandStatus, CommandError> {
    let text = match &args.name {
        None if args.markdown => reference::agent_options_page(),
        None => reference::option_list(None),
        Some(name) => {
            let details = reference::option_details(name);
            details.ok_or_else(|| unknown_option(name))?
        }
    };
    let mut out = lock_stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(CommandStatus::Fine)
}

fn unknown_option(name: &str) -> CommandError {
    let near = find_near_name(name, OPTION_TABLE.iter().map(|entry| entry.name));
    CommandError::Usage(match near {
        Some(near) => format!("unknown option '{name}', did you mean '{near}'?"),
        None => format!("unknown option '{name}': `lucce options` lists them"),
    })
}
