//! What is older than it has to be kept: numbers go, runs become sums, sums go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use lucce_contentid::{ContentDetail, FrameId, FrameText};

use crate::commits::{DatasetFile, DatasetState};
use crate::compact::event_sums::{EventSumWriter, KEY, exclude_runs, rename_runs};
use crate::compact::sorted_merge::{MergeMemory, MergePlan};
use crate::compact::{CompactionJob, merge, shared_files};
use crate::engine::QueryEngine;
use crate::error::FleetError;
use crate::layout::{DatasetPartition, DatasetTable};

/// What `lucce fleet decode` needs, and single events.
const RAW: [DatasetTable; 3] = [
    DatasetTable::Numbers,
    DatasetTable::Symbols,
    DatasetTable::Stream,
];

/// Removes numbers, and events, of parts that are too old.
pub fn drop_parts(
    work: &mut CompactionJob<'_>,
    state: &mut DatasetState,
) -> Result<(), FleetError> {
    let mut commit = work.new_commit();
    // Of a run that went on for longer its last day counts.
    let mut last: BTreeMap<&DatasetPartition, &str> = BTreeMap::new();
    for known in state.runs.values().filter(|known| !known.summed) {
        let last = last.entry(&known.part).or_default();
        *last = known.last.as_str().max(last);
    }
    for (tables, first) in [
        (&RAW[..], work.policy.first_kept_day(work.policy.numbers)),
        (
            &[DatasetTable::Events, DatasetTable::Taken],
            work.policy.first_kept_day(work.policy.sums),
        ),
    ] {
        let Some(first) = first else { continue };
        let is_old = |part: &DatasetPartition| {
            part.day < first && last.get(part).is_none_or(|last| *last < first.as_str())
        };
        let old = state.files.values().filter(|entry| {
            tables.contains(&entry.table) && entry.part.as_ref().is_some_and(is_old)
        });
        commit.remove.extend(old.map(|entry| entry.path.clone()));
    }
    match commit.remove.is_empty() {
        true => Ok(()),
        // If it could not be done, another one is at it.
        false => work.publish_commit(state, commit).map(|_| ()),
    }
}

/// Runs of one service, day, version and JVM become one row, and their events those of one run. How many runs there were.
pub fn sum_runs(work: &mut CompactionJob<'_>, state: &mut DatasetState) -> Result<u64, FleetError> {
    let Some(first) = work.policy.first_kept_day(work.policy.runs) else {
        return Ok(0);
    };
    let is_old = |run: &&String| {
        let entry = state.runs.get(*run);
        entry.is_some_and(|entry| !entry.summed && entry.last < first)
    };
    let old: BTreeSet<String> = state.runs.keys().filter(is_old).cloned().collect();
    if old.is_empty() {
        return Ok(0);
    }
    let engine = QueryEngine::with_state(work.store(), state, work.limits)?;
    let members = read_sum_members(&engine, &old)?;
    engine.register_rows("members", members_batch(&members)?)?;
    let mut commit = work.new_commit();
    let is_own = |run: &Option<String>| run.as_ref().is_some_and(|run| old.contains(run));
    let parts: BTreeSet<DatasetPartition> = old
        .iter()
        .filter_map(|run| Some(state.runs.get(run)?.part.clone()))
        .collect();
    let is_touched = |part: &DatasetPartition| {
        parts
            .iter()
            .any(|of| of.service == part.service && of.day <= part.day && part.day < first)
    };
    let mut events = shared_files(state, DatasetTable::Events);
    // Of runs that have not ended, too: they never will.
    for entry in state.files.values().filter(|entry| is_own(&entry.run)) {
        match entry.table {
            DatasetTable::Events => events
                .entry(entry.part.clone())
                .or_default()
                .push(entry.clone()),
            DatasetTable::Runs => {}
            _ => commit.remove.push(entry.path.clone()),
        }
    }
    for (part, entries) in events
        .into_iter()
        .filter(|(part, _)| part.as_ref().is_some_and(is_touched))
    {
        let entry = sum_events(work, part.as_ref(), &entries, &members)?;
        commit.add.extend(entry);
        commit
            .remove
            .extend(entries.into_iter().map(|entry| entry.path));
    }
    let runs: Vec<_> = state
        .files_of(DatasetTable::Runs)
        .filter(|entry| entry.run.is_none() || is_own(&entry.run))
        .cloned()
        .collect();
    commit.add.extend(runs_as_sums(&engine, work, &runs)?);
    commit
        .remove
        .extend(runs.into_iter().map(|entry| entry.path));
    // Their numbers mean nothing without them: other runs' numbers stay.
    for (part, entries) in shared_files(state, DatasetTable::Numbers)
        .into_iter()
        .chain(shared_files(state, DatasetTable::Stream))
    {
        let Some(table) = entries.first().map(|entry| entry.table) else {
            continue;
        };
        if !part.as_ref().is_some_and(|part| parts.contains(part)) {
            continue;
        }
        let others = |batch: RecordBatch| exclude_runs(&batch, &members);
        let entry = merge::merge_files(work, table, part.as_ref(), &entries, &others)?;
        commit.add.extend(entry);
        commit
            .remove
            .extend(entries.into_iter().map(|entry| entry.path));
    }
    for run in &old {
        if let Some(known) = state.runs.get(run) {
            let mut known = known.clone();
            known.summed = true;
            commit.runs.insert(run.clone(), known);
        }
    }
    match work.publish_commit(state, commit)? {
        true => Ok(old.len() as u64),
        // A run has gone on, or another one compacts.
        false => Ok(0),
    }
}

