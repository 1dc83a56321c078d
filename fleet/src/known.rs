//! What frames, stacks and contexts the dataset has, so that it gets each once, and so that two things with one id are found.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::commits::Entry;
use crate::decoded::{FrameRow, StackRow};
use crate::error::Error;
use crate::layout::{Table, file};

/// By id; what they are is kept as a second hash, of another kind than the id. 40 bytes for each.
#[derive(Default)]
pub struct Known {
    frames: FxHashMap<u128, u64>,
    stacks: FxHashMap<u128, u64>,
    /// Stacks whose frames are in the table `through`.
    through: FxHashSet<u128>,
}

impl Known {
    /// What these files have.
    ///
    /// # Errors
    /// One cannot be read, or has another thing under an id that is known.
    pub fn read<'e>(
        &mut self,
        dataset: &Path,
        entries: impl IntoIterator<Item = &'e Entry>,
    ) -> Result<(), Error> {
        for entry in entries {
            let path = file(dataset, &entry.path);
            match entry.table {
                Table::Frames => each(
                    &path,
                    &["frame_id", "class", "method", "descriptor", "line"],
                    |batch| {
                        let ([id, class, method, descriptor], lines) = (
                            texts(batch, ["frame_id", "class", "method", "descriptor"])?,
                            batch
                                .column_by_name("line")?
                                .as_primitive_opt::<Int32Type>()?,
                        );
                        for at in 0..batch.num_rows() {
                            let what = hash((
                                class.value(at),
                                method.value(at),
                                descriptor.value(at),
                                lines.value(at),
                            ));
                            insert(&mut self.frames, number(id.value(at))?, what).ok()?;
                        }
                        Some(())
                    },
                )?,
                Table::Stacks => each(&path, &["stack_id", "parent_id", "frame_id"], |batch| {
                    let [id, parent, frame] = texts(batch, ["stack_id", "parent_id", "frame_id"])?;
                    for at in 0..batch.num_rows() {
                        let what = hash((number(parent.value(at))?, number(frame.value(at))?));
                        insert(&mut self.stacks, number(id.value(at))?, what).ok()?;
                    }
                    Some(())
                })?,
                Table::Through => each(&path, &["stack_id"], |batch| {
                    let [id] = texts(batch, ["stack_id"])?;
                    let mut last = "";
                    for at in 0..batch.num_rows() {
                        if id.value(at) != last {
                            last = id.value(at);
                            self.through.insert(number(last)?);
                        }
                    }
                    Some(())
                })?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether it is new; it is known from now on.
    ///
    /// # Errors
    /// Another frame has the id.
    pub fn frame(&mut self, row: &FrameRow) -> Result<bool, Error> {
        let what = hash((
            row.class.as_str(),
            row.method.as_str(),
            row.descriptor.as_str(),
            row.line,
        ));
        insert(&mut self.frames, row.id.0, what)
    }

    /// As [`frame`](Self::frame), of a path.
    ///
    /// # Errors
    /// Another path has the id.
    pub fn stack(&mut self, row: &StackRow) -> Result<bool, Error> {
        insert(
            &mut self.stacks,
            row.id.0,
            hash((row.parent.0, row.frame.0)),
        )
    }

    /// Whether its frames are not in `through` yet; they are from now on.
    pub fn through(&mut self, stack: u128) -> bool {
        self.through.insert(stack)
    }
}

fn insert(known: &mut FxHashMap<u128, u64>, id: u128, what: u64) -> Result<bool, Error> {
    match known.insert(id, what) {
        None => Ok(true),
        Some(other) if other == what => Ok(false),
        Some(_) => Err(Error::Collision(format!(
            "two different things have the content id {id:032x}: nothing was added"
        ))),
    }
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn number(id: &str) -> Option<u128> {
    u128::from_str_radix(id, 16).ok()
}

fn texts<'b, const N: usize>(
    batch: &'b RecordBatch,
    names: [&str; N],
) -> Option<[&'b StringArray; N]> {
    let mut columns = Vec::with_capacity(N);
    for name in names {
        columns.push(batch.column_by_name(name)?.as_string_opt::<i32>()?);
    }
    columns.try_into().ok()
}

/// The rows of a file, these columns of them. `None`: they are not what they must be.
///
/// # Errors
/// The file cannot be read.
pub fn each(
    path: &Path,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch) -> Option<()>,
) -> Result<(), Error> {
    let damaged = |what: String| Error::Dataset(path.to_owned(), format!("damaged: {what}"));
    let opened = File::open(path).map_err(Error::of(path))?;
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(opened).map_err(|e| damaged(e.to_string()))?;
    let mask = ProjectionMask::columns(reader.parquet_schema(), columns.iter().copied());
    let reader = reader
        .with_projection(mask)
        .with_batch_size(64 << 10)
        .build();
    for batch in reader.map_err(|e| damaged(e.to_string()))? {
        let batch = batch.map_err(|e| damaged(e.to_string()))?;
        each(&batch).ok_or_else(|| damaged("a column or an id is not as it must be".into()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lucce_contentid::{FrameId, StackId};

    use super::*;

    #[test]
    fn two_paths_under_one_id_are_an_error() {
        let row = StackRow {
            id: StackId(7),
            parent: StackId::EMPTY,
            frame: FrameId(1),
            depth: 1,
            by_method: StackId(8),
            application: FrameId(1),
        };
        let mut known = Known::default();
        assert!(known.stack(&row).unwrap());
        assert!(!known.stack(&row).unwrap());
        let other = StackRow {
            frame: FrameId(2),
            ..row
        };
        let told = known.stack(&other).unwrap_err().to_string();
        assert!(told.contains("00000000000000000000000000000007"), "{told}");
    }
}
