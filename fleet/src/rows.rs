//! The rows of tables, as Arrow has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StringBuilder,
};

use lucce_contentid::StackId;

use crate::decoded::{Decoded, EventKey, FrameRow, StackRow, StreamRow, Sums};
use crate::error::Error;
use crate::layout::{Part, Table};

/// 32 hexadecimal digits, the highest first.
#[must_use]
pub fn hex(id: u128) -> String {
    let mut text = String::with_capacity(32);
    push_hex(&mut text, id);
    text
}

fn push_hex(text: &mut String, id: u128) {
    // Each table has many.
    let mut digits = [0_u8; 32];
    for (digits, byte) in digits.chunks_exact_mut(2).zip(id.to_be_bytes()) {
        for (digit, four) in digits.iter_mut().zip([byte >> 4, byte & 15]) {
            *digit = four + if four < 10 { b'0' } else { b'a' - 10 };
        }
    }
    text.push_str(std::str::from_utf8(&digits).unwrap_or_default());
}

fn ids(of: impl Iterator<Item = u128>) -> ArrayRef {
    let mut column = StringBuilder::new();
    let mut text = String::with_capacity(32);
    for id in of {
        text.clear();
        push_hex(&mut text, id);
        column.append_value(&text);
    }
    Arc::new(column.finish())
}

fn texts<'t>(of: impl Iterator<Item = &'t str>) -> ArrayRef {
    let mut column = StringBuilder::new();
    of.for_each(|text| column.append_value(text));
    Arc::new(column.finish())
}

fn numbers(of: impl Iterator<Item = u64>) -> ArrayRef {
    let of = of.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    Arc::new(Int64Array::from_iter_values(of))
}

fn maybe(of: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    let of = of.map(|number| number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)));
    Arc::new(Int64Array::from_iter(of))
}

fn batch(table: Table, columns: Vec<ArrayRef>) -> Result<RecordBatch, Error> {
    Ok(RecordBatch::try_new(table.schema(), columns)?)
}

/// A run, and how it is called in the dataset.
pub struct Labelled<'d> {
    pub decoded: &'d Decoded,
    pub part: &'d Part,
    pub version: &'d str,
    pub host: &'d str,
}

/// # Errors
/// Never: the columns are those of the table.
pub fn runs(runs: &[Labelled<'_>]) -> Result<RecordBatch, Error> {
    let mut runs: Vec<&Labelled<'_>> = runs.iter().collect();
    runs.sort_by_key(|run| (run.decoded.start_ms, &run.decoded.run));
    let meta = |key: &'static str| {
        texts(
            runs.iter()
                .map(move |run| run.decoded.meta.get(key).map_or("", String::as_str)),
        )
    };
    let decoded = || runs.iter().map(|run| run.decoded);
    let jdks = decoded().map(|run| jdk(run.meta.get("jvm").map_or("", String::as_str)));
    let contexts = decoded().map(|run| {
        let stacks: rustc_hash::FxHashSet<_> = run.events.keys().map(|key| key.stack).collect();
        stacks.len() as u64
    });
    let sampled = decoded().map(|run| run.meta.get("sampled.bytes")?.parse().ok());
    batch(
        Table::Runs,
        vec![
            texts(decoded().map(|run| run.run.as_str())),
            texts(runs.iter().map(|run| run.part.service.as_str())),
            texts(runs.iter().map(|run| run.part.day.as_str())),
            texts(runs.iter().map(|run| run.version)),
            texts(runs.iter().map(|run| run.host)),
            meta("jvm"),
            meta("jvm.name"),
            Arc::new(Int32Array::from_iter_values(jdks)),
            meta("command"),
            meta("options"),
            meta("lucce"),
            numbers(decoded().map(|run| run.start_ms)),
            maybe(decoded().map(|run| run.end_ms)),
            Arc::new(BooleanArray::from_iter(
                decoded().map(|run| Some(run.ended)),
            )),
            numbers(decoded().map(|_| 1)),
            numbers(contexts),
            numbers(decoded().map(Decoded::count)),
            numbers(decoded().map(|run| run.lost)),
            maybe(decoded().map(|run| run.coverage.map(|(counted, _)| counted))),
            maybe(decoded().map(|run| run.coverage.map(|(_, allocated)| allocated))),
            maybe(sampled),
            numbers(decoded().map(|run| run.log_bytes)),
        ],
    )
}

/// The JDK of a VM's version: `17.0.21+9`, `OpenJDK 17.0.21`, `1.8.0_392` for 8; 0: it does not say.
#[must_use]
pub fn jdk(version: &str) -> i32 {
    let from = version.find(|c: char| c.is_ascii_digit());
    let version = from
        .and_then(|from| version.get(from..))
        .unwrap_or_default();
    let version = version.strip_prefix("1.").unwrap_or(version);
    let end = version.find(|c: char| !c.is_ascii_digit());
    let major = version.get(..end.unwrap_or(version.len()));
    major.and_then(|major| major.parse().ok()).unwrap_or(0)
}

