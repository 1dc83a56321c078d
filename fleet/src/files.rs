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

use crate::commits::{DatasetFile, unique_name};
use crate::error::FleetError;
use crate::layout::{DatasetPartition, DatasetTable, TEMPORARY, resolve_path};

/// As many rows share the dictionaries of a row group.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// Ids of as many rows have room in a dictionary: they are 36 bytes each there.
pub(crate) const DICTIONARY_BYTES: usize = 64 << 20;

/// A file that is being written.
pub struct FileTarget {
    dataset: PathBuf,
    staged: PathBuf,
    entry: DatasetFile,
}

impl FileTarget {
    /// # Errors
    /// The folder cannot be made.
    pub fn new(
        dataset: &Path,
        table: DatasetTable,
        part: Option<DatasetPartition>,
        run: Option<String>,
    ) -> Result<FileTarget, FleetError> {
        let id = unique_name();
        let extension = match table {
            DatasetTable::Symbols => "lsym",
            _ => "parquet",
        };
        let temporary = dataset.join(TEMPORARY);
        fs::create_dir_all(&temporary).map_err(FleetError::for_path(&temporary))?;
        Ok(FileTarget {
            staged: temporary.join(format!("{id}.{extension}")),
            entry: DatasetFile {
                table,
                path: format!("{}/{id}.{extension}", table.folder_path(part.as_ref())),
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
    pub fn open_table_writer(self) -> Result<TableFileWriter, FleetError> {
        let file = File::create_new(&self.staged).map_err(FleetError::for_path(&self.staged))?;
        let properties = writer_properties(self.entry.table);
        let writer = ArrowWriter::try_new(file, self.entry.table.schema(), Some(properties))?;
        Ok(TableFileWriter {
            target: self,
            writer,
            max_group_bytes: usize::MAX,
        })
    }

    /// Bytes that are no table.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_bytes(mut self, bytes: &[u8]) -> Result<DatasetFile, FleetError> {
        let written = File::create_new(&self.staged).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(FleetError::for_path(&self.staged))?;
        self.entry.bytes = bytes.len() as u64;
        self.move_into_place()
    }

    /// Its folders are synced by the commit that names it.
    fn move_into_place(self) -> Result<DatasetFile, FleetError> {
        let path = resolve_path(&self.dataset, &self.entry.path);
        let folder = path.parent().unwrap_or(&self.dataset);
        fs::create_dir_all(folder).map_err(FleetError::for_path(folder))?;
        fs::rename(&self.staged, &path).map_err(FleetError::for_path(&path))?;
        Ok(self.entry)
    }
}

/// A file of a table.
pub struct TableFileWriter {
    target: FileTarget,
    writer: ArrowWriter<File>,
    /// Bytes of a row group in memory.
    max_group_bytes: usize,
}

/// A file below `temporary/` that is whole. It is removed when its last owner lets it go; after a crash `compact` removes it.
pub struct StagedTableFile(PathBuf);

impl StagedTableFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StagedTableFile {
    fn drop(&mut self) {
        // What stays is found and removed by `compact`.
        let _ = fs::remove_file(&self.0);
    }
}

impl TableFileWriter {
    /// Row groups end sooner if more than so many bytes would be in memory.
    #[must_use]
    pub fn with_memory_limit(self, bytes: usize) -> TableFileWriter {
        TableFileWriter {
            max_group_bytes: bytes,
            ..self
        }
    }

    /// # Errors
    /// They cannot be written.
    pub fn write_batch(&mut self, batch: &RecordBatch) -> Result<(), FleetError> {
        self.target.entry.rows += batch.num_rows() as u64;
        self.writer.write(batch)?;
        if self.writer.memory_size() > self.max_group_bytes {
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Rows so far.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.target.entry.rows
    }

    /// Takes it back.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove_file(self) -> Result<(), FleetError> {
        let staged = &self.target.staged;
        fs::remove_file(staged).map_err(FleetError::for_path(staged))
    }

    /// Leaves the file below `temporary/`: no commit will name it.
    ///
    /// # Errors
    /// The rest cannot be written.
    pub fn keep_staged(self) -> Result<StagedTableFile, FleetError> {
        let staged = StagedTableFile(self.target.staged);
        self.writer.close()?;
        Ok(staged)
    }

    /// # Errors
    /// The rest cannot be written.
    pub fn finish(self) -> Result<DatasetFile, FleetError> {
        let TableFileWriter {
            mut target, writer, ..
        } = self;
        let file = writer.into_inner()?;
        let synced = file.sync_all().and_then(|()| file.metadata());
        target.entry.bytes = synced.map_err(FleetError::for_path(&target.staged))?.len();
        target.move_into_place()
    }
}

/// One file of one batch; none of no rows.
///
/// # Errors
/// It cannot be written.
pub fn write_table(
    dataset: &Path,
    table: DatasetTable,
    part: Option<&DatasetPartition>,
    run: Option<&str>,
    batch: &RecordBatch,
) -> Result<Option<DatasetFile>, FleetError> {
    if batch.num_rows() == 0 {
        return Ok(None);
    }
    let target = FileTarget::new(dataset, table, part.cloned(), run.map(str::to_owned))?;
    let mut rows = target.open_table_writer()?;
    rows.write_batch(batch)?;
    rows.finish().map(Some)
}

/// Takes files back that no commit has named.
pub fn discard_files(dataset: &Path, entries: &[DatasetFile]) {
    for entry in entries {
        // What stays is found and removed by `compact`.
        let _ = fs::remove_file(resolve_path(dataset, &entry.path));
    }
}

fn writer_properties(table: DatasetTable) -> WriterProperties {
    let zstd = ZstdLevel::try_new(3).map_or(Compression::UNCOMPRESSED, Compression::ZSTD);
    let mut properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_created_by(format!("lucce-fleet {}", env!("CARGO_PKG_VERSION")));
    let rising: &[&str] = match table {
        DatasetTable::Numbers => &["number"],
        DatasetTable::Stream => &["time_ns"],
        _ => &[],
    };
    // No value comes twice there.
    let unique: &[&str] = match table {
        DatasetTable::Stacks => &["stack_id"],
        DatasetTable::Frames => &["frame_id"],
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
