//! What is older than it has to be kept: numbers go, runs become sums, sums go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use lucce_contentid::{Detail, FrameId, FrameText};

use crate::commits::{Entry, State};
use crate::compact::sorted::{Plan, Room};
use crate::compact::sums::{KEY, Sums, renamed, without};
use crate::compact::{Work, merge, shared};
use crate::engine::Engine;
use crate::error::Error;
use crate::layout::{Part, Table, file};

/// What `lucce fleet decode` needs, and single events.
const RAW: [Table; 3] = [Table::Numbers, Table::Symbols, Table::Stream];

/// Removes numbers, and events, of parts that are too old.
pub fn drop_parts(work: &mut Work<'_>, state: &mut State) -> Result<(), Error> {
    let mut commit = work.commit();
    // Of a run that went on for longer its last day counts.
    let mut last: BTreeMap<&Part, &str> = BTreeMap::new();
    for known in state.runs.values().filter(|known| !known.summed) {
        let last = last.entry(&known.part).or_default();
        *last = known.last.as_str().max(last);
    }
    for (tables, first) in [
        (&RAW[..], work.policy.first(work.policy.numbers)),
        (
            &[Table::Events, Table::Taken],
            work.policy.first(work.policy.sums),
        ),
    ] {
        let Some(first) = first else { continue };
        let is_old = |part: &Part| {
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
        false => work.publish(state, commit).map(|_| ()),
    }
}

/// Runs of one service, day, version and JVM become one row, and their events those of one run. How many runs there were.
pub fn sum_runs(work: &mut Work<'_>, state: &mut State) -> Result<u64, Error> {
    let Some(first) = work.policy.first(work.policy.runs) else {
        return Ok(0);
    };
    let is_old = |run: &&String| {
        let known = state.runs.get(*run);
        known.is_some_and(|known| !known.summed && known.last < first)
    };
    let old: BTreeSet<String> = state.runs.keys().filter(is_old).cloned().collect();
    if old.is_empty() {
        return Ok(0);
    }
    let engine = Engine::of(work.dataset(), state, work.limits)?;
    let members = members(&engine, &old)?;
    engine.register_rows("members", rows(&members)?)?;
    let mut commit = work.commit();
    let is_own = |run: &Option<String>| run.as_ref().is_some_and(|run| old.contains(run));
    let parts: BTreeSet<Part> = old
        .iter()
        .filter_map(|run| Some(state.runs.get(run)?.part.clone()))
        .collect();
    let is_touched = |part: &Part| {
        parts
            .iter()
            .any(|of| of.service == part.service && of.day <= part.day && part.day < first)
    };
    let mut events = shared(state, Table::Events);
    // Of runs that have not ended, too: they never will.
    for entry in state.files.values().filter(|entry| is_own(&entry.run)) {
        match entry.table {
            Table::Events => events
                .entry(entry.part.clone())
                .or_default()
                .push(entry.clone()),
            Table::Runs => {}
            _ => commit.remove.push(entry.path.clone()),
        }
    }
    for (part, entries) in events
        .into_iter()
        .filter(|(part, _)| part.as_ref().is_some_and(is_touched))
    {
        let entry = summed(work, part.as_ref(), &entries, &members)?;
        commit.add.extend(entry);
        commit
            .remove
            .extend(entries.into_iter().map(|entry| entry.path));
    }
    let runs: Vec<_> = state
        .of(Table::Runs)
        .filter(|entry| entry.run.is_none() || is_own(&entry.run))
        .cloned()
        .collect();
    commit.add.extend(runs_as_sums(&engine, work, &runs)?);
    commit
        .remove
        .extend(runs.into_iter().map(|entry| entry.path));
    // Their numbers mean nothing without them: other runs' numbers stay.
    for (part, entries) in shared(state, Table::Numbers)
        .into_iter()
        .chain(shared(state, Table::Stream))
    {
        let Some(table) = entries.first().map(|entry| entry.table) else {
            continue;
        };
        if !part.as_ref().is_some_and(|part| parts.contains(part)) {
            continue;
        }
        let others = |batch: RecordBatch| without(&batch, &members);
        let entry = merge::one(work, table, part.as_ref(), &entries, &others)?;
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
    match work.publish(state, commit)? {
        true => Ok(old.len() as u64),
        // A run has gone on, or another one compacts.
        false => Ok(0),
    }
}

/// The events of these files, those of old runs as sums.
fn summed(
    work: &Work<'_>,
    part: Option<&Part>,
    entries: &[Entry],
    members: &BTreeMap<String, String>,
) -> Result<Option<Entry>, Error> {
    let change = |batch: RecordBatch| renamed(&batch, members);
    let (table, room) = (Table::Events, Room::of(work.limits));
    let plan = Plan::new(work.dataset(), table, &KEY, room, &change)?;
    let files = entries
        .iter()
        .map(|entry| file(work.dataset(), &entry.path));
    let sums = plan.merge(files, || {
        Sums::new(&plan, merge::target(work, table, part)?)
    })?;
    merge::ended(sums.ended()?)
}

/// The rows of these files of `runs`, those of old runs as sums.
fn runs_as_sums(
    engine: &Engine,
    work: &Work<'_>,
    entries: &[Entry],
) -> Result<Option<Entry>, Error> {
    let dataset = work.dataset();
    let dataset = dataset.canonicalize().map_err(Error::of(dataset))?;
    let paths = entries.iter().map(|entry| file(&dataset, &entry.path));
    engine.register("many", Table::Runs, paths.collect())?;
    let (table, schema) = (Table::Runs, Table::Runs.schema());
    let mut rows = merge::target(work, table, None)?;
    engine.ask(RUNS, &mut |_, batch| match batch {
        None => Ok(()),
        Some(batch) => {
            // The engine has other forms of text than files have.
            let columns = batch.columns().iter().zip(schema.fields());
            let columns: Result<Vec<_>, _> = columns
                .map(|(column, field)| cast(column, field.data_type()))
                .collect();
            rows.write(&RecordBatch::try_new(schema.clone(), columns?)?)
        }
    })?;
    // Sorted as a file is that is out of order: a sort of the engine's sets much memory aside, however few rows there are.
    let unsorted = rows.stay()?;
    let plan = Plan::new(
        work.dataset(),
        table,
        table.order(),
        Room::of(work.limits),
        &Ok,
    )?;
    let files = [unsorted.path().to_owned()];
    merge::ended(plan.merge(files, || merge::target(work, table, None))?)
}

/// Which run becomes a part of which sum.
fn members(engine: &Engine, old: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Error> {
    let mut members = BTreeMap::new();
    let names = [
        "run_id", "service", "day", "version", "jvm", "jvm_name", "lucce",
    ];
    for batch in engine.rows(&format!("SELECT {} FROM runs", names.join(", ")))? {
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
fn rows(members: &BTreeMap<String, String>) -> Result<RecordBatch, Error> {
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
        crate::rows::hex(FrameId::of(text, Detail::ByLine).0)
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
