//! The columns of each table; docs/guide/fleet.md says what they mean.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::layout::DatasetTable;

const TEXT: DataType = DataType::Utf8;
const NUMBER: DataType = DataType::Int64;
const SMALL: DataType = DataType::Int32;
const TRUTH: DataType = DataType::Boolean;

struct TableColumn(&'static str, DataType, ColumnNullability);

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnNullability {
    Never,
    May,
}
use ColumnNullability::{May, Never};

const RUNS: &[TableColumn] = &[
    TableColumn("run_id", TEXT, Never),
    TableColumn("service", TEXT, Never),
    TableColumn("day", TEXT, Never),
    TableColumn("version", TEXT, Never),
    TableColumn("host", TEXT, Never),
    TableColumn("jvm", TEXT, Never),
    TableColumn("jvm_name", TEXT, Never),
    TableColumn("jdk", SMALL, Never),
    TableColumn("command", TEXT, Never),
    TableColumn("options", TEXT, Never),
    TableColumn("lucce", TEXT, Never),
    TableColumn("start_ms", NUMBER, Never),
    TableColumn("end_ms", NUMBER, May),
    TableColumn("ended", TRUTH, Never),
    TableColumn("runs", NUMBER, Never),
    TableColumn("contexts", NUMBER, Never),
    TableColumn("events", NUMBER, Never),
    TableColumn("lost", NUMBER, Never),
    TableColumn("counted_bytes", NUMBER, May),
    TableColumn("allocated_bytes", NUMBER, May),
    TableColumn("sampled_bytes", NUMBER, May),
    TableColumn("log_bytes", NUMBER, Never),
];

const FRAMES: &[TableColumn] = &[
    TableColumn("frame_id", TEXT, Never),
    TableColumn("method_id", TEXT, Never),
    TableColumn("class", TEXT, Never),
    TableColumn("method", TEXT, Never),
    TableColumn("descriptor", TEXT, Never),
    TableColumn("file", TEXT, May),
    TableColumn("line", SMALL, Never),
    TableColumn("kind", TEXT, Never),
];

const STACKS: &[TableColumn] = &[
    TableColumn("stack_id", TEXT, Never),
    TableColumn("parent_id", TEXT, Never),
    TableColumn("frame_id", TEXT, Never),
    TableColumn("depth", SMALL, Never),
    TableColumn("stack_by_method", TEXT, Never),
    TableColumn("application_id", TEXT, Never),
];

const THROUGH: &[TableColumn] = &[
    TableColumn("stack_id", TEXT, Never),
    TableColumn("frame_id", TEXT, Never),
    TableColumn("caller_id", TEXT, Never),
];

const EVENTS: &[TableColumn] = &[
    TableColumn("run_id", TEXT, Never),
    TableColumn("service", TEXT, Never),
    TableColumn("day", TEXT, Never),
    TableColumn("stack_id", TEXT, Never),
    TableColumn("event", TEXT, Never),
    TableColumn("unit", TEXT, Never),
    TableColumn("type", TEXT, Never),
    TableColumn("thread_kind", TEXT, Never),
    // Files of version 1 have none.
    TableColumn("tags", TEXT, May),
    TableColumn("count", NUMBER, Never),
    TableColumn("value", NUMBER, Never),
];

const NUMBERS: &[TableColumn] = &[
    TableColumn("run_id", TEXT, Never),
    TableColumn("service", TEXT, Never),
    TableColumn("day", TEXT, Never),
    TableColumn("number", NUMBER, Never),
    TableColumn("stack_id", TEXT, Never),
];

const STREAM: &[TableColumn] = &[
    TableColumn("run_id", TEXT, Never),
    TableColumn("service", TEXT, Never),
    TableColumn("day", TEXT, Never),
    TableColumn("time_ns", NUMBER, Never),
    TableColumn("thread", TEXT, Never),
    TableColumn("stack_id", TEXT, Never),
    TableColumn("event", TEXT, Never),
    TableColumn("type", TEXT, Never),
    TableColumn("value", NUMBER, Never),
];

impl DatasetTable {
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        let columns = self.column_specs().iter();
        let field =
            |TableColumn(name, of, null): &TableColumn| Field::new(*name, of.clone(), *null == May);
        Arc::new(Schema::new(columns.map(field).collect::<Vec<_>>()))
    }

    fn column_specs(self) -> &'static [TableColumn] {
        match self {
            DatasetTable::Runs => RUNS,
            DatasetTable::Frames => FRAMES,
            DatasetTable::Stacks => STACKS,
            DatasetTable::Through => THROUGH,
            DatasetTable::Events | DatasetTable::Taken => EVENTS,
            DatasetTable::Numbers => NUMBERS,
            DatasetTable::Stream => STREAM,
            DatasetTable::Symbols => &[],
        }
    }

    /// By what a file's rows are sorted: equal values stand side by side, which Parquet makes little of.
    #[must_use]
    pub fn sort_columns(self) -> &'static [&'static str] {
        match self {
            DatasetTable::Runs => &["start_ms", "run_id"],
            DatasetTable::Frames => &["class", "method", "line", "frame_id"],
            DatasetTable::Stacks => &["stack_id"],
            DatasetTable::Through => &["stack_id", "frame_id", "caller_id"],
            DatasetTable::Events | DatasetTable::Taken => {
                &["event", "stack_id", "type", "thread_kind", "tags", "run_id"]
            }
            DatasetTable::Numbers => &["run_id", "number"],
            DatasetTable::Stream => &["time_ns", "run_id", "thread"],
            DatasetTable::Symbols => &[],
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
