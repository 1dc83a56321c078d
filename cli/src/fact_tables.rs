//! Tables of a whole run: lock holders, living threads, open resources, survivors, defined classes, times of named methods.

use std::cmp::Reverse;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ALLOC, EventContext, HeapAmount, HeapEstimates, OpenedContext, OpenedResources, Profile,
    StackTrace, SurvivalAmount, has_survival, list_defined_classes, list_lock_pairs,
    list_method_times, list_open_resources, list_sampled_contexts, list_started_threads,
};
use lucce_options::kinds::{
    CLASSES, LOCK_WAITS, NAMED_TIME, OPENINGS, SURVIVED_COLLECTIONS, THREAD,
};
use lucce_page::{FactCell, FactColumn, FactRow, FactTable};

use super::amounts::format_amount;
use super::open::{OpenerCounts, ResourceSums, format_quarters, summarize_resources};
use super::output::{format_plural, grouped, percent_of};
use super::report::group_by_own_line;

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 200;

/// The tables of a run, as far as it has their events. A table is left out if the log does not explain one of its
/// contexts. `now_ms`: the time, if the JVM runs.
pub fn list_fact_tables(profile: &Profile, now_ms: Option<u64>) -> Vec<FactTable> {
    let tables = [
        build_wait_table(profile),
        build_thread_table(profile),
        build_open_table(profile, now_ms),
        build_survival_table(profile),
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
        is_last: false,
    });
    let known = pairs.known;
    let table = FactTable {
        kind: LOCK_WAITS.name,
        has_summary: false,
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
        is_last: false,
    });
    let table = FactTable {
        kind: THREAD.name,
        has_summary: false,
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

/// Contexts with resources that are open, or that were collected and never closed.
fn build_open_table(profile: &Profile, now_ms: Option<u64>) -> Option<FactTable> {
    let resources = list_open_resources(profile, now_ms).ok().flatten()?;
    let is_listed = |row: &&OpenedContext| {
        let sums = ResourceSums::from_context(row);
        sums.open > 0 || sums.collected > 0
    };
    let listed: Vec<_> = resources.rows.iter().filter(is_listed).collect();
    let rows = listed.iter().take(MAX_ROWS);
    let rows = rows.map(|row| open_row(profile, &resources, row));
    let table = FactTable {
        kind: OPENINGS.name,
        has_summary: true,
        tab: "open",
        title: "Open resources",
        says: note_with_limit(
            format!("{}.", summarize_resources(&resources)),
            listed.len(),
        ),
        columns: vec![
            FactColumn::new("Oldest", Some("ns")),
            FactColumn::new("Newest", Some("ns")),
            FactColumn::new("Open", Some("")),
            FactColumn::new("Opened", Some("")),
            FactColumn::new("Closed", Some("")),
            FactColumn::new("Never closed, collected", Some("")),
            FactColumn::new("Open by quarter of the run", None),
            FactColumn::new("Resource", None),
            FactColumn::new("Opened at", None),
        ],
        rows: rows.collect(),
    };
    (!resources.rows.is_empty()).then_some(table)
}

fn open_row(profile: &Profile, resources: &OpenedResources, row: &OpenedContext) -> FactRow {
    let sums = ResourceSums::from_context(row);
    let age_ns = |resource| resources.age_ms(resource).saturating_mul(1_000_000);
    let numbers = [
        row.open.first().map_or(0, age_ns),
        row.open.last().map_or(0, age_ns),
        sums.open,
        sums.opened,
        sums.closed,
        sums.collected,
    ];
    let quarters = resources.count_openings_by_part(row);
    let texts = [
        text_cell(&format_quarters(quarters)),
        text_cell(&row.type_name),
        place_cell(&row.trace),
    ];
    let numbers = numbers.into_iter().map(FactCell::Number);
    let openers = OpenerCounts::new(profile, row).to_lines();
    let openers = openers.iter().map(|line| format!("{line}\n"));
    FactRow {
        cells: numbers.chain(texts).collect(),
        trace: openers.chain([format_frames(&row.trace)]).collect(),
        is_last: row.kept_by_jdk,
    }
}

/// The part of the old generation that is divided among few lines, in percent.
const OLD_PART: f64 = 90.0;

/// How long samples of the heap live, by line of own code.
fn build_survival_table(profile: &Profile) -> Option<FactTable> {
    if !has_survival(profile) {
        return None;
    }
    let sampled = list_sampled_contexts(profile);
    let estimates = HeapEstimates::new(profile, &[], &sampled)?;
    let ids: Vec<_> = sampled.iter().map(|context| context.id).collect();
    let focus = profile.find_focus(&ids);
    let (own, foreign) = group_by_own_line(profile, sampled.iter().zip(&focus));
    let own = own
        .into_iter()
        .map(|(frame, contexts)| (frame.to_string(), contexts));
    let lines = own.chain([("without own code".to_owned(), foreign)]);
    let lines = lines.filter(|(_, contexts)| !contexts.is_empty());
    let lines = lines.map(|(name, contexts)| SurvivalLine {
        amount: estimates.line_amount(profile, &[], &contexts),
        largest: contexts.iter().max_by_key(|context| context.value).copied(),
        name,
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_key(|line| {
        let SurvivalAmount { old_bytes, .. } = line.survival();
        Reverse((old_bytes, line.amount.bytes))
    });
    let rows = lines.iter().take(MAX_ROWS);
    let table = FactTable {
        kind: ALLOC.name,
        has_summary: true,
        tab: "survival",
        title: "What survives",
        says: note_with_limit(
            summarize_survival(&estimates.total_amount(), &lines),
            lines.len(),
        ),
        columns: vec![
            FactColumn::new("Old", Some("bytes")),
            FactColumn::new("On the heap", Some("bytes")),
            FactColumn::new("Died young", Some("%")),
            FactColumn::new("Lived through", None),
            FactColumn::new("Line", None),
        ],
        rows: rows.map(|line| line.to_row(profile)).collect(),
    };
    (!lines.is_empty()).then_some(table)
}

/// Samples of one line.
struct SurvivalLine<'c> {
    name: String,
    amount: HeapAmount,
    largest: Option<&'c EventContext>,
}

impl SurvivalLine<'_> {
    fn survival(&self) -> SurvivalAmount {
        self.amount.survival.unwrap_or_default()
    }

    fn to_row(&self, profile: &Profile) -> FactRow {
        let (survival, bytes) = (self.survival(), self.amount.bytes);
        let lived = SURVIVED_COLLECTIONS.iter().zip(survival.lived_bytes);
        let lived = lived
            .map(|(collections, part)| format!("{collections}: {:.0}%", percent_of(part, bytes)));
        let lived = lived.collect::<Vec<_>>().join(", ");
        let trace = self
            .largest
            .and_then(|context| profile.decode_trace(context.id).ok());
        FactRow {
            cells: vec![
                FactCell::Number(survival.old_bytes),
                FactCell::Number(bytes),
                FactCell::Number(percent_of(survival.died_bytes, bytes).round() as u64),
                text_cell(&lived),
                text_cell(&self.name),
            ],
            trace: trace.map_or_else(String::new, |trace| format_frames(&trace)),
            is_last: false,
        }
    }
}

/// `97% of these bytes died young; 3 lines fill 91% of the old generation.` `lines`: most old bytes first.
fn summarize_survival(total: &HeapAmount, lines: &[SurvivalLine<'_>]) -> String {
    let survival = total.survival.unwrap_or_default();
    let died = percent_of(survival.died_bytes, total.bytes);
    let mut sum = 0_u64;
    let share = |sum| percent_of(sum, survival.old_bytes);
    let mut few = 0;
    for line in lines {
        if survival.old_bytes == 0 || share(sum) >= OLD_PART {
            break;
        }
        sum = sum.saturating_add(line.survival().old_bytes);
        few += 1;
    }
    let old = match few {
        0 => "nothing reached the old generation".to_owned(),
        few => format!(
            "{} {} {:.0}% of what reached the old generation ({})",
            format_plural(few, "line"),
            if few == 1 { "has" } else { "have" },
            share(sum),
            format_amount(survival.old_bytes as f64, "bytes")
        ),
    };
    format!("{died:.0}% of the sampled bytes died young; {old}.")
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
            totals.estimate_metaspace(),
            totals.alive_sized(),
            totals.loaders,
            totals.loaders_alive(),
        ];
        let numbers = numbers.into_iter().map(FactCell::Number);
        let texts = [text_cell(&row.loader), place_cell(&row.definition)];
        FactRow {
            cells: numbers.chain(texts).collect(),
            trace: format_frames(&row.definition),
            is_last: false,
        }
    });
    let table = FactTable {
        kind: CLASSES.name,
        has_summary: false,
        tab: "classes",
        title: "Who defines classes",
        says: note_with_limit(
            "By context and by the class of the loader. Bytes are those of class files. The metaspace of living classes is estimated from them, without hooks; hidden classes may have no bytes.".into(),
            classes.len(),
        ),
        columns: vec![
            FactColumn::new("Defined", Some("")),
            FactColumn::new("Hidden", Some("")),
            FactColumn::new("Generated", Some("")),
            FactColumn::new("Alive", Some("")),
            FactColumn::new("Bytes", Some("bytes")),
            FactColumn::new("Metaspace, about", Some("bytes")),
            FactColumn::new("Of classes", Some("")),
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
            is_last: false,
        }
    });
    let table = FactTable {
        kind: NAMED_TIME.first_name(),
        has_summary: false,
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

#[cfg(test)]
mod fact_tables_tests {
    use lucce_testkit::HEADER;

    use super::*;

    #[test]
    fn open_resources_have_their_ages_and_the_oldest_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("open.log");
        let read = |has_ended, now_ms| {
            let _run = lucce_testkit::open::open(&path, has_ended);
            let profile = Profile::open(&path).unwrap();
            build_open_table(&profile, now_ms).unwrap()
        };
        let lines = |oldest: [&str; 2], newest: &str| {
            let [first, second] = oldest;
            let rest = "resource: java.io.FileInputStream, opened at: app.Main.work(Main.java:";
            [
                format!(
                    "Open resources: 3 by 2 contexts, the oldest for {first}; 10 opened, 5 closed, 2 collected but never closed."
                ),
                format!(
                    "  oldest: {first}, newest: {newest}, open: 2, opened: 4, closed: 2, never closed, collected: 0, open by quarter of the run: 1 + 0 + 1 + 0, {rest}21)"
                ),
                format!(
                    "  oldest: {second}, newest: {second}, open: 1, opened: 3, closed: 2, never closed, collected: 0, open by quarter of the run: 0 + 1 + 0 + 0, {rest}21)"
                ),
                format!(
                    "  oldest: 0 ns, newest: 0 ns, open: 0, opened: 3, closed: 1, never closed, collected: 2, open by quarter of the run: 0 + 0 + 0 + 0, {rest}22)"
                ),
            ]
        };
        let table = read(true, None);
        assert_eq!(
            format_table(&table, 9),
            lines(["7.00 s", "6.00 s"], "3.00 s")
        );
        assert!(
            table.rows[0]
                .trace
                .starts_with("in main\n\tat app.Main.work(")
        );
        // While the JVM runs, ages are those of now.
        let now_ms = HEADER.start / 1_000_000 + 8_000;
        assert_eq!(
            format_table(&read(false, Some(now_ms)), 9),
            lines(["7.00 s", "6.00 s"], "3.00 s")
        );
    }
}
