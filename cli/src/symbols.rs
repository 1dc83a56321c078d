//! `lucce symbols`: writes a run's symbols, for an archive.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use lucce_decoder::LogSource;

use super::output::{format_plural, private_file_options};
use super::{CommandError, CommandStatus, prefix_path, print_diagnostic, report_damage};

/// Write a run's symbols: the part of its log that decodes numbers, packed, without counters.
#[derive(clap::Args)]
#[command(
    long_about = "Writes a run's symbols: the part of its log that decodes numbers, packed, without counters.

The file is small; decode and annotate take it in place of the log. Commands that show counts need the log.
All commands also read logs that were packed with gzip.",
    after_help = "Example:
  lucce symbols run-1234.lucce -o run-1234.lsym
  lucce annotate app.log run-1234.lsym"
)]
pub struct SymbolsArgs {
    /// Log of the run
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write to this file [default: the log's name with .lsym, if there is no such file]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Keep the program's arguments instead of `*`
    #[arg(long)]
    arguments: bool,
}

pub fn run(args: &SymbolsArgs) -> Result<CommandStatus, CommandError> {
    let source = LogSource::open(&args.file);
    let source = source.map_err(|e| CommandError::Open(args.file.clone(), e))?;
    let path = match &args.out {
        Some(path) => path.clone(),
        None => args.file.with_extension("lsym"),
    };
    let failed = |e| CommandError::Usage(prefix_path(&path, e));
    if is_same_file(&path, &args.file) {
        let message = "the log itself, which stays as it is; give another name with -o";
        return Err(CommandError::Usage(prefix_path(&path, message)));
    }
    let mut options = private_file_options();
    match &args.out {
        Some(_) => options.create(true).truncate(true),
        None => options.create_new(true),
    };
    let opened = options.open(&path).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => {
            let message = "is there already; -o names another file, or replaces this one";
            CommandError::Usage(prefix_path(&path, message))
        }
        _ => failed(e),
    });
    let mut out = BufWriter::new(opened?);
    let written = source.write_symbols(&mut out, args.arguments);
    let extract = written.and_then(|extract| out.flush().map(|()| extract));
    let extract = extract.map_err(failed)?;
    print_diagnostic(format_args!(
        "wrote {} to {}; the log has {}",
        format_plural(extract.packed, "byte"),
        path.display(),
        format_plural(source.log_size(), "byte")
    ));
    Ok(report_damage(
        &args.file,
        extract.damage.as_ref(),
        CommandStatus::Fine,
    ))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|path| Some(path) == real(other))
}
