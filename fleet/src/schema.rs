//! The columns of each table; docs/fleet.md says what they mean.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::layout::Table;

const TEXT: DataType = DataType::Utf8;
const NUMBER: DataType = DataType::Int64;
const SMALL: DataType = DataType::Int32;
const TRUTH: DataType = DataType::Boolean;

struct Column(&'static str, DataType, Null);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
    Never,
    May,
}
use Null::{May, Never};

const RUNS: &[Column] = &[
    Column("run_id", TEXT, Never),
    Column("service", TEXT, Never),
    Column("day", TEXT, Never),
    Column("version", TEXT, Never),
    Column("host", TEXT, Never),
    Column("jvm", TEXT, Never),
    Column("jvm_name", TEXT, Never),
    Column("jdk", SMALL, Never),
    Column("command", TEXT, Never),
    Column("options", TEXT, Never),
    Column("lucce", TEXT, Never),
    Column("start_ms", NUMBER, Never),
    Column("end_ms", NUMBER, May),
    Column("ended", TRUTH, Never),
    Column("runs", NUMBER, Never),
    Column("contexts", NUMBER, Never),
    Column("events", NUMBER, Never),
    Column("lost", NUMBER, Never),
    Column("counted_bytes", NUMBER, May),
    Column("allocated_bytes", NUMBER, May),
    Column("sampled_bytes", NUMBER, May),
    Column("log_bytes", NUMBER, Never),
];

const FRAMES: &[Column] = &[
    Column("frame_id", TEXT, Never),
    Column("method_id", TEXT, Never),
    Column("class", TEXT, Never),
    Column("method", TEXT, Never),
    Column("descriptor", TEXT, Never),
    Column("file", TEXT, May),
    Column("line", SMALL, Never),
    Column("kind", TEXT, Never),
];

const STACKS: &[Column] = &[
    Column("stack_id", TEXT, Never),
    Column("parent_id", TEXT, Never),
    Column("frame_id", TEXT, Never),
    Column("depth", SMALL, Never),
    Column("stack_by_method", TEXT, Never),
    Column("application_id", TEXT, Never),
];

const THROUGH: &[Column] = &[
    Column("stack_id", TEXT, Never),
    Column("frame_id", TEXT, Never),
    Column("caller_id", TEXT, Never),
];

const EVENTS: &[Column] = &[
    Column("run_id", TEXT, Never),
    Column("service", TEXT, Never),
    Column("day", TEXT, Never),
    Column("stack_id", TEXT, Never),
    Column("event", TEXT, Never),
    Column("unit", TEXT, Never),
    Column("type", TEXT, Never),
    Column("thread_kind", TEXT, Never),
    // Files of version 1 have none.
    Column("tags", TEXT, May),
    Column("count", NUMBER, Never),
    Column("value", NUMBER, Never),
];

const NUMBERS: &[Column] = &[
    Column("run_id", TEXT, Never),
    Column("service", TEXT, Never),
    Column("day", TEXT, Never),
    Column("number", NUMBER, Never),
    Column("stack_id", TEXT, Never),
];

const STREAM: &[Column] = &[
    Column("run_id", TEXT, Never),
    Column("service", TEXT, Never),
    Column("day", TEXT, Never),
    Column("time_ns", NUMBER, Never),
    Column("thread", TEXT, Never),
    Column("stack_id", TEXT, Never),
    Column("event", TEXT, Never),
    Column("type", TEXT, Never),
    Column("value", NUMBER, Never),
];

impl Table {
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        let columns = self.columns().iter();
        let field = |Column(name, of, null): &Column| Field::new(*name, of.clone(), *null == May);
        Arc::new(Schema::new(columns.map(field).collect::<Vec<_>>()))
    }

    fn columns(self) -> &'static [Column] {
        match self {
            Table::Runs => RUNS,
            Table::Frames => FRAMES,
            Table::Stacks => STACKS,
            Table::Through => THROUGH,
            Table::Events | Table::Taken => EVENTS,
            Table::Numbers => NUMBERS,
            Table::Stream => STREAM,
            Table::Symbols => &[],
        }
    }

    /// By what a file's rows are sorted: equal values stand side by side, which Parquet makes little of.
    #[must_use]
    pub fn order(self) -> &'static [&'static str] {
        match self {
            Table::Runs => &["start_ms", "run_id"],
            Table::Frames => &["class", "method", "line", "frame_id"],
            Table::Stacks => &["stack_id"],
            Table::Through => &["stack_id", "frame_id", "caller_id"],
            Table::Events | Table::Taken => {
                &["event", "stack_id", "type", "thread_kind", "tags", "run_id"]
            }
            Table::Numbers => &["run_id", "number"],
            Table::Stream => &["time_ns", "run_id", "thread"],
            Table::Symbols => &[],
        }
    }
}

/// What SQL calls a type.
#[must_use]
pub fn sql_type(of: &DataType) -> &'static str {
    match of {
        DataType::Int64 => "BIGINT",
        DataType::Int32 => "INT",
        DataType::Boolean => "BOOLEAN",
        _ => "STRING",
    }
}
