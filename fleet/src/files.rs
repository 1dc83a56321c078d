//! Files that are being written: staged on this disk until they are whole, then where they belong. No reader knows them before a
//! commit names them.

use std::fs::File;
use std::io::Write;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use crate::commits::DatasetFile;
use crate::error::FleetError;
use crate::layout::{DatasetPartition, DatasetTable};
use crate::store::{LocalFile, SharedStore, unique_name};

/// As many rows share the dictionaries of a row group.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// Ids of as many rows have room in a dictionary: they are 36 bytes each there.
pub(crate) const DICTIONARY_BYTES: usize = 64 << 20;

/// A file that is being written.
pub struct FileTarget {
    store: SharedStore,
    staged: LocalFile,
    file: File,
    entry: DatasetFile,
}

impl FileTarget {
    /// # Errors
    /// The staged file cannot be made.
    pub fn new(
        store: &SharedStore,
        table: DatasetTable,
        part: Option<DatasetPartition>,
        run: Option<String>,
    ) -> Result<FileTarget, FleetError> {
        let id = unique_name();
        let extension = match table {
            DatasetTable::Symbols => "lsym",
            _ => "parquet",
        };
        let (staged, file) = store.create_staged(extension)?;
        Ok(FileTarget {
            store: SharedStore::clone(store),
            staged,
            file,
            entry: DatasetFile {
                table,
                path: format!("{}/{id}.{extension}", table.folder_path(part.as_ref())),
                rows: 0,
                bytes: 0,
                part,
                run,
            },
        })
    }

    /// # Errors
    /// It cannot be made.
    pub fn open_table_writer(self) -> Result<TableFileWriter, FleetError> {
        let FileTarget {
            store,
            staged,
            file,
            entry,
        } = self;
        let properties = writer_properties(entry.table);
        let writer = ArrowWriter::try_new(file, entry.table.schema(), Some(properties))?;
        Ok(TableFileWriter {
            store,
            staged,
            entry,
            writer,
            max_group_bytes: usize::MAX,
        })
    }

    /// Bytes that are no table.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_bytes(mut self, bytes: &[u8]) -> Result<DatasetFile, FleetError> {
        let written = self.file.write_all(bytes);
        let written = written.and_then(|()| self.file.sync_all());
        written.map_err(FleetError::for_path(self.staged.path()))?;
        self.entry.bytes = bytes.len() as u64;
        self.store.publish_file(self.staged, &self.entry.path)?;
        Ok(self.entry)
    }
}

/// A file of a table.
pub struct TableFileWriter {
    store: SharedStore,
    staged: LocalFile,
    entry: DatasetFile,
    writer: ArrowWriter<File>,
    /// Bytes of a row group in memory.
    max_group_bytes: usize,
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
        self.entry.rows += batch.num_rows() as u64;
        self.writer.write(batch)?;
        if self.writer.memory_size() > self.max_group_bytes {
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Rows so far.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.entry.rows
    }

    /// Leaves the file staged: no commit will name it. Without this and [`finish`](Self::finish) it is gone.
    ///
    /// # Errors
    /// The rest cannot be written.
    pub fn keep_staged(self) -> Result<LocalFile, FleetError> {
        self.writer.close()?;
        Ok(self.staged)
    }

    /// Publishes the file. Its folders are synced by the commit that names it.
    ///
    /// # Errors
    /// The rest cannot be written.
    pub fn finish(self) -> Result<DatasetFile, FleetError> {
        let TableFileWriter {
            store,
            staged,
            mut entry,
            writer,
            ..
        } = self;
        let file = writer.into_inner()?;
        let synced = file.sync_all().and_then(|()| file.metadata());
        entry.bytes = synced.map_err(FleetError::for_path(staged.path()))?.len();
        store.publish_file(staged, &entry.path)?;
        Ok(entry)
    }
}

/// One file of one batch; none of no rows.
///
/// # Errors
/// It cannot be written.
pub fn write_table(
    store: &SharedStore,
    table: DatasetTable,
    part: Option<&DatasetPartition>,
    run: Option<&str>,
    batch: &RecordBatch,
) -> Result<Option<DatasetFile>, FleetError> {
    if batch.num_rows() == 0 {
        return Ok(None);
    }
    let target = FileTarget::new(store, table, part.cloned(), run.map(str::to_owned))?;
    let mut rows = target.open_table_writer()?;
    rows.write_batch(batch)?;
    rows.finish().map(Some)
}

/// Takes files back that no commit has named.
pub fn discard_files(store: &SharedStore, entries: &[DatasetFile]) {
    for entry in entries {
        // What stays is found and removed by `compact`.
        let _ = store.remove_file(&entry.path);
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