/// The events of these files, those of old runs as sums.
fn sum_events(
    work: &CompactionJob<'_>,
    part: Option<&DatasetPartition>,
    entries: &[DatasetFile],
    members: &BTreeMap<String, String>,
) -> Result<Option<DatasetFile>, FleetError> {
    let change = |batch: RecordBatch| rename_runs(&batch, members);
    let (table, room) = (DatasetTable::Events, MergeMemory::from_limits(work.limits));
    let plan = MergePlan::new(work.store(), table, &KEY, room, &change)?;
    let files = entries.iter().map(|entry| entry.path.as_str());
    let sums = plan.merge_files(files, || {
        EventSumWriter::new(&plan, merge::create_target(work, table, part)?)
    })?;
    merge::finish_file(sums.finish_sums()?)
}

/// The rows of these files of `runs`, those of old runs as sums.
fn runs_as_sums(
    engine: &QueryEngine,
    work: &CompactionJob<'_>,
    entries: &[DatasetFile],
) -> Result<Option<DatasetFile>, FleetError> {
    engine.register_files("many", DatasetTable::Runs, entries)?;
    let (table, schema) = (DatasetTable::Runs, DatasetTable::Runs.schema());
    let mut rows = merge::create_target(work, table, None)?;
    engine.run_query(RUNS, &mut |_, batch| match batch {
        None => Ok(()),
        Some(batch) => {
            // The engine has other forms of text than files have.
            let columns = batch.columns().iter().zip(schema.fields());
            let columns: Result<Vec<_>, _> = columns
                .map(|(column, field)| cast(column, field.data_type()))
                .collect();
            rows.write_batch(&RecordBatch::try_new(schema.clone(), columns?)?)
        }
    })?;
    // Sorted as a file is that is out of order: a sort of the engine's sets much memory aside, however few rows there are.
    let unsorted = rows.keep_staged()?;
    let plan = MergePlan::new(
        work.store(),
        table,
        table.sort_columns(),
        MergeMemory::from_limits(work.limits),
        &Ok,
    )?;
    let sorted = plan.merge_staged(unsorted, || merge::create_target(work, table, None))?;
    merge::finish_file(sorted)
}

/// Which run becomes a part of which sum.
fn read_sum_members(
    engine: &QueryEngine,
    old: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, FleetError> {
    let mut members = BTreeMap::new();
    let names = [
        "run_id", "service", "day", "version", "jvm", "jvm_name", "lucce",
    ];
    for batch in engine.collect_rows(&format!("SELECT {} FROM runs", names.join(", ")))? {
        let texts: Result<Vec<_>, _> = batch
            .columns()
            .iter()
            .map(|column| cast(column, &DataType::Utf8))
            .collect();
        let texts = texts?;
        for at in 0..batch.num_rows() {
            let row: Vec<&str> = texts
                .iter()
                .filter_map(|text| Some(text.as_string_opt::<i32>()?.value(at)))
                .collect();
            if let Some((run, of)) = row.split_first()
                && old.contains(*run)
            {
                members.insert((*run).to_owned(), sum_id(of));
            }
        }
    }
    Ok(members)
}

/// As a table for SQL.
fn members_batch(members: &BTreeMap<String, String>) -> Result<RecordBatch, FleetError> {
    let field = |name| Field::new(name, DataType::Utf8, false);
    let schema = Schema::new(vec![field("run_id"), field("sum_id")]);
    let columns: Vec<Arc<dyn Array>> = vec![
        Arc::new(StringArray::from_iter_values(members.keys())),
        Arc::new(StringArray::from_iter_values(members.values())),
    ];
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// `sum-` and 32 hexadecimal digits: no run is called so.
fn sum_id(of: &[&str]) -> String {
    let text: String = of
        .iter()
        .map(|text| format!("{}:{text}", text.len()))
        .collect();
    let text = FrameText {
        class: "",
        method: &text,
        descriptor: "",
        line: 0,
    };
    format!(
        "sum-{}",
        crate::rows::to_hex(FrameId::from_frame(text, ContentDetail::ByLine).0)
    )
}

/// As the table's columns are.
const RUNS: &str = "SELECT COALESCE(m.sum_id, r.run_id) AS run_id, MIN(r.service) AS service, MIN(r.day) AS day,
    MIN(r.version) AS version, CASE WHEN COUNT(m.sum_id) > 0 OR MIN(r.run_id) LIKE 'sum-%' THEN '' ELSE MIN(r.host) END AS host,
    MIN(r.jvm) AS jvm, MIN(r.jvm_name) AS jvm_name, MIN(r.jdk) AS jdk, MIN(r.command) AS command, MIN(r.options) AS options,
    MIN(r.lucce) AS lucce, MIN(r.start_ms) AS start_ms, MAX(r.end_ms) AS end_ms, BOOL_AND(r.ended) AS ended,
    CAST(SUM(r.runs) AS BIGINT) AS runs, MAX(r.contexts) AS contexts, CAST(SUM(r.events) AS BIGINT) AS events,
    CAST(SUM(r.lost) AS BIGINT) AS lost, CAST(SUM(r.counted_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(r.allocated_bytes) AS BIGINT) AS allocated_bytes, MAX(r.sampled_bytes) AS sampled_bytes,
    CAST(SUM(r.log_bytes) AS BIGINT) AS log_bytes
FROM many r LEFT JOIN members m ON m.run_id = r.run_id
GROUP BY COALESCE(m.sum_id, r.run_id)";
