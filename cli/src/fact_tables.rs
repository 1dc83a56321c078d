//! Tables of a whole run: lock holders, living threads, defined classes, times of named methods.

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    Profile, StackTrace, list_defined_classes, list_lock_pairs, list_method_times,
    list_started_threads,
};
use lucce_options::kinds::{CLASSES, LOCK_WAITS, NAMED_TIME, THREAD};
use lucce_page::{FactCell, FactColumn, FactRow, FactTable};

use super::amounts::format_amount;
use super::output::grouped;

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 200;

/// The tables of a run, as far as it has their events. A table is left out if the log does not explain one of its
/// contexts.
pub fn list_fact_tables(profile: &Profile) -> Vec<FactTable> {
    let tables = [
        build_wait_table(profile),
        build_thread_table(profile),
        build_class_table(profile),
        build_time_table(profile),
    ];
    tables.into_iter().flatten().collect()
}

/// The note of a table that has more rows than are listed.
fn note_with_limit(note: String, rows: usize) -> String {
    match rows > MAX_ROWS {
        true => format!(
            "{note} The first {MAX_ROWS} of {} are listed.",
            grouped(rows as u64)
        ),
        false => note,
    }
}

/// The first `most` rows of a table as lines.
pub fn format_table(table: &FactTable, most: usize) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", table.title, table.says)];
    for row in table.rows.iter().take(most) {
        let cells = row.cells.iter().zip(&table.columns);
        let texts: Vec<String> = cells
            .map(|(cell, column)| {
                let text = match (cell, column.unit) {
                    (FactCell::Number(number), Some("") | None) => grouped(*number),
                    (FactCell::Number(number), Some(unit)) => format_amount(*number as f64, unit),
                    (FactCell::Text(text), _) => text.clone(),
                };
                format!("{}: {text}", column.head.to_lowercase())
            })
            .collect();
        lines.push(format!("  {}", texts.join(", ")));
    }
    lines
}

fn build_wait_table(profile: &Profile) -> Option<FactTable> {
    let pairs = list_lock_pairs(profile).ok()?;
    let rows = pairs.pairs.iter().take(MAX_ROWS).map(|pair| FactRow {
        cells: vec![
            FactCell::Number(pair.held_ns),
            FactCell::Number(pair.waits),
            place_cell(&pair.waiting),
            place_cell(&pair.holder),
            text_cell(&pair.lock),
        ],
        trace: format!(
            "waits:\n{}holds:\n{}",
            format_frames(&pair.waiting),
            format_frames(&pair.holder)
        ),
    });
    let known = pairs.known;
    let table = FactTable {
        kind: LOCK_WAITS.name,
        tab: "waits",
        title: "Who waits for whom",
        says: note_with_limit(
            format!(
                "{} waits for locks; the holder is known of {known}. The time runs from the begin of the wait until the release.",
                pairs.waits
            ),
            pairs.pairs.len(),
        ),
        columns: vec![
            FactColumn::new("Held", Some("ns")),
            FactColumn::new("Waits", Some("")),
            FactColumn::new("Waits at", None),
            FactColumn::new("Held at", None),
            FactColumn::new("Lock", None),
        ],
        rows: rows.collect(),
    };
    (pairs.waits > 0).then_some(table)
}

fn build_thread_table(profile: &Profile) -> Option<FactTable> {
    let threads = list_started_threads(profile).ok().flatten()?;
    let rows = threads.rows.iter().take(MAX_ROWS).map(|row| FactRow {
        cells: vec![
            FactCell::Number(row.alive),
            FactCell::Number(row.ended()),
            FactCell::Number(row.oldest_ms.unwrap_or(0).saturating_mul(1_000_000)),
            place_cell(&row.start),
        ],
        trace: format_frames(&row.start),
    });
    let table = FactTable {
        kind: THREAD.name,
        tab: "threads",
        title: "Threads that live, by the context that started them",
        says: note_with_limit(
            "At the end of the log. The age is that of the oldest one.".into(),
            threads.rows.len(),
        ),
        columns: vec![
            FactColumn::new("Alive", Some("")),
            FactColumn::new("Ended", Some("")),
            FactColumn::new("Age", Some("ns")),
            FactColumn::new("Started at", None),
        ],
        rows: rows.collect(),
    };
    (!threads.rows.is_empty()).then_some(table)
}

fn build_class_table(profile: &Profile) -> Option<FactTable> {
    let classes = list_defined_classes(profile).ok()?;
    let rows = classes.iter().take(MAX_ROWS).map(|row| {
        let totals = &row.totals;
        let numbers = [
            totals.defined,
            totals.hidden,
            totals.generated,
            totals.alive(),
            totals.bytes,
            totals.loaders,
            totals.loaders_alive(),
        ];
        let numbers = numbers.into_iter().map(FactCell::Number);
        let texts = [text_cell(&row.loader), place_cell(&row.definition)];
        FactRow {
            cells: numbers.chain(texts).collect(),
            trace: format_frames(&row.definition),
        }
    });
    let table = FactTable {
        kind: CLASSES.name,
        tab: "classes",
        title: "Who defines classes",
        says: note_with_limit(
            "By context and by the class of the loader. Bytes are those of class files.".into(),
            classes.len(),
        ),
        columns: vec![
            FactColumn::new("Defined", Some("")),
            FactColumn::new("Hidden", Some("")),
            FactColumn::new("Generated", Some("")),
            FactColumn::new("Alive", Some("")),
            FactColumn::new("Bytes", Some("bytes")),
            FactColumn::new("Loaders", Some("")),
            FactColumn::new("Loaders alive", Some("")),
            FactColumn::new("Loader", None),
            FactColumn::new("Defined at", None),
        ],
        rows: rows.collect(),
    };
    (!classes.is_empty()).then_some(table)
}

fn build_time_table(profile: &Profile) -> Option<FactTable> {
    let methods = list_method_times(profile).ok()?;
    let rows = methods.iter().take(MAX_ROWS).map(|row| {
        let bins = row.histogram.iter();
        let bins = bins.map(|(from, calls)| format!("{from}: {calls}\n"));
        FactRow {
            cells: vec![
                FactCell::Number(row.total_ns),
                FactCell::Number(row.calls),
                FactCell::Number(row.longest_ns),
                text_cell(&row.method),
            ],
            trace: bins.collect(),
        }
    });
    let table = FactTable {
        kind: NAMED_TIME.first_name(),
        tab: "times",
        title: "Times of named methods",
        says: note_with_limit(
            "Sums of all threads. A row has the number of calls by powers of two.".into(),
            methods.len(),
        ),
        columns: vec![
            FactColumn::new("Time", Some("ns")),
            FactColumn::new("Calls", Some("")),
            FactColumn::new("Longest", Some("ns")),
            FactColumn::new("Method", None),
        ],
        rows: rows.collect(),
    };
    (!methods.is_empty()).then_some(table)
}

fn place_cell(trace: &StackTrace) -> FactCell {
    text_cell(&trace.place_text())
}

fn text_cell(text: &str) -> FactCell {
    FactCell::Text(EscapedText(text).to_string())
}

fn format_frames(trace: &StackTrace) -> String {
    let frames = trace.frames.iter();
    frames.map(|frame| format!("\tat {frame}\n")).collect()
}
