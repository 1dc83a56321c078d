//! Writes to standard output or files, and formats JSON.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, StdoutLock, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub use lucce_command::{format_plural, grouped, percent_of};
use lucce_decoder::{escape, read_header};
use serde::Serialize;

use super::{CommandError, prefix_path, print_diagnostic};

pub fn lock_stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Writes to the file, or to standard output if none is named. Reports what was written to a file, with the text of
/// `what`.
pub fn write_output<T>(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    what: impl FnOnce(&T) -> String,
) -> Result<T, CommandError> {
    let Some(path) = path else {
        let mut out = lock_stdout();
        let written = write(&mut out)?;
        out.flush()?;
        return Ok(written);
    };
    refuse_lucce_file(path)?;
    let to_file = || {
        let mut out = BufWriter::new(File::create(path)?);
        let written = write(&mut out)?;
        out.flush()?;
        Ok(written)
    };
    let written = to_file().map_err(|e: io::Error| CommandError::Usage(prefix_path(path, e)))?;
    print_diagnostic(format_args!(
        "wrote {} to {}",
        what(&written),
        path.display()
    ));
    Ok(written)
}

/// Writes a chart into a folder, creating the folder if necessary (`--plot`).
pub fn write_chart(folder: &Path, name: &str, svg: &str) -> Result<(), CommandError> {
    let path = folder.join(name);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, svg));
    written
        .map_err(|e| CommandError::Usage(prefix_path(&path, format_args!("cannot write: {e}"))))?;
    print_diagnostic(format_args!("wrote {}", path.display()));
    Ok(())
}

/// Refuses to overwrite a file of lucce: a run's log cannot be made again.
pub fn refuse_lucce_file(target: &Path) -> Result<(), CommandError> {
    match target.is_file() && is_lucce_file(target) {
        true => Err(CommandError::Usage(prefix_path(
            target,
            "is there and is a file of lucce's own; name another one for the result",
        ))),
        false => Ok(()),
    }
}

/// The first bytes of logs, streams, symbols and recordings of calls.
const FILE_MAGIC_PREFIX: &[u8] = b"LUCCE";

/// Whether the file is a log, a stream, symbols or a recording of calls.
pub fn is_lucce_file(path: &Path) -> bool {
    let mut start = [0; FILE_MAGIC_PREFIX.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    // Packed logs have the magic bytes inside.
    read.is_ok_and(|()| start == FILE_MAGIC_PREFIX) || read_header(path).is_ok()
}

/// Options of files with the program's arguments: like the log, only their user can read them.
pub fn private_file_options() -> OpenOptions {
    let mut options = File::options();
    options.write(true).mode(0o600);
    options
}

/// Warns if other users can read a file with a secret.
pub fn warn_if_readable(file: Option<&Path>) {
    if let Some(file) = file.filter(|file| lucce_ship::is_world_readable(file)) {
        let text = "every user of this machine can read it; chmod 600 mends that";
        print_diagnostic(prefix_path(file, text));
    }
}

/// Writes one line of JSON.
pub fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    escape::write_escaped_json(out, value)?;
    writeln!(out)
}
