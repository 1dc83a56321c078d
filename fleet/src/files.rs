//! Files that are being written: below `temporary/` until they are whole, then where they belong. No reader knows them before a
//! commit names them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use crate::commits::{Entry, unique};
use crate::error::Error;
use crate::layout::{Part, TEMPORARY, Table, file};

/// As many rows share the dictionaries of a row group.
const GROUP: usize = 1 << 20;
/// Ids of as many rows have room in a dictionary: they are 36 bytes each there.
pub(crate) const DICTIONARY: usize = 64 << 20;

/// A file that is being written.
pub struct Target {
    dataset: PathBuf,
    staged: PathBuf,
    entry: Entry,
}

impl Target {
    /// # Errors
    /// The folder cannot be made.
    pub fn new(
        dataset: &Path,
        table: Table,
        part: Option<Part>,
        run: Option<String>,
    ) -> Result<Target, Error> {
        let id = unique();
        let extension = match table {
            Table::Symbols => "lsym",
            _ => "parquet",
        };
        let temporary = dataset.join(TEMPORARY);
        fs::create_dir_all(&temporary).map_err(Error::of(&temporary))?;
        Ok(Target {
            staged: temporary.join(format!("{id}.{extension}")),
            entry: Entry {
                table,
                path: format!("{}/{id}.{extension}", table.folder(part.as_ref())),
                rows: 0,
                bytes: 0,
                part,
                run,
            },
            dataset: dataset.to_owned(),
        })
    }

    /// # Errors
    /// It cannot be made.
    pub fn rows(self) -> Result<Rows, Error> {
        let file = File::create_new(&self.staged).map_err(Error::of(&self.staged))?;
        let properties = properties(self.entry.table);
        let writer = ArrowWriter::try_new(file, self.entry.table.schema(), Some(properties))?;
        Ok(Rows {
            target: self,
            writer,
            most: usize::MAX,
        })
    }

    /// Bytes that are no table.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn bytes(mut self, bytes: &[u8]) -> Result<Entry, Error> {
        let written = File::create_new(&self.staged).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(Error::of(&self.staged))?;
        self.entry.bytes = bytes.len() as u64;
        self.placed()
    }

    /// Its folders are synced by the commit that names it.
    fn placed(self) -> Result<Entry, Error> {
        let path = file(&self.dataset, &self.entry.path);
        let folder = path.parent().unwrap_or(&self.dataset);
        fs::create_dir_all(folder).map_err(Error::of(folder))?;
        fs::rename(&self.staged, &path).map_err(Error::of(&path))?;
        Ok(self.entry)
    }
}

/// A file of a table.
pub struct Rows {
    target: Target,
    writer: ArrowWriter<File>,
    /// Bytes of a row group in memory.
    most: usize,
}

/// A file below `temporary/` that is whole. It is removed when its last owner lets it go; after a crash `compact` removes it.
pub struct Staged(PathBuf);

impl Staged {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What stays is found and removed by `compact`.
        let _ = fs::remove_file(&self.0);
    }
}

impl Rows {
    /// Row groups end sooner if more than so many bytes would be in memory.
    #[must_use]
    pub fn bounded(self, bytes: usize) -> Rows {
        Rows {
            most: bytes,
            ..self
        }
    }

    /// # Errors
    /// They cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.target.entry.rows += batch.num_rows() as u64;
        self.writer.write(batch)?;
        if self.writer.memory_size() > self.most {
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Rows so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.target.entry.rows
    }

    /// Takes it back.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn abandon(self) -> Result<(), Error> {
        let staged = &self.target.staged;
        fs::remove_file(staged).map_err(Error::of(staged))
    }

    /// Leaves the file below `temporary/`: no commit will name it.
    ///
    /// # Errors
    /// The rest cannot be written.
    pub fn stay(self) -> Result<Staged, Error> {
        let staged = Staged(self.target.staged);
        self.writer.close()?;
        Ok(staged)
    }

    /// # Errors
    /// The rest cannot be written.
    pub fn finish(self) -> Result<Entry, Error> {
        let Rows {
            mut target, writer, ..
        } = self;
        let file = writer.into_inner()?;
        let synced = file.sync_all().and_then(|()| file.metadata());
        target.entry.bytes = synced.map_err(Error::of(&target.staged))?.len();
        target.placed()
    }
}

/// One file of one batch; none of no rows.
///
/// # Errors
/// It cannot be written.
pub fn write(
    dataset: &Path,
    table: Table,
    part: Option<&Part>,
    run: Option<&str>,
    batch: &RecordBatch,
) -> Result<Option<Entry>, Error> {
    if batch.num_rows() == 0 {
        return Ok(None);
    }
    let target = Target::new(dataset, table, part.cloned(), run.map(str::to_owned))?;
    let mut rows = target.rows()?;
    rows.write(batch)?;
    rows.finish().map(Some)
}

/// Takes files back that no commit has named.
pub fn discard(dataset: &Path, entries: &[Entry]) {
    for entry in entries {
        // What stays is found and removed by `compact`.
        let _ = fs::remove_file(file(dataset, &entry.path));
    }
}

fn properties(table: Table) -> WriterProperties {
    let zstd = ZstdLevel::try_new(3).map_or(Compression::UNCOMPRESSED, Compression::ZSTD);
    let mut properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_max_row_group_row_count(Some(GROUP))
        .set_dictionary_page_size_limit(DICTIONARY)
        .set_created_by(format!("lucce-fleet {}", env!("CARGO_PKG_VERSION")));
    let rising: &[&str] = match table {
        Table::Numbers => &["number"],
        Table::Stream => &["time_ns"],
        _ => &[],
    };
    // No value comes twice there.
    let unique: &[&str] = match table {
        Table::Stacks => &["stack_id"],
        Table::Frames => &["frame_id"],
        _ => &[],
    };
    for name in rising {
        let path = ColumnPath::from(*name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    for name in unique {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(*name), false);
    }
    properties.build()
}
