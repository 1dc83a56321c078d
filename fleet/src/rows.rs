//! The rows of tables, as Arrow has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StringBuilder,
};

use lucce_contentid::StackId;

use crate::decoded_run::{DecodedRun, EventKey, EventSums, FrameRow, StackRow, StreamRow};
use crate::error::FleetError;
use crate::layout::{DatasetPartition, DatasetTable};

/// 32 hexadecimal digits, the highest first.
#[must_use]
pub fn to_hex(id: u128) -> String {
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

fn id_column(of: impl Iterator<Item = u128>) -> ArrayRef {
    let mut column = StringBuilder::new();
    let mut text = String::with_capacity(32);
    for id in of {
        text.clear();
        push_hex(&mut text, id);
        column.append_value(&text);
    }
    Arc::new(column.finish())
}

fn text_column<'t>(of: impl Iterator<Item = &'t str>) -> ArrayRef {
    let mut column = StringBuilder::new();
    of.for_each(|text| column.append_value(text));
    Arc::new(column.finish())
}

fn number_column(of: impl Iterator<Item = u64>) -> ArrayRef {
    let of = of.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    Arc::new(Int64Array::from_iter_values(of))
}

fn optional_number_column(of: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    let of = of.map(|number| number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)));
    Arc::new(Int64Array::from_iter(of))
}

fn table_batch(table: DatasetTable, columns: Vec<ArrayRef>) -> Result<RecordBatch, FleetError> {
    Ok(RecordBatch::try_new(table.schema(), columns)?)
}

/// A run, and how it is called in the dataset.
pub struct RunRow<'d> {
    pub decoded: &'d DecodedRun,
    pub part: &'d DatasetPartition,
    pub version: &'d str,
    pub host: &'d str,
}

/// # Errors
/// Never: the columns are those of the table.
pub fn run_batch(runs: &[RunRow<'_>]) -> Result<RecordBatch, FleetError> {
    let mut runs: Vec<&RunRow<'_>> = runs.iter().collect();
    runs.sort_by_key(|run| (run.decoded.start_ms, &run.decoded.run));
    let meta = |key: &'static str| {
        text_column(
            runs.iter()
                .map(move |run| run.decoded.meta.get(key).map_or("", String::as_str)),
        )
    };
    let decoded = || runs.iter().map(|run| run.decoded);
    let jdks = decoded().map(|run| jdk_version(run.meta.get("jvm").map_or("", String::as_str)));
    let contexts = decoded().map(|run| {
        let stacks: rustc_hash::FxHashSet<_> = run.events.keys().map(|key| key.stack).collect();
        stacks.len() as u64
    });
    let sampled = decoded().map(|run| run.meta.get("sampled.bytes")?.parse().ok());
    table_batch(
        DatasetTable::Runs,
        vec![
            text_column(decoded().map(|run| run.run.as_str())),
            text_column(runs.iter().map(|run| run.part.service.as_str())),
            text_column(runs.iter().map(|run| run.part.day.as_str())),
            text_column(runs.iter().map(|run| run.version)),
            text_column(runs.iter().map(|run| run.host)),
            meta("jvm"),
            meta("jvm.name"),
            Arc::new(Int32Array::from_iter_values(jdks)),
            meta("command"),
            meta("options"),
            meta("lucce"),
            number_column(decoded().map(|run| run.start_ms)),
            optional_number_column(decoded().map(|run| run.end_ms)),
            Arc::new(BooleanArray::from_iter(
                decoded().map(|run| Some(run.ended)),
            )),
            number_column(decoded().map(|_| 1)),
            number_column(contexts),
            number_column(decoded().map(DecodedRun::event_count)),
            number_column(decoded().map(|run| run.dropped)),
            optional_number_column(decoded().map(|run| run.coverage.map(|(counted, _)| counted))),
            optional_number_column(
                decoded().map(|run| run.coverage.map(|(_, allocated)| allocated)),
            ),
            optional_number_column(sampled),
            number_column(decoded().map(|run| run.log_bytes)),
        ],
    )
}

