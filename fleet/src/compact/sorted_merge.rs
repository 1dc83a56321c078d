//! Rows of many files in one order, of which only some are in memory.
//!
//! ```text
//! file in order ───────────────────────────► batch ─┐
//! file in order ───────────────────────────► batch ─┼─► the least row of all, again and again ─► batches in order
//! file that is not ─► pieces, each sorted ─► batch ─┘
//! ```
//! Writers of the dataset sort their rows, so that files only have to be merged. No commit says that a file is in order: each
//! row is compared with the one before it. How many files are open at a time depends on what their readers hold, which their
//! metadata tells; if there are more files, the smallest become one file below `temporary/` first.

use std::path::{Path, PathBuf};

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::compute::{SortOptions, cast, interleave_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{Row, RowConverter, Rows as Keys, SortField};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use crate::engine::QueryLimits;
use crate::error::FleetError;
use crate::files::{DICTIONARY_BYTES, FileTarget, TableFileWriter};
use crate::layout::DatasetTable;
use crate::store::{LocalFile, SharedStore};

/// Files that are open at a time: a process may have 1024, and other things need some.
const MAX_OPEN_FILES: usize = 100;
/// A row in a batch, with its sort key, has about as many bytes; rows of `runs` have more, and there are few of them.
const ROW_BYTES: usize = 512;
/// A page of a file has about as many bytes at most.
const PAGE_BYTES: usize = 1 << 20;

/// What it takes to unpack a column.
const UNPACK_BYTES: usize = 160 << 10;

/// What may be in memory while files are merged.
#[derive(Clone, Copy, Debug)]
pub struct MergeMemory {
    /// Bytes of all readers together.
    pub readers: usize,
    /// Bytes of the row group that is being written.
    pub writer: usize,
    /// Bytes of rows that are sorted at a time.
    pub piece: usize,
    /// Rows of a batch.
    pub batch: usize,
}

impl MergeMemory {
    /// Readers have one half, what is written an eighth; the rest is for what is not counted: the program, and what the
    /// allocator keeps.
    #[must_use]
    pub fn from_limits(limits: &QueryLimits) -> MergeMemory {
        let memory = limits.memory.unwrap_or(1 << 30);
        MergeMemory {
            readers: memory / 2,
            writer: (memory / 8).max(4 << 20),
            piece: (memory / 8).max(1 << 20),
            batch: (memory >> 17).clamp(256, 8192),
        }
    }
}

/// What is done with the rows of a batch as soon as they are read. It must keep them in the order of the plan.
pub type BatchTransform<'c> = dyn Fn(RecordBatch) -> Result<RecordBatch, FleetError> + 'c;

/// Takes batches in order. What was taken in vain goes when the sink is dropped.
pub trait BatchSink: Sized {
    /// # Errors
    /// They cannot be written.
    fn accept_batch(&mut self, batch: &RecordBatch) -> Result<(), FleetError>;
}

impl BatchSink for TableFileWriter {
    fn accept_batch(&mut self, batch: &RecordBatch) -> Result<(), FleetError> {
        self.write_batch(batch)
    }
}

/// Which rows are wanted, and in which order.
pub struct MergePlan<'p> {
    store: &'p SharedStore,
    table: DatasetTable,
    memory: MergeMemory,
    schema: SchemaRef,
    key: Vec<usize>,
    converter: RowConverter,
    change: &'p BatchTransform<'p>,
}

/// Why a merge has stopped.
enum MergeStop {
    /// A row is less than the one before it in its file.
    OutOfOrder,
    Failed(FleetError),
}

impl<E: Into<FleetError>> From<E> for MergeStop {
    fn from(error: E) -> MergeStop {
        MergeStop::Failed(error.into())
    }
}

/// A file to be merged.
struct MergeInput {
    /// It is removed when it has been merged, if it is a staged file or a copy.
    file: LocalFile,
    bytes: u64,
    /// What its reader holds.
    reader_bytes: usize,
    is_in_order: bool,
}

/// A file that is being read.
struct MergeSource {
    name: PathBuf,
    reader: ParquetRecordBatchReader,
    /// Of the batch that it is at.
    keys: Keys,
    /// The next row of that batch.
    at: usize,
}

