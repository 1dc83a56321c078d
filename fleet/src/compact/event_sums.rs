//! Events of several runs as those of one.
//!
//! ```text
//! rows by event, stack, type, kind of thread and tags ─► rows that are equal in these, by run ─► sums, sorted
//! ```
//! Rows that become one row stand close together, because files are sorted by all but the run. Only those of some contexts are in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Int64Type, SchemaRef};
use arrow::row::{OwnedRow, RowConverter};

use crate::compact::sorted_merge::{BatchSink, MergePlan, key_converter, select_columns};
use crate::error::FleetError;
use crate::files::TableFileWriter;
use crate::layout::DatasetTable;

/// By what files are merged: the order of the table but for the run, which becomes another one.
pub const KEY: [&str; 5] = ["event", "stack_id", "type", "thread_kind", "tags"];
/// What rows must have in common to become one: the order of the table first, so that sums come out in that order.
const GROUP: [&str; 9] = [
    "event",
    "stack_id",
    "type",
    "thread_kind",
    "tags",
    "run_id",
    "unit",
    "service",
    "day",
];
/// So many sums are written at a time, about.
const BATCH: usize = 8192;

/// Adds up what it takes, which must be in the order of [`SYMBOLS_KEY`].
pub struct EventSumWriter<'p> {
    plan: &'p MergePlan<'p>,
    rows: TableFileWriter,
    schema: SchemaRef,
    group: Vec<usize>,
    converter: RowConverter,
    /// Count and value, by what the rows have in common.
    open: BTreeMap<Box<[u8]>, [i64; 2]>,
    /// The last row that was taken.
    last: Option<OwnedRow>,
}

impl<'p> EventSumWriter<'p> {
    /// # Errors
    /// Never: the columns are those of the table.
    pub fn new(
        plan: &'p MergePlan<'p>,
        rows: TableFileWriter,
    ) -> Result<EventSumWriter<'p>, FleetError> {
        let schema = DatasetTable::Events.schema();
        let group: Result<Vec<_>, _> = GROUP.iter().map(|name| schema.index_of(name)).collect();
        let group = group?;
        Ok(EventSumWriter {
            plan,
            rows,
            converter: key_converter(&schema, &group)?,
            schema,
            group,
            open: BTreeMap::new(),
            last: None,
        })
    }

    /// The file with all sums.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn finish_sums(mut self) -> Result<TableFileWriter, FleetError> {
        self.write_sums()?;
        Ok(self.rows)
    }

    fn write_sums(&mut self) -> Result<(), FleetError> {
        if self.open.is_empty() {
            return Ok(());
        }
        let parser = self.converter.parser();
        let keys = self.open.keys().map(|key| parser.parse(key));
        let groups = self.converter.convert_rows(keys)?;
        let sums = |of: fn(&[i64; 2]) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(self.open.values().map(of)))
        };
        let fields = self.schema.fields().iter();
        let columns = fields.map(|field| {
            let at = GROUP.iter().position(|name| name == field.name());
            match at.and_then(|at| groups.get(at)) {
                Some(column) => column.clone(),
                None if field.name() == "count" => sums(|[count, _]| *count),
                None => sums(|[_, value]| *value),
            }
        });
        let batch = RecordBatch::try_new(self.schema.clone(), columns.collect())?;
        self.open.clear();
        self.rows.write_batch(&batch)
    }
}

impl BatchSink for EventSumWriter<'_> {
    fn accept_batch(&mut self, batch: &RecordBatch) -> Result<(), FleetError> {
        let numbers = |name: &str| {
            let column = batch.column_by_name(name);
            column.and_then(|column| column.as_primitive_opt::<Int64Type>())
        };
        let (Some(counts), Some(values)) = (numbers("count"), numbers("value")) else {
            return Err(FleetError::Engine("events without numbers".into()));
        };
        let keys = self.plan.sort_keys(batch)?;
        let groups = self
            .converter
            .convert_columns(&select_columns(batch, &self.group))?;
        let mut before = self.last.take();
        let mut last = before.as_ref().map(OwnedRow::row);
        let sums = counts.values().iter().zip(values.values());
        for ((key, group), (count, value)) in keys.iter().zip(&groups).zip(sums) {
            // Only between rows that differ in the key nothing can be added to what is there.
            if self.open.len() >= BATCH && last.is_some_and(|last| last != key) {
                self.write_sums()?;
            }
            last = Some(key);
            let sum = match self.open.get_mut(group.data()) {
                Some(sum) => sum,
                None => self.open.entry(group.data().into()).or_default(),
            };
            let [counted, valued] = sum;
            *counted = counted.saturating_add(*count);
            *valued = valued.saturating_add(*value);
        }
        before = last.map(|last| last.owned());
        self.last = before;
        Ok(())
    }
}

/// Each run by the one whose part it is now, if it is one's.
///
/// # Errors
/// The column is none of texts.
pub fn rename_runs(
    batch: &RecordBatch,
    members: &BTreeMap<String, String>,
) -> Result<RecordBatch, FleetError> {
    let at = batch.schema().index_of("run_id")?;
    let mut columns = batch.columns().to_vec();
    if let Some(column) = columns.get_mut(at)
        && let Some(runs) = column.as_string_opt::<i32>()
    {
        let name = |run| members.get(run).map_or(run, String::as_str);
        let runs = runs.iter().map(|run| run.map(name));
        *column = Arc::new(runs.collect::<StringArray>());
    }
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

/// Rows of other runs than these.
///
/// # Errors
/// The column is none of texts.
pub fn exclude_runs(
    batch: &RecordBatch,
    members: &BTreeMap<String, String>,
) -> Result<RecordBatch, FleetError> {
    let at = batch.schema().index_of("run_id")?;
    let runs = batch.column(at).as_string_opt::<i32>();
    let runs = runs.ok_or_else(|| FleetError::Engine("runs without texts".into()))?;
    let is_kept = runs
        .iter()
        .map(|run| Some(run.is_none_or(|run| !members.contains_key(run))));
    let is_kept = is_kept.collect::<arrow::array::BooleanArray>();
    Ok(arrow::compute::filter_record_batch(batch, &is_kept)?)
}
