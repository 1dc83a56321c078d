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

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::compute::{SortOptions, cast, interleave_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{Row, RowConverter, Rows as Keys, SortField};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use crate::engine::Limits;
use crate::error::Error;
use crate::files::{DICTIONARY, Rows, Staged, Target};
use crate::layout::Table;

/// Files that are open at a time: a process may have 1024, and other things need some.
const MOST: usize = 100;
/// A row in a batch, with its sort key, has about as many bytes; rows of `runs` have more, and there are few of them.
const WIDTH: usize = 512;
/// A page of a file has about as many bytes at most.
const PAGE: usize = 1 << 20;

/// What it takes to unpack a column.
const UNPACKING: usize = 160 << 10;

/// What may be in memory while files are merged.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes of all readers together.
    pub readers: usize,
    /// Bytes of the row group that is being written.
    pub writer: usize,
    /// Bytes of rows that are sorted at a time.
    pub piece: usize,
    /// Rows of a batch.
    pub batch: usize,
}

impl Room {
    /// Readers have one half, what is written an eighth; the rest is for what is not counted: the program, and what the
    /// allocator keeps.
    #[must_use]
    pub fn of(limits: &Limits) -> Room {
        let memory = limits.memory.unwrap_or(1 << 30);
        Room {
            readers: memory / 2,
            writer: (memory / 8).max(4 << 20),
            piece: (memory / 8).max(1 << 20),
            batch: (memory >> 17).clamp(256, 8192),
        }
    }
}

/// What is done with the rows of a batch as soon as they are read. It must keep them in the order of the plan.
pub type Change<'c> = dyn Fn(RecordBatch) -> Result<RecordBatch, Error> + 'c;

/// Takes batches in order.
pub trait Sink: Sized {
    /// # Errors
    /// They cannot be written.
    fn take(&mut self, batch: &RecordBatch) -> Result<(), Error>;

    /// All that was taken was in vain.
    ///
    /// # Errors
    /// A file cannot be removed.
    fn abandon(self) -> Result<(), Error>;
}

impl Sink for Rows {
    fn take(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.write(batch)
    }

    fn abandon(self) -> Result<(), Error> {
        Rows::abandon(self)
    }
}

/// Which rows are wanted, and in which order.
pub struct Plan<'p> {
    dataset: &'p Path,
    table: Table,
    room: Room,
    schema: SchemaRef,
    key: Vec<usize>,
    converter: RowConverter,
    change: &'p Change<'p>,
}

/// Why a merge has stopped.
enum Stop {
    /// A row is less than the one before it in its file.
    OutOfOrder,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Failed(error.into())
    }
}

/// A file to be merged.
struct Input {
    path: PathBuf,
    bytes: u64,
    /// What its reader holds.
    weight: usize,
    is_in_order: bool,
    /// It is removed when it has been merged.
    _staged: Option<Staged>,
}

/// A file that is being read.
struct Source {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    /// Of the batch that it is at.
    keys: Keys,
    /// The next row of that batch.
    at: usize,
}

