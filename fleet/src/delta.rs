//! What the dataset has of a run that goes on, so that each of its events is added once.

use std::collections::HashMap;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::commits::DatasetFile;
use crate::decoded_run::{DecodedRun, EventKey, EventSums};
use crate::dedup::read_batches;
use crate::error::FleetError;
use crate::layout::DatasetTable;
use crate::rows::{thread_kind, to_hex};
use crate::store::SharedStore;

/// Sums by stack, event, unit, type, kind of thread and tags.
pub type IngestedSums = HashMap<[String; 6], EventSums>;

/// Of a run's own files.
///
/// # Errors
/// The file cannot be read.
pub fn read_ingested_sums(
    store: &SharedStore,
    own_files: &[&DatasetFile],
) -> Result<IngestedSums, FleetError> {
    let mut taken = IngestedSums::new();
    let files = own_files.iter();
    for entry in files.filter(|entry| entry.table == DatasetTable::Taken) {
        let names = ["stack_id", "event", "unit", "type", "thread_kind", "tags"];
        let columns = [&names[..], &["count", "value"]].concat();
        read_batches(store.as_ref(), &entry.path, &columns, |batch| {
            let text = |name: &str, at: usize| {
                Some(
                    batch
                        .column_by_name(name)?
                        .as_string_opt::<i32>()?
                        .value(at)
                        .to_owned(),
                )
            };
            let number = |name: &str, at: usize| {
                let value = batch
                    .column_by_name(name)?
                    .as_primitive_opt::<Int64Type>()?
                    .value(at);
                u64::try_from(value).ok()
            };
            for at in 0..batch.num_rows() {
                let mut key: [String; 6] = Default::default();
                for (key, name) in key.iter_mut().zip(names) {
                    // A file of version 1 has no tags, so they stay empty.
                    if name != "tags" || batch.column_by_name(name).is_some() {
                        *key = text(name, at)?;
                    }
                }
                let (count, value) = (number("count", at)?, number("value", at)?);
                taken.insert(key, EventSums { count, value });
            }
            Some(())
        })?;
    }
    Ok(taken)
}

/// What the run has more than was taken.
#[must_use]
pub fn subtract_ingested<'d>(
    decoded: &'d DecodedRun,
    taken: Option<&IngestedSums>,
) -> Vec<(&'d EventKey, EventSums)> {
    let all = decoded.counter_rows();
    let Some(taken) = taken else {
        return all;
    };
    let more = all.into_iter().filter_map(|(key, sums)| {
        let (event, unit) = decoded.kinds.get(key.event as usize)?;
        let of = decoded.texts.get(key.type_number);
        let before = taken.get(&[
            to_hex(key.stack.0),
            event.clone(),
            unit.clone(),
            of.to_owned(),
            thread_kind(key.is_virtual).to_owned(),
            decoded.texts.get(key.tags).to_owned(),
        ]);
        let before = before.copied().unwrap_or_default();
        let count = sums.count.saturating_sub(before.count);
        let value = sums.value.saturating_sub(before.value);
        (count > 0 || value > 0).then_some((key, EventSums { count, value }))
    });
    more.collect()
}