/// # Errors
/// Never: the columns are those of the table.
pub fn frames(rows: &[&FrameRow]) -> Result<RecordBatch, Error> {
    let mut rows = rows.to_vec();
    rows.sort_unstable_by_key(|row| (&row.class, &row.method, row.line, row.id));
    let rows = || rows.iter();
    batch(
        Table::Frames,
        vec![
            ids(rows().map(|row| row.id.0)),
            ids(rows().map(|row| row.by_method.0)),
            texts(rows().map(|row| row.class.as_str())),
            texts(rows().map(|row| row.method.as_str())),
            texts(rows().map(|row| row.descriptor.as_str())),
            Arc::new(StringArray::from_iter(
                rows().map(|row| row.file.as_deref()),
            )),
            Arc::new(Int32Array::from_iter_values(rows().map(|row| row.line))),
            texts(rows().map(|row| row.kind)),
        ],
    )
}

/// # Errors
/// Never: the columns are those of the table.
pub fn stacks(rows: &[StackRow]) -> Result<RecordBatch, Error> {
    let mut rows = rows.to_vec();
    rows.sort_unstable_by_key(|row| row.id);
    let rows = || rows.iter();
    let depths = rows().map(|row| i32::try_from(row.depth).unwrap_or(i32::MAX));
    batch(
        Table::Stacks,
        vec![
            ids(rows().map(|row| row.id.0)),
            ids(rows().map(|row| row.parent.0)),
            ids(rows().map(|row| row.frame.0)),
            Arc::new(Int32Array::from_iter_values(depths)),
            ids(rows().map(|row| row.by_method.0)),
            ids(rows().map(|row| row.application.0)),
        ],
    )
}

/// `rows`: stack, frame, caller, sorted.
///
/// # Errors
/// Never: the columns are those of the table.
pub fn through(rows: &[[u128; 3]]) -> Result<RecordBatch, Error> {
    let column = |at: usize| ids(rows.iter().filter_map(move |row| row.get(at)).copied());
    batch(Table::Through, vec![column(0), column(1), column(2)])
}

/// A run's counters.
pub struct Counted<'d> {
    pub run: &'d str,
    pub part: &'d Part,
    pub decoded: &'d Decoded,
    pub rows: Vec<(&'d EventKey, Sums)>,
}

impl<'d> Counted<'d> {
    /// The kinds' names, by number.
    fn kinds(&self) -> impl Iterator<Item = &'d str> + use<'d> {
        self.decoded.kinds.iter().map(|(name, _)| name.as_str())
    }
}

/// `table`: of events, or of those that were taken.
///
/// # Errors
/// Never: the columns are those of the table.
pub fn events(table: Table, runs: &[Counted<'_>]) -> Result<RecordBatch, Error> {
    let ranks = Ranks::of(runs);
    let mut rows: Vec<_> = runs
        .iter()
        .zip(&ranks.0)
        .flat_map(|(run, ranks)| {
            let rows = run.rows.iter();
            rows.map(move |(key, sums)| (ranks.place(key), (run, *key, *sums)))
        })
        .collect();
    // As the table is sorted.
    rows.sort_unstable_by_key(|(place, _)| *place);
    let rows = || rows.iter().map(|(_, row)| row);
    let kinds = || rows().map(|(run, key, _)| run.decoded.kind(key.event));
    batch(
        table,
        vec![
            texts(rows().map(|(run, ..)| run.run)),
            texts(rows().map(|(run, ..)| run.part.service.as_str())),
            texts(rows().map(|(run, ..)| run.part.day.as_str())),
            ids(rows().map(|(_, key, _)| key.stack.0)),
            texts(kinds().map(|(name, _)| name)),
            texts(kinds().map(|(_, unit)| unit)),
            texts(rows().map(|(run, key, _)| run.decoded.texts.get(key.of))),
            texts(rows().map(|(_, key, _)| thread_kind(key.is_virtual))),
            texts(rows().map(|(run, key, _)| run.decoded.texts.get(key.tags))),
            numbers(rows().map(|(.., sums)| sums.count)),
            numbers(rows().map(|(.., sums)| sums.value)),
        ],
    )
}

/// Where texts stand among those of all runs of a batch: rows are sorted by numbers, for there are many of them and few texts.
struct Ranks(Vec<OfRun>);

/// By the run's own numbers of kinds and texts.
struct OfRun {
    run: u32,
    kinds: Vec<u32>,
    texts: Vec<u32>,
}

impl Ranks {
    fn of(runs: &[Counted<'_>]) -> Ranks {
        let all_runs = ranks(runs.iter().map(|run| run.run));
        let all_kinds = ranks(runs.iter().flat_map(Counted::kinds));
        let all_texts = ranks(runs.iter().flat_map(|run| run.decoded.texts.iter()));
        let rank = |all: &BTreeMap<&str, u32>, text: &str| all.get(text).copied().unwrap_or(0);
        let of = runs.iter().map(|run| {
            let texts = run.decoded.texts.iter();
            OfRun {
                run: rank(&all_runs, run.run),
                kinds: run.kinds().map(|text| rank(&all_kinds, text)).collect(),
                texts: texts.map(|text| rank(&all_texts, text)).collect(),
            }
        });
        Ranks(of.collect())
    }
}

impl OfRun {
    fn place(&self, key: &EventKey) -> (u32, StackId, u32, bool, u32, u32) {
        let rank = |ranks: &[u32], number: u32| ranks.get(number as usize).copied().unwrap_or(0);
        (
            rank(&self.kinds, key.event),
            key.stack,
            rank(&self.texts, key.of),
            key.is_virtual,
            rank(&self.texts, key.tags),
            self.run,
        )
    }
}

/// Different texts, with their places in their order.
fn ranks<'t>(texts: impl Iterator<Item = &'t str>) -> BTreeMap<&'t str, u32> {
    let different: BTreeSet<&str> = texts.collect();
    different.into_iter().zip(0..).collect()
}

