//! `lucce fleet add`: runs into the dataset.

use std::path::PathBuf;

use crate::cli::{End, complain, plural};
use crate::error::Error;
use crate::ingest::{Added, Ingest, Labels, Report};

/// Adds runs to a dataset, which is made if the folder is not there. A run that the dataset has adds nothing, or what it counted since.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset's folder.
    dataset: PathBuf,
    /// The logs, as `out=` named them; a stream beside a log is added with it.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// What the program is called.
    #[arg(long)]
    service: String,
    /// Its version.
    #[arg(long, default_value = "")]
    version: String,
    /// Where it ran; %h: the name of this machine.
    #[arg(long, default_value = "")]
    host: String,
    /// Keep the programs' arguments; without it `*` stands for each.
    #[arg(long)]
    arguments: bool,
}

pub fn run(args: &Args) -> Result<End, Error> {
    if args.service.is_empty() {
        return Err(Error::Usage("--service: a name was expected".into()));
    }
    let labels = Labels {
        service: args.service.clone(),
        version: args.version.clone(),
        host: args.host.replace("%h", &host()?),
        arguments: args.arguments,
    };
    let mut sums = Sums::default();
    let mut ingest = Ingest::open(&args.dataset)?;
    ingest.add(&args.runs, &labels, &mut |report| sums.count(report))?;
    println!(
        "added {} ({} of logs), {} went on, {} there already, {} refused",
        plural(sums.new, "run"),
        plural(sums.bytes, "byte"),
        sums.more,
        sums.already,
        sums.refused
    );
    Ok(match sums.refused {
        0 => End::Fine,
        _ => End::Damaged,
    })
}

#[derive(Default)]
struct Sums {
    new: u64,
    more: u64,
    already: u64,
    refused: u64,
    bytes: u64,
}

impl Sums {
    fn count(&mut self, report: Report) {
        match report.added {
            Added::New => {
                self.new += 1;
                self.bytes += report.log_bytes;
            }
            Added::More => self.more += 1,
            Added::Already => self.already += 1,
            Added::Refused(reason) => {
                self.refused += 1;
                complain(format_args!("{}: refused: {reason}", report.path.display()));
            }
        }
    }
}

/// The name of this machine.
fn host() -> Result<String, Error> {
    let path = "/proc/sys/kernel/hostname";
    let name = std::fs::read_to_string(path).map_err(Error::of(path.as_ref()))?;
    Ok(name.trim().to_owned())
}