/// The JDK of a VM's version: `17.0.21+9`, `OpenJDK 17.0.21`, `1.8.0_392` for 8; 0: it does not say.
#[must_use]
pub fn jdk_version(version: &str) -> i32 {
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
pub fn frame_batch(rows: &[&FrameRow]) -> Result<RecordBatch, FleetError> {
    let mut rows = rows.to_vec();
    rows.sort_unstable_by_key(|row| (&row.class, &row.method, row.line, row.id));
    let rows = || rows.iter();
    table_batch(
        DatasetTable::Frames,
        vec![
            id_column(rows().map(|row| row.id.0)),
            id_column(rows().map(|row| row.by_method.0)),
            text_column(rows().map(|row| row.class.as_str())),
            text_column(rows().map(|row| row.method.as_str())),
            text_column(rows().map(|row| row.descriptor.as_str())),
            Arc::new(StringArray::from_iter(
                rows().map(|row| row.file.as_deref()),
            )),
            Arc::new(Int32Array::from_iter_values(rows().map(|row| row.line))),
            text_column(rows().map(|row| row.kind)),
        ],
    )
}

/// # Errors
/// Never: the columns are those of the table.
pub fn stack_batch(rows: &[StackRow]) -> Result<RecordBatch, FleetError> {
    let mut rows = rows.to_vec();
    rows.sort_unstable_by_key(|row| row.id);
    let rows = || rows.iter();
    let depths = rows().map(|row| i32::try_from(row.depth).unwrap_or(i32::MAX));
    table_batch(
        DatasetTable::Stacks,
        vec![
            id_column(rows().map(|row| row.id.0)),
            id_column(rows().map(|row| row.parent.0)),
            id_column(rows().map(|row| row.frame.0)),
            Arc::new(Int32Array::from_iter_values(depths)),
            id_column(rows().map(|row| row.by_method.0)),
            id_column(rows().map(|row| row.application.0)),
        ],
    )
}

/// `rows`: stack, frame, caller, sorted.
///
/// # Errors
/// Never: the columns are those of the table.
pub fn frame_index_batch(rows: &[[u128; 3]]) -> Result<RecordBatch, FleetError> {
    let column = |at: usize| id_column(rows.iter().filter_map(move |row| row.get(at)).copied());
    table_batch(DatasetTable::Through, vec![column(0), column(1), column(2)])
}

/// A run's counters.
pub struct RunEventRows<'d> {
    pub run: &'d str,
    pub part: &'d DatasetPartition,
    pub decoded: &'d DecodedRun,
    pub rows: Vec<(&'d EventKey, EventSums)>,
}

impl<'d> RunEventRows<'d> {
    /// The kinds' names, by number.
    fn kind_names(&self) -> impl Iterator<Item = &'d str> + use<'d> {
        self.decoded.kinds.iter().map(|(name, _)| name.as_str())
    }
}

/// `table`: of events, or of those that were taken.
///
/// # Errors
/// Never: the columns are those of the table.
pub fn event_batch(
    table: DatasetTable,
    runs: &[RunEventRows<'_>],
) -> Result<RecordBatch, FleetError> {
    let ranks = TextRanks::from_runs(runs);
    let mut rows: Vec<_> = runs
        .iter()
        .zip(&ranks.0)
        .flat_map(|(run, ranks)| {
            let rows = run.rows.iter();
            rows.map(move |(key, sums)| (ranks.sort_key(key), (run, *key, *sums)))
        })
        .collect();
    // As the table is sorted.
    rows.sort_unstable_by_key(|(place, _)| *place);
    let rows = || rows.iter().map(|(_, row)| row);
    let kinds = || rows().map(|(run, key, _)| run.decoded.event_kind(key.event));
    table_batch(
        table,
        vec![
            text_column(rows().map(|(run, ..)| run.run)),
            text_column(rows().map(|(run, ..)| run.part.service.as_str())),
            text_column(rows().map(|(run, ..)| run.part.day.as_str())),
            id_column(rows().map(|(_, key, _)| key.stack.0)),
            text_column(kinds().map(|(name, _)| name)),
            text_column(kinds().map(|(_, unit)| unit)),
            text_column(rows().map(|(run, key, _)| run.decoded.texts.get(key.type_number))),
            text_column(rows().map(|(_, key, _)| thread_kind(key.is_virtual))),
            text_column(rows().map(|(run, key, _)| run.decoded.texts.get(key.tags))),
            number_column(rows().map(|(.., sums)| sums.count)),
            number_column(rows().map(|(.., sums)| sums.value)),
        ],
    )
}

/// Where texts stand among those of all runs of a batch: rows are sorted by numbers, for there are many of them and few texts.
struct TextRanks(Vec<RunTextRanks>);

/// By the run's own numbers of kinds and texts.
struct RunTextRanks {
    run: u32,
    kinds: Vec<u32>,
    texts: Vec<u32>,
}

impl TextRanks {
    fn from_runs(runs: &[RunEventRows<'_>]) -> TextRanks {
        let all_runs = rank_texts(runs.iter().map(|run| run.run));
        let all_kinds = rank_texts(runs.iter().flat_map(RunEventRows::kind_names));
        let all_texts = rank_texts(runs.iter().flat_map(|run| run.decoded.texts.iter()));
        let rank = |all: &BTreeMap<&str, u32>, text: &str| all.get(text).copied().unwrap_or(0);
        let of = runs.iter().map(|run| {
            let texts = run.decoded.texts.iter();
            RunTextRanks {
                run: rank(&all_runs, run.run),
                kinds: run
                    .kind_names()
                    .map(|text| rank(&all_kinds, text))
                    .collect(),
                texts: texts.map(|text| rank(&all_texts, text)).collect(),
            }
        });
        TextRanks(of.collect())
    }
}

impl RunTextRanks {
    fn sort_key(&self, key: &EventKey) -> (u32, StackId, u32, bool, u32, u32) {
        let rank = |ranks: &[u32], number: u32| ranks.get(number as usize).copied().unwrap_or(0);
        (
            rank(&self.kinds, key.event),
            key.stack,
            rank(&self.texts, key.type_number),
            key.is_virtual,
            rank(&self.texts, key.tags),
            self.run,
        )
    }
}

/// Different texts, with their places in their order.
fn rank_texts<'t>(texts: impl Iterator<Item = &'t str>) -> BTreeMap<&'t str, u32> {
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
pub fn number_batch(runs: &[(&DecodedRun, &DatasetPartition)]) -> Result<RecordBatch, FleetError> {
    let mut runs = runs.to_vec();
    runs.sort_by_key(|(run, _)| &run.run);
    let mut rows: Vec<(&DecodedRun, &DatasetPartition, &(u64, StackId))> = Vec::new();
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
    table_batch(
        DatasetTable::Numbers,
        vec![
            text_column(rows().map(|(run, ..)| run.run.as_str())),
            text_column(rows().map(|(_, part, _)| part.service.as_str())),
            text_column(rows().map(|(_, part, _)| part.day.as_str())),
            Arc::new(Int64Array::from_iter_values(bits)),
            id_column(rows().map(|(.., (_, stack))| stack.0)),
        ],
    )
}

/// # Errors
/// Never: the columns are those of the table.
pub fn stream_batch(runs: &[(&DecodedRun, &DatasetPartition)]) -> Result<RecordBatch, FleetError> {
    let rows = runs
        .iter()
        .flat_map(|(run, part)| run.stream.iter().map(move |row| (*run, *part, row)));
    let mut rows: Vec<(&DecodedRun, &DatasetPartition, &StreamRow)> = rows.collect();
    rows.sort_by_key(|(run, _, row)| (row.time, &run.run, run.texts.get(row.thread)));
    let rows = || rows.iter();
    let kinds = rows().map(|(run, _, row)| run.event_kind(row.event).0);
    table_batch(
        DatasetTable::Stream,
        vec![
            text_column(rows().map(|(run, ..)| run.run.as_str())),
            text_column(rows().map(|(_, part, _)| part.service.as_str())),
            text_column(rows().map(|(_, part, _)| part.day.as_str())),
            number_column(rows().map(|(.., row)| row.time)),
            text_column(rows().map(|(run, _, row)| run.texts.get(row.thread))),
            id_column(rows().map(|(.., row)| row.stack.0)),
            text_column(kinds),
            text_column(rows().map(|(run, _, row)| run.texts.get(row.type_number))),
            Arc::new(Int64Array::from_iter_values(
                rows().map(|(.., row)| row.value),
            )),
        ],
    )
}

#[cfg(test)]
mod rows_tests {
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
        .map(jdk_version);
        assert_eq!(of, [17, 21, 25, 8, 25, 0]);
    }

    #[test]
    fn ids_are_shown_with_all_their_digits() {
        assert_eq!(to_hex(0xab), format!("{:032x}", 0xab));
        assert_eq!(to_hex(u128::MAX), "f".repeat(32));
    }
}