#[must_use]
pub fn thread_kind(is_virtual: bool) -> &'static str {
    match is_virtual {
        true => "virtual",
        false => "platform",
    }
}

/// # Errors
/// Never: the columns are those of the table.
pub fn of_numbers(runs: &[(&Decoded, &Part)]) -> Result<RecordBatch, Error> {
    let mut runs = runs.to_vec();
    runs.sort_by_key(|(run, _)| &run.run);
    let mut rows: Vec<(&Decoded, &Part, &(u64, StackId))> = Vec::new();
    for (run, part) in runs {
        let from = rows.len();
        rows.extend(run.numbers.iter().map(|row| (run, part, row)));
        // The 64 bits of the number, the highest as the sign: the column is sorted as it is.
        if let Some(own) = rows.get_mut(from..) {
            own.sort_unstable_by_key(|(.., (number, _))| number.cast_signed());
        }
    }
    let rows = || rows.iter();
    let bits = rows().map(|(.., (number, _))| number.cast_signed());
    batch(
        Table::Numbers,
        vec![
            texts(rows().map(|(run, ..)| run.run.as_str())),
            texts(rows().map(|(_, part, _)| part.service.as_str())),
            texts(rows().map(|(_, part, _)| part.day.as_str())),
            Arc::new(Int64Array::from_iter_values(bits)),
            ids(rows().map(|(.., (_, stack))| stack.0)),
        ],
    )
}

/// # Errors
/// Never: the columns are those of the table.
pub fn stream(runs: &[(&Decoded, &Part)]) -> Result<RecordBatch, Error> {
    let rows = runs
        .iter()
        .flat_map(|(run, part)| run.stream.iter().map(move |row| (*run, *part, row)));
    let mut rows: Vec<(&Decoded, &Part, &StreamRow)> = rows.collect();
    rows.sort_by_key(|(run, _, row)| (row.time, &run.run, run.texts.get(row.thread)));
    let rows = || rows.iter();
    let kinds = rows().map(|(run, _, row)| run.kind(row.event).0);
    batch(
        Table::Stream,
        vec![
            texts(rows().map(|(run, ..)| run.run.as_str())),
            texts(rows().map(|(_, part, _)| part.service.as_str())),
            texts(rows().map(|(_, part, _)| part.day.as_str())),
            numbers(rows().map(|(.., row)| row.time)),
            texts(rows().map(|(run, _, row)| run.texts.get(row.thread))),
            ids(rows().map(|(.., row)| row.stack.0)),
            texts(kinds),
            texts(rows().map(|(run, _, row)| run.texts.get(row.of))),
            Arc::new(Int64Array::from_iter_values(
                rows().map(|(.., row)| row.value),
            )),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_vms_name_their_jdk() {
        let of = [
            "17.0.21+9-LTS",
            "OpenJDK 21.0.2",
            "25.392-b08",
            "1.8.0_392",
            "25+36",
            "",
        ]
        .map(jdk);
        assert_eq!(of, [17, 21, 25, 8, 25, 0]);
    }

    #[test]
    fn ids_are_shown_with_all_their_digits() {
        assert_eq!(hex(0xab), format!("{:032x}", 0xab));
        assert_eq!(hex(u128::MAX), "f".repeat(32));
    }
}
