//! Rows of a question as the page of `lucce view`: the paths that they name, with their sums.

use std::io;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use lucce_decoder::escape::Text;
use lucce_decoder::{Page, PathSum, RunText, StackFrame};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::engine::Engine;
use crate::error::Error;
use crate::questions::{Parameter, Question};

/// Answers with more rows have no page.
const ROWS: usize = 100_000;
/// Of a dataset with more paths there are none: all of them are looked through, at about 50 bytes each.
const STACKS: usize = 8_000_000;
/// What is alive is a kind of event, too.
const INUSE: &str = "inuse";

/// A row.
struct Row {
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
pub fn of(engine: &Engine, question: &Question, parameters: &[Parameter]) -> Result<String, Error> {
    let rows = rows(engine, question, parameters)?;
    let paths = paths(engine, &rows)?;
    let units = units(engine)?;
    let sides = rows.iter().map(|row| row.values.len()).max().unwrap_or(1);
    let mut page = Page::default();
    for side in 0..sides {
        let sums: Vec<PathSum> = rows
            .iter()
            .filter_map(|row| sum(row, side, &paths, &units))
            .collect();
        page.add_paths(text(question, parameters, side, sides), &sums);
    }
    Ok(page.html())
}

type Path = Vec<(StackFrame, String)>;

fn sum(
    row: &Row,
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

fn text(question: &Question, parameters: &[Parameter], side: usize, sides: usize) -> RunText {
    let given = parameters
        .iter()
        .map(|parameter| format!("{}={}", Text(&parameter.name), Text(&parameter.value)));
    let name = match (sides, side) {
        (1, _) => question.name.to_owned(),
        (_, 0) => format!("{} before", question.name),
        _ => format!("{} behind", question.name),
    };
    let mut notes = vec![question.about().to_owned()];
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

fn rows(engine: &Engine, question: &Question, parameters: &[Parameter]) -> Result<Vec<Row>, Error> {
    let given = |name: &str| {
        let mut all = parameters.iter();
        all.find(|parameter| parameter.name == name)
            .map(|parameter| parameter.value.clone())
    };
    let event = given("event").unwrap_or_else(|| INUSE.to_owned());
    let mut rows = Vec::new();
    engine.ask(question.sql, &mut |columns, batch| {
        let has = |name: &str| columns.field_with_name(name).is_ok();
        let names_stacks = has("stack_id") || has("class") && has("method");
        if !names_stacks {
            return Err(Error::Absent(format!(
                "rows of {0} name no stacks: /ask/{0} has them",
                question.name
            )));
        }
        let Some(batch) = batch else { return Ok(()) };
        if rows.len() + batch.num_rows() > ROWS {
            return Err(too_many("rows", ROWS));
        }
        let table = Columns(batch);
        let [stack, class, method, kind, unit, what, service] = [
            "stack_id", "class", "method", "event", "unit", "type", "service",
        ]
        .map(|name| table.text(name));
        let [line, events, objects, amount, bytes, before, behind] = [
            "line",
            "events",
            "objects",
            "amount",
            "bytes",
            "before_per_run",
            "behind_per_run",
        ]
        .map(|name| table.number(name));
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
            rows.push(Row {
                stack: text(&stack).and_then(|id| id_of(&id)),
                frame: StackFrame {
                    class: text(&class).unwrap_or_default(),
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
fn paths(engine: &Engine, rows: &[Row]) -> Result<FxHashMap<u128, Path>, Error> {
    let wanted: FxHashSet<u128> = rows.iter().filter_map(|row| row.stack).collect();
    if wanted.is_empty() {
        return Ok(FxHashMap::default());
    }
    let mut steps: FxHashMap<u128, (u128, u128)> = FxHashMap::default();
    let sql = "SELECT stack_id, parent_id, frame_id FROM stacks";
    engine.ask(sql, &mut |_, batch| {
        let Some(batch) = batch else { return Ok(()) };
        if steps.len() + batch.num_rows() > STACKS {
            return Err(too_many("paths in the dataset", STACKS));
        }
        for [stack, parent, frame] in texts(batch, ["stack_id", "parent_id", "frame_id"]) {
            if let (Some(stack), Some(parent), Some(frame)) =
                (id_of(&stack), id_of(&parent), id_of(&frame))
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
    let named = frames(engine, &chains.values().flatten().copied().collect())?;
    let path = |ids: Vec<u128>| ids.iter().filter_map(|id| named.get(id).cloned()).collect();
    Ok(chains
        .into_iter()
        .map(|(stack, ids)| (stack, path(ids)))
        .collect())
}

fn frames(
    engine: &Engine,
    wanted: &FxHashSet<u128>,
) -> Result<FxHashMap<u128, (StackFrame, String)>, Error> {
    let mut named = FxHashMap::default();
    let sql = "SELECT frame_id, class, method, descriptor, file, line FROM frames";
    engine.ask(sql, &mut |_, batch| {
        let Some(batch) = batch else { return Ok(()) };
        let columns = ["frame_id", "class", "method", "descriptor", "file"];
        let lines = Columns(batch).number("line");
        let lines = lines
            .as_ref()
            .and_then(|column| column.as_primitive_opt::<Int64Type>());
        for (at, [id, class, method, descriptor, file]) in
            texts(batch, columns).into_iter().enumerate()
        {
            let Some(id) = id_of(&id).filter(|id| wanted.contains(id)) else {
                continue;
            };
            let line = lines.map_or(-1, |lines| lines.value(at));
            let frame = StackFrame {
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
fn units(engine: &Engine) -> Result<FxHashMap<String, String>, Error> {
    let mut units = FxHashMap::default();
    for batch in engine.rows("SELECT DISTINCT event, unit FROM events")? {
        for [event, unit] in texts(&batch, ["event", "unit"]) {
            units.insert(event, unit);
        }
    }
    Ok(units)
}

struct Columns<'b>(&'b RecordBatch);

impl Columns<'_> {
    fn of(&self, name: &str, kind: &DataType) -> Option<ArrayRef> {
        cast(self.0.column_by_name(name)?, kind).ok()
    }

    fn text(&self, name: &str) -> Option<ArrayRef> {
        self.of(name, &DataType::Utf8)
    }

    fn number(&self, name: &str) -> Option<ArrayRef> {
        self.of(name, &DataType::Int64)
    }
}

/// Of each row; what is not known is empty.
fn texts<const N: usize>(batch: &RecordBatch, names: [&str; N]) -> Vec<[String; N]> {
    let columns = names.map(|name| Columns(batch).text(name));
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

fn id_of(text: &str) -> Option<u128> {
    u128::from_str_radix(text, 16).ok()
}

fn too_many(what: &str, most: usize) -> Error {
    Error::Output(io::Error::other(format!("more than {most} {what}")))
}
