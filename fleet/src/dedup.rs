//! What frames, stacks and contexts the dataset has, so that it gets each once, and so that two things with one id are found.

use std::hash::{DefaultHasher, Hash, Hasher};

use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::commits::DatasetFile;
use crate::decoded_run::{FrameRow, StackRow};
use crate::error::FleetError;
use crate::layout::DatasetTable;
use crate::store::{DatasetStore, SharedStore};

/// By id; what they are is kept as a second hash, of another kind than the id. 40 bytes for each.
#[derive(Default)]
pub struct DedupIndex {
    frames: FxHashMap<u128, u64>,
    stacks: FxHashMap<u128, u64>,
    /// Stacks whose frames are in the table `through`.
    indexed_stacks: FxHashSet<u128>,
}

impl DedupIndex {
    /// What these files have.
    ///
    /// # Errors
    /// One cannot be read, or has another thing under an id that is known.
    pub fn read_files<'e>(
        &mut self,
        store: &SharedStore,
        entries: impl IntoIterator<Item = &'e DatasetFile>,
    ) -> Result<(), FleetError> {
        for entry in entries {
            let (store, path) = (store.as_ref(), entry.path.as_str());
            match entry.table {
                DatasetTable::Frames => read_batches(
                    store,
                    path,
                    &["frame_id", "class", "method", "descriptor", "line"],
                    |batch| {
                        let ([id, class, method, descriptor], lines) = (
                            text_columns(batch, ["frame_id", "class", "method", "descriptor"])?,
                            batch
                                .column_by_name("line")?
                                .as_primitive_opt::<Int32Type>()?,
                        );
                        for at in 0..batch.num_rows() {
                            let what = hash_content((
                                class.value(at),
                                method.value(at),
                                descriptor.value(at),
                                lines.value(at),
                            ));
                            insert_unique(&mut self.frames, parse_id(id.value(at))?, what).ok()?;
                        }
                        Some(())
                    },
                )?,
                DatasetTable::Stacks => {
                    let names = ["stack_id", "parent_id", "frame_id"];
                    read_batches(store, path, &names, |batch| {
                        let [id, parent, frame] = text_columns(batch, names)?;
                        for at in 0..batch.num_rows() {
                            let what = hash_content((
                                parse_id(parent.value(at))?,
                                parse_id(frame.value(at))?,
                            ));
                            insert_unique(&mut self.stacks, parse_id(id.value(at))?, what).ok()?;
                        }
                        Some(())
                    })?
                }
                DatasetTable::Through => read_batches(store, path, &["stack_id"], |batch| {
                    let [id] = text_columns(batch, ["stack_id"])?;
                    let mut last = "";
                    for at in 0..batch.num_rows() {
                        if id.value(at) != last {
                            last = id.value(at);
                            self.indexed_stacks.insert(parse_id(last)?);
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
    pub fn insert_frame(&mut self, row: &FrameRow) -> Result<bool, FleetError> {
        let what = hash_content((
            row.class.as_str(),
            row.method.as_str(),
            row.descriptor.as_str(),
            row.line,
        ));
        insert_unique(&mut self.frames, row.id.0, what)
    }

    /// As [`frame`](Self::frame), of a path.
    ///
    /// # Errors
    /// Another path has the id.
    pub fn insert_stack(&mut self, row: &StackRow) -> Result<bool, FleetError> {
        insert_unique(
            &mut self.stacks,
            row.id.0,
            hash_content((row.parent.0, row.frame.0)),
        )
    }

    /// Whether its frames are not in `through` yet; they are from now on.
    pub fn insert_indexed_stack(&mut self, stack: u128) -> bool {
        self.indexed_stacks.insert(stack)
    }
}

fn insert_unique(
    content_by_id: &mut FxHashMap<u128, u64>,
    id: u128,
    what: u64,
) -> Result<bool, FleetError> {
    match content_by_id.insert(id, what) {
        None => Ok(true),
        Some(other) if other == what => Ok(false),
        Some(_) => Err(FleetError::Collision(format!(
            "two different things have the content id {id:032x}: nothing was added"
        ))),
    }
}

fn hash_content(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn parse_id(id: &str) -> Option<u128> {
    u128::from_str_radix(id, 16).ok()
}

fn text_columns<'b, const N: usize>(
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
pub fn read_batches(
    store: &dyn DatasetStore,
    path: &str,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch) -> Option<()>,
) -> Result<(), FleetError> {
    let file = store.fetch_file(path)?;
    let damaged =
        |what: String| FleetError::Dataset(file.name().to_owned(), format!("damaged: {what}"));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file.open()?)
        .map_err(|e| damaged(e.to_string()))?;
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
mod dedup_tests {
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
        let mut dedup = DedupIndex::default();
        assert!(dedup.insert_stack(&row).unwrap());
        assert!(!dedup.insert_stack(&row).unwrap());
        let other = StackRow {
            frame: FrameId(2),
            ..row
        };
        let message = dedup.insert_stack(&other).unwrap_err().to_string();
        assert!(
            message.contains("00000000000000000000000000000007"),
            "{message}"
        );
    }
}
