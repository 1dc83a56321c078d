//! `lucce completions`: what a shell completes, from the definition of the command line.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use super::output::stdout;
use super::{Cli, End, Failure};

/// Prints what makes a shell complete the commands and options of lucce
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce completions bash > ~/.local/share/bash-completion/completions/lucce
  lucce completions zsh > \"${fpath[1]}/_lucce\"
  lucce completions fish > ~/.config/fish/completions/lucce.fish")]
pub struct Args {
    shell: Shell,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lucce", &mut text);
    let mut out = stdout();
    out.write_all(&text)?;
    out.flush()?;
    Ok(End::Fine)
}