impl<'p> Plan<'p> {
    /// `key`: the columns of the order, the first one decides first.
    ///
    /// # Errors
    /// The table has no such column.
    pub fn new(
        dataset: &'p Path,
        table: Table,
        key: &[&str],
        room: Room,
        change: &'p Change<'p>,
    ) -> Result<Plan<'p>, Error> {
        let schema = table.schema();
        let key: Result<Vec<_>, _> = key.iter().map(|name| schema.index_of(name)).collect();
        let key = key?;
        let converter = converter(&schema, &key)?;
        Ok(Plan {
            dataset,
            table,
            room,
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
    pub fn keys(&self, batch: &RecordBatch) -> Result<Keys, Error> {
        Ok(self.converter.convert_columns(&columns(batch, &self.key))?)
    }

    /// Hands all rows of the files over in order. `start`: what takes them; a second one is made if a file turns out to be out of
    /// order, and the first one is abandoned.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn merge<S: Sink>(
        &self,
        files: impl IntoIterator<Item = PathBuf>,
        start: impl Fn() -> Result<S, Error>,
    ) -> Result<S, Error> {
        let inputs: Result<Vec<_>, _> = files
            .into_iter()
            .map(|path| self.input(path, None))
            .collect();
        let mut inputs = inputs?;
        loop {
            // Small files are written twice rather than large ones.
            inputs.sort_by_key(|input| input.bytes);
            let many = self.at_a_time(&inputs);
            let is_last = many == inputs.len();
            let group: Vec<Input> = inputs.drain(..many).collect();
            let merged = match is_last {
                true => match self.attempt(&group, start()?)? {
                    Some(sink) => return Ok(sink),
                    None => None,
                },
                false => match self.attempt(&group, self.staged()?)? {
                    Some(rows) => Some(rows.stay()?),
                    None => None,
                },
            };
            match merged {
                Some(staged) => {
                    let path = staged.path().to_owned();
                    inputs.push(Input {
                        is_in_order: true,
                        ..self.input(path, Some(staged))?
                    });
                }
                None => {
                    for input in group {
                        self.in_order(input, &mut inputs)?;
                    }
                }
            }
        }
    }

    fn input(&self, path: PathBuf, staged: Option<Staged>) -> Result<Input, Error> {
        let file = File::open(&path).map_err(Error::of(&path))?;
        let bytes = file.metadata().map_err(Error::of(&path))?.len();
        let builder = ParquetRecordBatchReaderBuilder::try_new(file);
        let builder = builder.map_err(|e| damaged(&path, &e))?;
        Ok(Input {
            weight: weight(builder.metadata(), self.batch()),
            path,
            bytes,
            is_in_order: false,
            _staged: staged,
        })
    }

    /// Rows of `runs` have whole command lines.
    fn batch(&self) -> usize {
        match self.table {
            Table::Runs => 256,
            _ => self.room.batch,
        }
    }

    /// How many of the files, which are sorted by size, are merged next: all of them if there is room.
    fn at_a_time(&self, inputs: &[Input]) -> usize {
        let mut sum = 0_usize;
        let has_room = inputs.iter().take_while(|input| {
            sum = sum.saturating_add(input.weight);
            sum <= self.room.readers
        });
        let fit = has_room.count();
        // Two at least, or there is no end. If only their number is too large, no more than have to be.
        let wanted = match fit == inputs.len() {
            true if fit <= MOST => fit,
            true => (fit - MOST + 1).min(MOST),
            false => fit.min(MOST),
        };
        wanted.max(2).min(inputs.len())
    }

    /// A file of rows that go on to another one.
    fn staged(&self) -> Result<Rows, Error> {
        let target = Target::new(self.dataset, self.table, None, None)?;
        Ok(target.rows()?.bounded(self.room.writer))
    }

    /// `None`: a file is out of order.
    fn attempt<S: Sink>(&self, group: &[Input], mut sink: S) -> Result<Option<S>, Error> {
        match self.run(group, &mut sink) {
            Ok(()) => Ok(Some(sink)),
            Err(Stop::OutOfOrder) => sink.abandon().map(|()| None),
            Err(Stop::Failed(error)) => {
                // What made it fail is told, not what came of that: `compact` finds and removes files that stay.
                let _ = sink.abandon();
                Err(error)
            }
        }
    }

    fn open(&self, path: &Path) -> Result<Source, Error> {
        let file = File::open(path).map_err(Error::of(path))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(|builder| builder.with_batch_size(self.batch()).build());
        Ok(Source {
            path: path.to_owned(),
            reader: reader.map_err(|e| damaged(path, &e))?,
            keys: self.converter.empty_rows(0, 0),
            at: 0,
        })
    }

    fn run(&self, group: &[Input], sink: &mut impl Sink) -> Result<(), Stop> {
        // Where each file is now, by its place in the group.
        let mut batches = vec![RecordBatch::new_empty(self.schema.clone()); group.len()];
        // Those that have rows, the least one last. A box is moved faster than what is in it.
        let mut waiting: Vec<(usize, Box<Source>)> = Vec::with_capacity(group.len());
        for (number, (input, batch)) in group.iter().zip(&mut batches).enumerate() {
            let mut source = Box::new(self.open(&input.path)?);
            if let Some(first) = source.advance(self)? {
                *batch = first;
                place(&mut waiting, number, source);
            }
        }
        let most = self.batch();
        let mut picked: Vec<(usize, usize)> = Vec::with_capacity(most);
        while let Some((number, mut source)) = waiting.pop() {
            let end = source.keys.num_rows();
            let next = waiting.last().map(|(_, next)| next.key());
            loop {
                picked.push((number, source.at));
                source.at += 1;
                let is_over = source.at == end || picked.len() >= most;
                if is_over || next.is_some_and(|next| source.key() > next) {
                    break;
                }
            }
            // Rows that were picked are of batches that are here now.
            if source.at == end || picked.len() >= most {
                sink.take(&rows_of(&batches, &picked)?)?;
                picked.clear();
            }
            if source.at == end {
                let (Some(batch), Some(new)) = (batches.get_mut(number), source.advance(self)?)
                else {
                    continue;
                };
                *batch = new;
            }
            place(&mut waiting, number, source);
        }
        Ok(())
    }

    /// The file if it is in order; if not, its rows as files that are.
    fn in_order(&self, mut input: Input, inputs: &mut Vec<Input>) -> Result<(), Error> {
        if !input.is_in_order {
            input.is_in_order = self.is_in_order(&input.path)?;
        }
        match input.is_in_order {
            true => inputs.push(input),
            false => self.pieces(&input.path, inputs)?,
        }
        Ok(())
    }

    fn is_in_order(&self, path: &Path) -> Result<bool, Error> {
        let mut source = self.open(path)?;
        loop {
            match source.advance(self) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(true),
                Err(Stop::OutOfOrder) => return Ok(false),
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    fn pieces(&self, path: &Path, inputs: &mut Vec<Input>) -> Result<(), Error> {
        let mut source = self.open(path)?;
        let (mut batches, mut size) = (Vec::new(), 0);
        loop {
            let batch = source.next(self)?;
            let is_end = batch.is_none();
            if let Some(batch) = batch {
                let keys = self.keys(&batch)?;
                size += batch.get_array_memory_size() + keys.size();
                batches.push((batch, keys));
            }
            if !batches.is_empty() && (is_end || size >= self.room.piece) {
                let staged = self.piece(&batches)?;
                let path = staged.path().to_owned();
                inputs.push(Input {
                    is_in_order: true,
                    ..self.input(path, Some(staged))?
                });
                batches.clear();
                size = 0;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    fn piece(&self, batches: &[(RecordBatch, Keys)]) -> Result<Staged, Error> {
        let mut order: Vec<(Row<'_>, (usize, usize))> = Vec::new();
        for (number, (_, keys)) in batches.iter().enumerate() {
            let places = (0..).map(|at| (number, at));
            order.extend(keys.iter().zip(places));
        }
        order.sort_unstable();
        let of: Vec<&RecordBatch> = batches.iter().map(|(batch, _)| batch).collect();
        let mut rows = self.staged()?;
        for some in order.chunks(self.batch()) {
            let some: Vec<_> = some.iter().map(|(_, place)| *place).collect();
            rows.write(&interleave_record_batch(&of, &some)?)?;
        }
        rows.stay()
    }

    /// The columns of the table, of a file that may be of an earlier version.
    fn as_of_now(&self, path: &Path, batch: &RecordBatch) -> Result<RecordBatch, Error> {
        let column = |field: &arrow::datatypes::FieldRef| match batch.column_by_name(field.name()) {
            Some(column) if column.data_type() == field.data_type() => Ok(column.clone()),
            Some(column) => Ok(cast(column, field.data_type())?),
            None if field.is_nullable() => Ok(new_null_array(field.data_type(), batch.num_rows())),
            None => {
                let what = format!("damaged: it has no column {}", field.name());
                Err(Error::Dataset(path.to_owned(), what))
            }
        };
        let columns: Result<Vec<_>, _> = self.schema.fields().iter().map(column).collect();
        Ok(RecordBatch::try_new(self.schema.clone(), columns?)?)
    }
}

impl Source {
    fn key(&self) -> Row<'_> {
        self.keys.row(self.at)
    }

    /// The next rows, if there are any.
    fn next(&mut self, plan: &Plan<'_>) -> Result<Option<RecordBatch>, Error> {
        for batch in self.reader.by_ref() {
            let batch = batch.map_err(|e| damaged(&self.path, &e))?;
            let batch = (plan.change)(plan.as_of_now(&self.path, &batch)?)?;
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// To the next batch, if there is one.
    fn advance(&mut self, plan: &Plan<'_>) -> Result<Option<RecordBatch>, Stop> {
        let Some(batch) = self.next(plan)? else {
            return Ok(None);
        };
        let keys = plan.keys(&batch)?;
        let last = self.keys.num_rows().checked_sub(1);
        let before = last.map(|last| self.keys.row(last));
        if !before.into_iter().chain(keys.iter()).is_sorted() {
            return Err(Stop::OutOfOrder);
        }
        (self.keys, self.at) = (keys, 0);
        Ok(Some(batch))
    }
}

/// Compares rows by these columns; missing values come last, as SQL has it.
///
/// # Errors
/// A column is of a type that has no order.
pub fn converter(schema: &SchemaRef, columns: &[usize]) -> Result<RowConverter, Error> {
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
pub fn columns(batch: &RecordBatch, of: &[usize]) -> Vec<ArrayRef> {
    of.iter().map(|at| batch.column(*at).clone()).collect()
}

/// Puts a file that has a row among those that wait.
fn place(waiting: &mut Vec<(usize, Box<Source>)>, number: usize, source: Box<Source>) {
    let at = waiting.partition_point(|(_, other)| other.key() > source.key());
    waiting.insert(at, (number, source));
}

/// The rows of these batches.
fn rows_of(batches: &[RecordBatch], picked: &[(usize, usize)]) -> Result<RecordBatch, Error> {
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
fn weight(metadata: &ParquetMetaData, batch: usize) -> usize {
    let groups = metadata.row_groups().iter();
    let groups = groups.map(|group| group.columns().iter().map(held).sum::<usize>());
    groups.max().unwrap_or(0) + batch * WIDTH
}

fn held(column: &ColumnChunkMetaData) -> usize {
    let size = usize::try_from(column.uncompressed_size()).unwrap_or(0);
    let values = match column.dictionary_page_offset() {
        Some(_) => size.min(DICTIONARY),
        None => 2 * size.min(PAGE),
    };
    values + UNPACKING
}

fn damaged(path: &Path, what: &dyn std::fmt::Display) -> Error {
    Error::Dataset(path.to_owned(), format!("damaged: {what}"))
}
