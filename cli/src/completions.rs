//! `lucce completions`: writes shell completions, from the definition of the command line.

use std::io::Write;

use clap_complete::Shell;

use super::output::lock_stdout;
use super::{CommandError, CommandStatus};

/// Print a shell's completion script for lucce.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce completions bash > ~/.local/share/bash-completion/completions/lucce
  lucce completions zsh > \"${fpath[1]}/_lucce\"
  lucce completions fish > ~/.config/fish/completions/lucce.fish")]
pub struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs) -> Result<CommandStatus, CommandError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "lucce", &mut text);
    let mut out = lock_stdout();
    out.write_all(&text)?;
    out.flush()?;
    Ok(CommandStatus::Fine)
}
