//! Rows of a question as the page of `lucce view`: the paths that they name, with their sums.

use std::io;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{CodeOrigin, PathSum, StackFrame};
use lucce_page::{HtmlPage, RunText};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::engine::QueryEngine;
use crate::error::FleetError;
use crate::questions::{ParameterValue, Question};

/// Answers with more rows have no page.
const MAX_ROWS: usize = 100_000;
/// Of a dataset with more paths there are none: all of them are looked through, at about 50 bytes each.
const MAX_STACKS: usize = 8_000_000;
/// What is alive is a kind of event, too.
const LIVE_OBJECTS: &str = "inuse";

/// A row.
struct PageRow {
    stack: Option<u128>,
    /// Without a stack: the only frame that is known.
    frame: StackFrame,
    kind: String,
    unit: Option<String>,
    what: Option<String>,
    service: Option<String>,
    count: u64,
    /// One, or those before and behind.
    values: Vec<u64>,
}

/// The page of a question.
///
/// # Errors
/// Those of the engine; the question's rows have no stacks; there are too many.
pub fn render_page(
    engine: &QueryEngine,
    question: &Question,
    parameters: &[ParameterValue],
) -> Result<String, FleetError> {
    let rows = query_rows(engine, question, parameters)?;
    let paths = query_paths(engine, &rows)?;
    let units = query_units(engine)?;
    let sides = rows.iter().map(|row| row.values.len()).max().unwrap_or(1);
    let mut page = HtmlPage::default();
    for side in 0..sides {
        let sums: Vec<PathSum> = rows
            .iter()
            .filter_map(|row| path_sum(row, side, &paths, &units))
            .collect();
        page.add_paths(run_text(question, parameters, side, sides), &sums);
    }
    Ok(page.to_html())
}

type Path = Vec<(StackFrame, String)>;

fn path_sum(
    row: &PageRow,
    side: usize,
    paths: &FxHashMap<u128, Path>,
    units: &FxHashMap<String, String>,
) -> Option<PathSum> {
    let value = row.values.get(side).copied()?;
    let compared = row.values.len() > 1;
    let path = row.stack.and_then(|stack| paths.get(&stack).cloned());
    let unit = row.unit.as_ref().or_else(|| units.get(&row.kind));
    Some(PathSum {
        frames: path.unwrap_or_else(|| vec![(row.frame.clone(), String::new())]),
        kind: row.kind.clone(),
        unit: unit.cloned().unwrap_or_default(),
        what: row.what.clone(),
        tags: row
            .service
            .as_ref()
            .map(|service| format!("service={service}"))
            .unwrap_or_default(),
        count: match compared {
            true => u64::from(value > 0),
            false => row.count,
        },
        value,
    })
}

fn run_text(
    question: &Question,
    parameters: &[ParameterValue],
    side: usize,
    sides: usize,
) -> RunText {
    let given = parameters.iter().map(|parameter| {
        format!(
            "{}={}",
            EscapedText(&parameter.name),
            EscapedText(&parameter.value)
        )
    });
    let name = match (sides, side) {
        (1, _) => question.name.to_owned(),
        (_, 0) => format!("{} before", question.name),
        _ => format!("{} behind", question.name),
    };
    let mut notes = vec![question.description().to_owned()];
    if sides > 1 {
        notes.push("Values are those of a run; counts are rows of the answer.".into());
    }
    RunText {
        file: name,
        command: Some(given.collect::<Vec<_>>().join(" ")),
        ended: true,
        notes,
        ..RunText::default()
    }
}

fn query_rows(
    engine: &QueryEngine,
    question: &Question,
    parameters: &[ParameterValue],
) -> Result<Vec<PageRow>, FleetError> {
    let given = |name: &str| {
        let mut all = parameters.iter();
        all.find(|parameter| parameter.name == name)
            .map(|parameter| parameter.value.clone())
    };
    let event = given("event").unwrap_or_else(|| LIVE_OBJECTS.to_owned());
    let mut rows = Vec::new();
    engine.run_query(question.sql, &mut |columns, batch| {
        let has = |name: &str| columns.field_with_name(name).is_ok();
        let names_stacks = has("stack_id") || has("class") && has("method");
        if !names_stacks {
            return Err(FleetError::Absent(format!(
                "rows of {0} name no stacks: /ask/{0} has them",
                question.name
            )));
        }
        let Some(batch) = batch else { return Ok(()) };
        if rows.len() + batch.num_rows() > MAX_ROWS {
            return Err(too_many("rows", MAX_ROWS));
        }
        let table = BatchColumns(batch);
        let [stack, class, method, kind, unit, what, service] = [
            "stack_id", "class", "method", "event", "unit", "type", "service",
        ]
        .map(|name| table.text_column(name));
        let [line, events, objects, amount, bytes, before, behind] = [
            "line",
            "events",
            "objects",
            "amount",
            "bytes",
            "before_per_run",
            "behind_per_run",
        ]
        .map(|name| table.number_column(name));
        let counts = events.or(objects);
        let values = amount.or(bytes);
        for at in 0..batch.num_rows() {
            let text = |column: &Option<ArrayRef>| {
                let column = column.as_ref()?.as_string_opt::<i32>()?;
                column.is_valid(at).then(|| column.value(at).to_owned())
            };
            let number = |column: &Option<ArrayRef>| {
                let column = column.as_ref()?.as_primitive_opt::<Int64Type>()?;
                column.is_valid(at).then(|| column.value(at))
            };
            let amount = |column| number(column).unwrap_or(0).max(0) as u64;
            let class = text(&class).unwrap_or_default();
            rows.push(PageRow {
                stack: text(&stack).and_then(|id| parse_id(&id)),
                frame: StackFrame {
                    origin: CodeOrigin::from_foreign_name(&class),
                    class,
                    method: text(&method).unwrap_or_default(),
                    file: None,
                    line: number(&line)
                        .and_then(|line| i32::try_from(line).ok())
                        .unwrap_or(StackFrame::UNKNOWN),
                },
                kind: text(&kind).unwrap_or_else(|| event.clone()),
                unit: text(&unit),
                what: text(&what).filter(|what| !what.is_empty()),
                service: text(&service),
                count: amount(&counts),
                values: match before.is_some() && behind.is_some() {
                    true => vec![amount(&before), amount(&behind)],
                    false => vec![amount(&values)],
                },
            });
        }
        Ok(())
    })?;
    Ok(rows)
}

