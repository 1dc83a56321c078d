//! `lucce man`: manual pages, from the definition of the command line.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::{Cli, End, Failure, about};

/// Writes the manual pages of all commands into a folder, which is made if it is not there
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce man ~/.local/share/man/man1
  man lucce-report")]
pub struct Args {
    folder: PathBuf,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let mut command = Cli::command()
        .disable_help_subcommand(true)
        // The page has the version in its foot.
        .long_version(None);
    command.build();
    let written = fs::create_dir_all(&args.folder).and_then(|()| pages(&command, &args.folder));
    match written {
        Ok(()) => Ok(End::Fine),
        Err(e) => Err(Failure::Usage(about(&args.folder, e))),
    }
}

/// The command's page, and those of its own commands.
fn pages(command: &Command, folder: &Path) -> io::Result<()> {
    command
        .get_subcommands()
        .try_for_each(|own| pages(own, folder))?;
    let page = Man::new(command.clone())
        .source(concat!("lucce ", env!("CARGO_PKG_VERSION")))
        .manual("lucce");
    let mut text = Vec::new();
    page.render(&mut text)?;
    // What stands below a command's options is its examples, and below all commands how they end.
    let heading = match command.get_name() {
        "lucce" => ".SH \"EXIT STATUS\"\n",
        _ => ".SH EXAMPLES\n",
    };
    let text = String::from_utf8_lossy(&text).replace(".SH EXTRA\n", heading);
    fs::write(folder.join(page.get_filename()), text)
}