impl<'p> MergePlan<'p> {
    /// `key`: the columns of the order, the first one decides first.
    ///
    /// # Errors
    /// The table has no such column.
    pub fn new(
        store: &'p SharedStore,
        table: DatasetTable,
        key: &[&str],
        room: MergeMemory,
        change: &'p BatchTransform<'p>,
    ) -> Result<MergePlan<'p>, FleetError> {
        let schema = table.schema();
        let key: Result<Vec<_>, _> = key.iter().map(|name| schema.index_of(name)).collect();
        let key = key?;
        let converter = key_converter(&schema, &key)?;
        Ok(MergePlan {
            store,
            table,
            memory: room,
            schema,
            key,
            converter,
            change,
        })
    }

    /// The rows as the order compares them.
    ///
    /// # Errors
    /// Never: the columns are those of the table.
    pub fn sort_keys(&self, batch: &RecordBatch) -> Result<Keys, FleetError> {
        Ok(self
            .converter
            .convert_columns(&select_columns(batch, &self.key))?)
    }

    /// Hands all rows of the files over in order. `start`: what takes them; a second one is made if a file turns out to be out of
    /// order, and the first one is abandoned.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn merge_files<S: BatchSink>(
        &self,
        paths: impl IntoIterator<Item = impl AsRef<str>>,
        start: impl Fn() -> Result<S, FleetError>,
    ) -> Result<S, FleetError> {
        let inputs = paths
            .into_iter()
            .map(|path| self.open_input(self.store.fetch_file(path.as_ref())?));
        self.merge_inputs(inputs.collect::<Result<_, _>>()?, start)
    }

    /// As [`merge_files`](Self::merge_files), of a file that is no part of the dataset.
    ///
    /// # Errors
    /// As of `merge_files`.
    pub fn merge_staged<S: BatchSink>(
        &self,
        staged: LocalFile,
        start: impl Fn() -> Result<S, FleetError>,
    ) -> Result<S, FleetError> {
        self.merge_inputs(vec![self.open_input(staged)?], start)
    }

    fn merge_inputs<S: BatchSink>(
        &self,
        mut inputs: Vec<MergeInput>,
        start: impl Fn() -> Result<S, FleetError>,
    ) -> Result<S, FleetError> {
        loop {
            // Small files are written twice rather than large ones.
            inputs.sort_by_key(|input| input.bytes);
            let many = self.group_size(&inputs);
            let is_last = many == inputs.len();
            let group: Vec<MergeInput> = inputs.drain(..many).collect();
            let merged = match is_last {
                true => match self.try_merge(&group, start()?)? {
                    Some(sink) => return Ok(sink),
                    None => None,
                },
                false => match self.try_merge(&group, self.create_staged()?)? {
                    Some(rows) => Some(rows.keep_staged()?),
                    None => None,
                },
            };
            match merged {
                Some(staged) => inputs.push(MergeInput {
                    is_in_order: true,
                    ..self.open_input(staged)?
                }),
                None => {
                    for input in group {
                        self.push_in_order(input, &mut inputs)?;
                    }
                }
            }
        }
    }

    fn open_input(&self, file: LocalFile) -> Result<MergeInput, FleetError> {
        let opened = file.open()?;
        let metadata = opened.metadata();
        let bytes = metadata.map_err(FleetError::for_path(file.name()))?.len();
        let builder = ParquetRecordBatchReaderBuilder::try_new(opened);
        let builder = builder.map_err(|e| damaged_file(file.name(), &e))?;
        Ok(MergeInput {
            reader_bytes: reader_bytes(builder.metadata(), self.batch_rows()),
            file,
            bytes,
            is_in_order: false,
        })
    }

    /// Rows of `runs` have whole command lines.
    fn batch_rows(&self) -> usize {
        match self.table {
            DatasetTable::Runs => 256,
            _ => self.memory.batch,
        }
    }

    /// How many of the files, which are sorted by size, are merged next: all of them if there is room.
    fn group_size(&self, inputs: &[MergeInput]) -> usize {
        let mut sum = 0_usize;
        let has_room = inputs.iter().take_while(|input| {
            sum = sum.saturating_add(input.reader_bytes);
            sum <= self.memory.readers
        });
        let fit = has_room.count();
        // Two at least, or there is no end. If only their number is too large, no more than have to be.
        let wanted = match fit == inputs.len() {
            true if fit <= MAX_OPEN_FILES => fit,
            true => (fit - MAX_OPEN_FILES + 1).min(MAX_OPEN_FILES),
            false => fit.min(MAX_OPEN_FILES),
        };
        wanted.max(2).min(inputs.len())
    }

    /// A file of rows that go on to another one.
    fn create_staged(&self) -> Result<TableFileWriter, FleetError> {
        let target = FileTarget::new(self.store, self.table, None, None)?;
        Ok(target
            .open_table_writer()?
            .with_memory_limit(self.memory.writer))
    }

    /// `None`: a file is out of order.
    fn try_merge<S: BatchSink>(
        &self,
        group: &[MergeInput],
        mut sink: S,
    ) -> Result<Option<S>, FleetError> {
        match self.merge_group(group, &mut sink) {
            Ok(()) => Ok(Some(sink)),
            Err(MergeStop::OutOfOrder) => Ok(None),
            Err(MergeStop::Failed(error)) => Err(error),
        }
    }

    fn open_source(&self, file: &LocalFile) -> Result<MergeSource, FleetError> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file.open()?)
            .and_then(|builder| builder.with_batch_size(self.batch_rows()).build());
        Ok(MergeSource {
            name: file.name().to_owned(),
            reader: reader.map_err(|e| damaged_file(file.name(), &e))?,
            keys: self.converter.empty_rows(0, 0),
            at: 0,
        })
    }

    fn merge_group(
        &self,
        group: &[MergeInput],
        sink: &mut impl BatchSink,
    ) -> Result<(), MergeStop> {
        // Where each file is now, by its place in the group.
        let mut batches = vec![RecordBatch::new_empty(self.schema.clone()); group.len()];
        // Those that have rows, the least one last. A box is moved faster than what is in it.
        let mut waiting: Vec<(usize, Box<MergeSource>)> = Vec::with_capacity(group.len());
        for (number, (input, batch)) in group.iter().zip(&mut batches).enumerate() {
            let mut source = Box::new(self.open_source(&input.file)?);
            if let Some(first) = source.advance_batch(self)? {
                *batch = first;
                insert_waiting(&mut waiting, number, source);
            }
        }
        let most = self.batch_rows();
        let mut picked: Vec<(usize, usize)> = Vec::with_capacity(most);
        while let Some((number, mut source)) = waiting.pop() {
            let end = source.keys.num_rows();
            let next = waiting.last().map(|(_, next)| next.current_key());
            loop {
                picked.push((number, source.at));
                source.at += 1;
                let is_over = source.at == end || picked.len() >= most;
                if is_over || next.is_some_and(|next| source.current_key() > next) {
                    break;
                }
            }
            // Rows that were picked are of batches that are here now.
            if source.at == end || picked.len() >= most {
                sink.accept_batch(&gather_rows(&batches, &picked)?)?;
                picked.clear();
            }
            if source.at == end {
                let (Some(batch), Some(new)) =
                    (batches.get_mut(number), source.advance_batch(self)?)
                else {
                    continue;
                };
                *batch = new;
            }
            insert_waiting(&mut waiting, number, source);
        }
        Ok(())
    }

    /// The file if it is in order; if not, its rows as files that are.
    fn push_in_order(
        &self,
        mut input: MergeInput,
        inputs: &mut Vec<MergeInput>,
    ) -> Result<(), FleetError> {
        if !input.is_in_order {
            input.is_in_order = self.is_in_order(&input.file)?;
        }
        match input.is_in_order {
            true => inputs.push(input),
            false => self.write_sorted_pieces(&input.file, inputs)?,
        }
        Ok(())
    }

    fn is_in_order(&self, file: &LocalFile) -> Result<bool, FleetError> {
        let mut source = self.open_source(file)?;
        loop {
            match source.advance_batch(self) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(true),
                Err(MergeStop::OutOfOrder) => return Ok(false),
                Err(MergeStop::Failed(error)) => return Err(error),
            }
        }
    }

    fn write_sorted_pieces(
        &self,
        file: &LocalFile,
        inputs: &mut Vec<MergeInput>,
    ) -> Result<(), FleetError> {
        let mut source = self.open_source(file)?;
        let (mut batches, mut size) = (Vec::new(), 0);
        loop {
            let batch = source.read_batch(self)?;
            let is_end = batch.is_none();
            if let Some(batch) = batch {
                let keys = self.sort_keys(&batch)?;
                size += batch.get_array_memory_size() + keys.size();
                batches.push((batch, keys));
            }
            if !batches.is_empty() && (is_end || size >= self.memory.piece) {
                let staged = self.write_sorted_piece(&batches)?;
                inputs.push(MergeInput {
                    is_in_order: true,
                    ..self.open_input(staged)?
                });
                batches.clear();
                size = 0;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    fn write_sorted_piece(&self, batches: &[(RecordBatch, Keys)]) -> Result<LocalFile, FleetError> {
        let mut order: Vec<(Row<'_>, (usize, usize))> = Vec::new();
        for (number, (_, keys)) in batches.iter().enumerate() {
            let places = (0..).map(|at| (number, at));
            order.extend(keys.iter().zip(places));
        }
        order.sort_unstable();
        let of: Vec<&RecordBatch> = batches.iter().map(|(batch, _)| batch).collect();
        let mut rows = self.create_staged()?;
        for some in order.chunks(self.batch_rows()) {
            let some: Vec<_> = some.iter().map(|(_, place)| *place).collect();
            rows.write_batch(&interleave_record_batch(&of, &some)?)?;
        }
        rows.keep_staged()
    }

    /// The columns of the table, of a file that may be of an earlier version.
    fn to_current_schema(
        &self,
        path: &Path,
        batch: &RecordBatch,
    ) -> Result<RecordBatch, FleetError> {
        let column = |field: &arrow::datatypes::FieldRef| match batch.column_by_name(field.name()) {
            Some(column) if column.data_type() == field.data_type() => Ok(column.clone()),
            Some(column) => Ok(cast(column, field.data_type())?),
            None if field.is_nullable() => Ok(new_null_array(field.data_type(), batch.num_rows())),
            None => {
                let what = format!("damaged: it has no column {}", field.name());
                Err(FleetError::Dataset(path.to_owned(), what))
            }
        };
        let columns: Result<Vec<_>, _> = self.schema.fields().iter().map(column).collect();
        Ok(RecordBatch::try_new(self.schema.clone(), columns?)?)
    }
}

impl MergeSource {
    fn current_key(&self) -> Row<'_> {
        self.keys.row(self.at)
    }

    /// The next rows, if there are any.
    fn read_batch(&mut self, plan: &MergePlan<'_>) -> Result<Option<RecordBatch>, FleetError> {
        for batch in self.reader.by_ref() {
            let batch = batch.map_err(|e| damaged_file(&self.name, &e))?;
            let batch = (plan.change)(plan.to_current_schema(&self.name, &batch)?)?;
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// To the next batch, if there is one.
    fn advance_batch(&mut self, plan: &MergePlan<'_>) -> Result<Option<RecordBatch>, MergeStop> {
        let Some(batch) = self.read_batch(plan)? else {
            return Ok(None);
        };
        let keys = plan.sort_keys(&batch)?;
        let last = self.keys.num_rows().checked_sub(1);
        let before = last.map(|last| self.keys.row(last));
        if !before.into_iter().chain(keys.iter()).is_sorted() {
            return Err(MergeStop::OutOfOrder);
        }
        (self.keys, self.at) = (keys, 0);
        Ok(Some(batch))
    }
}

/// Compares rows by these columns; missing values come last, as SQL has it.
///
/// # Errors
/// A column is of a type that has no order.
pub fn key_converter(schema: &SchemaRef, columns: &[usize]) -> Result<RowConverter, FleetError> {
    let options = SortOptions {
        descending: false,
        nulls_first: false,
    };
    let field =
        |at: &usize| SortField::new_with_options(schema.field(*at).data_type().clone(), options);
    Ok(RowConverter::new(columns.iter().map(field).collect())?)
}

/// These columns of the batch.
#[must_use]
pub fn select_columns(batch: &RecordBatch, of: &[usize]) -> Vec<ArrayRef> {
    of.iter().map(|at| batch.column(*at).clone()).collect()
}

/// Puts a file that has a row among those that wait.
fn insert_waiting(
    waiting: &mut Vec<(usize, Box<MergeSource>)>,
    number: usize,
    source: Box<MergeSource>,
) {
    let at = waiting.partition_point(|(_, other)| other.current_key() > source.current_key());
    waiting.insert(at, (number, source));
}

/// The rows of these batches.
fn gather_rows(
    batches: &[RecordBatch],
    picked: &[(usize, usize)],
) -> Result<RecordBatch, FleetError> {
    if let (Some((number, first)), Some((_, last))) = (picked.first(), picked.last())
        && let Some(batch) = batches.get(*number)
        && picked.iter().all(|(other, _)| other == number)
    {
        // A batch's rows are picked one after the other: they need not be copied.
        return Ok(batch.slice(*first, last - first + 1));
    }
    let batches: Vec<&RecordBatch> = batches.iter().collect();
    Ok(interleave_record_batch(&batches, picked)?)
}

/// What a reader of the file holds at most, about: of each column a dictionary, or two pages; and a batch.
fn reader_bytes(metadata: &ParquetMetaData, batch: usize) -> usize {
    let groups = metadata.row_groups().iter();
    let groups = groups.map(|group| group.columns().iter().map(column_bytes).sum::<usize>());
    groups.max().unwrap_or(0) + batch * ROW_BYTES
}

fn column_bytes(column: &ColumnChunkMetaData) -> usize {
    let size = usize::try_from(column.uncompressed_size()).unwrap_or(0);
    let values = match column.dictionary_page_offset() {
        Some(_) => size.min(DICTIONARY_BYTES),
        None => 2 * size.min(PAGE_BYTES),
    };
    values + UNPACK_BYTES
}

fn damaged_file(path: &Path, what: &dyn std::fmt::Display) -> FleetError {
    FleetError::Dataset(path.to_owned(), format!("damaged: {what}"))
}