/// The paths of the rows.
fn query_paths(
    engine: &QueryEngine,
    rows: &[PageRow],
) -> Result<FxHashMap<u128, Path>, FleetError> {
    let wanted: FxHashSet<u128> = rows.iter().filter_map(|row| row.stack).collect();
    if wanted.is_empty() {
        return Ok(FxHashMap::default());
    }
    let mut steps: FxHashMap<u128, (u128, u128)> = FxHashMap::default();
    let sql = "SELECT stack_id, parent_id, frame_id FROM stacks";
    engine.run_query(sql, &mut |_, batch| {
        let Some(batch) = batch else { return Ok(()) };
        if steps.len() + batch.num_rows() > MAX_STACKS {
            return Err(too_many("paths in the dataset", MAX_STACKS));
        }
        for [stack, parent, frame] in text_rows(batch, ["stack_id", "parent_id", "frame_id"]) {
            if let (Some(stack), Some(parent), Some(frame)) =
                (parse_id(&stack), parse_id(&parent), parse_id(&frame))
            {
                steps.insert(stack, (parent, frame));
            }
        }
        Ok(())
    })?;
    let ids = |stack: u128| {
        let step = |at: &u128| steps.get(at).copied();
        let mut frames = Vec::new();
        let mut at = stack;
        // No path is longer than there are steps, however damaged they are.
        while let Some((parent, frame)) = step(&at).filter(|_| frames.len() < steps.len()) {
            frames.push(frame);
            at = parent;
        }
        frames.reverse();
        frames
    };
    let chains: FxHashMap<u128, Vec<u128>> =
        wanted.iter().map(|stack| (*stack, ids(*stack))).collect();
    let named = query_frames(engine, &chains.values().flatten().copied().collect())?;
    let path = |ids: Vec<u128>| ids.iter().filter_map(|id| named.get(id).cloned()).collect();
    Ok(chains
        .into_iter()
        .map(|(stack, ids)| (stack, path(ids)))
        .collect())
}

fn query_frames(
    engine: &QueryEngine,
    wanted: &FxHashSet<u128>,
) -> Result<FxHashMap<u128, (StackFrame, String)>, FleetError> {
    let mut named = FxHashMap::default();
    let sql = "SELECT frame_id, class, method, descriptor, file, line FROM frames";
    engine.run_query(sql, &mut |_, batch| {
        let Some(batch) = batch else { return Ok(()) };
        let columns = ["frame_id", "class", "method", "descriptor", "file"];
        let lines = BatchColumns(batch).number_column("line");
        let lines = lines
            .as_ref()
            .and_then(|column| column.as_primitive_opt::<Int64Type>());
        for (at, [id, class, method, descriptor, file]) in
            text_rows(batch, columns).into_iter().enumerate()
        {
            let Some(id) = parse_id(&id).filter(|id| wanted.contains(id)) else {
                continue;
            };
            let line = lines.map_or(-1, |lines| lines.value(at));
            let frame = StackFrame {
                origin: CodeOrigin::from_foreign_name(&class),
                class,
                method,
                file: (!file.is_empty()).then_some(file),
                line: i32::try_from(line).unwrap_or(StackFrame::UNKNOWN),
            };
            named.insert(id, (frame, descriptor));
        }
        Ok(())
    })?;
    Ok(named)
}

/// By kind of event.
fn query_units(engine: &QueryEngine) -> Result<FxHashMap<String, String>, FleetError> {
    let mut units = FxHashMap::default();
    for batch in engine.collect_rows("SELECT DISTINCT event, unit FROM events")? {
        for [event, unit] in text_rows(&batch, ["event", "unit"]) {
            units.insert(event, unit);
        }
    }
    Ok(units)
}

struct BatchColumns<'b>(&'b RecordBatch);

impl BatchColumns<'_> {
    fn cast_column(&self, name: &str, kind: &DataType) -> Option<ArrayRef> {
        cast(self.0.column_by_name(name)?, kind).ok()
    }

    fn text_column(&self, name: &str) -> Option<ArrayRef> {
        self.cast_column(name, &DataType::Utf8)
    }

    fn number_column(&self, name: &str) -> Option<ArrayRef> {
        self.cast_column(name, &DataType::Int64)
    }
}

/// Of each row; what is not known is empty.
fn text_rows<const N: usize>(batch: &RecordBatch, names: [&str; N]) -> Vec<[String; N]> {
    let columns = names.map(|name| BatchColumns(batch).text_column(name));
    let texts = columns
        .each_ref()
        .map(|column| column.as_ref()?.as_string_opt::<i32>());
    let row = |at: usize| {
        texts.map(|column| {
            let column = column.filter(|column| column.is_valid(at));
            column.map_or_else(String::new, |column| column.value(at).to_owned())
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

fn parse_id(text: &str) -> Option<u128> {
    u128::from_str_radix(text, 16).ok()
}

fn too_many(what: &str, most: usize) -> FleetError {
    FleetError::Output(io::Error::other(format!("more than {most} {what}")))
}
