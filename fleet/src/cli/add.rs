//! `lucce fleet add`: runs into the dataset.

use std::path::PathBuf;

use crate::cli::print_error;
use crate::error::FleetError;
use crate::ingest::{IngestLabels, IngestOutcome, IngestReport, RunIngester};
use crate::store::open_store;
use lucce_command::{CommandStatus, format_plural};

/// Add runs to a dataset, which is created if missing. A run that the dataset has adds nothing, or what it counted since.
#[derive(clap::Args)]
pub struct FleetAddArgs {
    /// Dataset: a folder, or s3://BUCKET/PREFIX or az://CONTAINER/PREFIX with access by the environment
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
    /// Logs to add; a stream beside a log is added with it
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Name of the program
    #[arg(long, value_name = "NAME")]
    service: String,
    /// Version of the program [default: none]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    version: String,
    /// Host that the runs were made on; %h: the name of this machine [default: none]
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    host: String,
    /// Keep the programs' arguments instead of `*`
    #[arg(long)]
    arguments: bool,
}

pub fn run(args: &FleetAddArgs) -> Result<CommandStatus, FleetError> {
    if args.service.is_empty() {
        return Err(FleetError::Usage("--service: a name was expected".into()));
    }
    let labels = IngestLabels {
        service: args.service.clone(),
        version: args.version.clone(),
        host: args.host.replace("%h", &host_name()?),
        arguments: args.arguments,
    };
    let mut sums = AddSummary::default();
    let mut ingest = RunIngester::open(&open_store(&args.dataset)?)?;
    ingest.add_runs(&args.runs, &labels, &mut |report| sums.count_report(report))?;
    println!(
        "added {} ({} of logs), {} went on, {} there already, {} refused",
        format_plural(sums.new, "run"),
        format_plural(sums.bytes, "byte"),
        sums.more,
        sums.already,
        sums.refused
    );
    Ok(match sums.refused {
        0 => CommandStatus::Fine,
        _ => CommandStatus::Damaged,
    })
}

#[derive(Default)]
struct AddSummary {
    new: u64,
    more: u64,
    already: u64,
    refused: u64,
    bytes: u64,
}

impl AddSummary {
    fn count_report(&mut self, report: IngestReport) {
        match report.outcome {
            IngestOutcome::New => {
                self.new += 1;
                self.bytes += report.log_bytes;
            }
            IngestOutcome::Extended => self.more += 1,
            IngestOutcome::Unchanged => self.already += 1,
            IngestOutcome::Refused(reason) => {
                self.refused += 1;
                print_error(format_args!("{}: refused: {reason}", report.path.display()));
            }
        }
    }
}

/// The name of this machine.
fn host_name() -> Result<String, FleetError> {
    let path = "/proc/sys/kernel/hostname";
    let name = std::fs::read_to_string(path).map_err(FleetError::for_path(path.as_ref()))?;
    Ok(name.trim().to_owned())
}
