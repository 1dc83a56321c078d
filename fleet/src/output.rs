//! Answers: a table for people, CSV, JSON, Arrow.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::writer::StreamWriter;
use arrow::json::ArrayWriter;
use arrow::util::pretty::pretty_format_batches_with_options;
use clap::ValueEnum;
use lucce_decoder::escape::EscapedText;

use crate::engine::QueryEngine;
use crate::error::FleetError;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OutputFormat {
    /// Table for people; names are escaped
    Table,
    /// Comma-separated values after a line of names; names are escaped
    Csv,
    /// List of objects, without unknown values
    Json,
    /// Arrow stream, for programs
    Arrow,
}

/// Asks and writes the answer. Only a table is held in memory: its columns are as wide as what is in them.
///
/// # Errors
/// The engine's, and those of the output.
pub fn write_answer(
    engine: &QueryEngine,
    sql: &str,
    form: OutputFormat,
    out: &mut impl Write,
) -> Result<(), FleetError> {
    match form {
        OutputFormat::Table => write_table(engine, sql, out),
        OutputFormat::Csv => write_csv(engine, sql, out),
        OutputFormat::Json => write_json(engine, sql, out),
        OutputFormat::Arrow => write_arrow(engine, sql, out),
    }?;
    out.flush().map_err(FleetError::Output)
}

fn write_table(engine: &QueryEngine, sql: &str, out: &mut impl Write) -> Result<(), FleetError> {
    let mut batches = Vec::new();
    engine.run_query(sql, &mut |columns, batch| {
        batches.push(match batch {
            None => escape_batch(&RecordBatch::new_empty(columns.clone()), escape_text)?,
            Some(batch) => escape_batch(batch, escape_text)?,
        });
        Ok(())
    })?;
    let options = arrow::util::display::FormatOptions::new();
    let text = pretty_format_batches_with_options(&batches, &options)?;
    writeln!(out, "{text}").map_err(FleetError::Output)
}

fn write_csv(engine: &QueryEngine, sql: &str, out: &mut impl Write) -> Result<(), FleetError> {
    let mut writer = arrow::csv::Writer::new(out);
    engine.run_query(sql, &mut |columns, batch| {
        match batch {
            // The names of the columns.
            None => writer.write(&escape_batch(
                &RecordBatch::new_empty(columns.clone()),
                escape_csv,
            )?)?,
            Some(batch) => writer.write(&escape_batch(batch, escape_csv)?)?,
        }
        Ok(())
    })
}

fn write_json(engine: &QueryEngine, sql: &str, out: &mut impl Write) -> Result<(), FleetError> {
    let mut plain = JsonEscapeWriter { out };
    let mut writer = ArrayWriter::new(&mut plain);
    engine.run_query(sql, &mut |_, batch| {
        Ok(batch.map_or(Ok(()), |batch| writer.write(batch))?)
    })?;
    writer.finish()?;
    writeln!(plain.out).map_err(FleetError::Output)
}

fn write_arrow(engine: &QueryEngine, sql: &str, out: &mut impl Write) -> Result<(), FleetError> {
    let mut writer = None;
    let mut out = Some(out);
    engine.run_query(sql, &mut |columns, batch| {
        if let Some(out) = out.take() {
            writer = Some(StreamWriter::try_new(out, columns)?);
        }
        if let (Some(writer), Some(batch)) = (&mut writer, batch) {
            writer.write(batch)?;
        }
        Ok(())
    })?;
    Ok(writer.map_or(Ok(()), |mut writer| writer.finish())?)
}

/// JSON may hold characters that a terminal obeys: they are written as `\u…`.
struct JsonEscapeWriter<W> {
    out: W,
}

impl<W: Write> Write for JsonEscapeWriter<W> {
    /// What arrow writes at once are whole texts.
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.out.write_all(escape_json(text).as_bytes())?,
            Err(_) => self.out.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// JSON with all that is not plain as `\u…`, beyond 16 bits as two of them.
#[must_use]
pub fn escape_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if lucce_tracelog::escape::is_plain(c) || c == '\n' {
            text.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    text
}

fn escape_text(text: &str) -> String {
    EscapedText(text).to_string()
}

/// As in lucce's other CSV: `'` before what a spreadsheet would take for a formula.
fn escape_csv(text: &str) -> String {
    let formula = [
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ];
    let text = escape_text(text);
    match text.trim_start().starts_with(formula) {
        true => format!("'{text}"),
        false => text,
    }
}

/// With texts as `show` has them; the names of columns, too.
fn escape_batch(batch: &RecordBatch, show: fn(&str) -> String) -> Result<RecordBatch, FleetError> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let name = show(field.name());
        let is_text = matches!(
            field.data_type(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..)
        );
        let column = match is_text {
            true => escape_column(column, show)?,
            false => column.clone(),
        };
        fields.push(Field::new(name, column.data_type().clone(), true));
        columns.push(column);
    }
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = Arc::new(Schema::new(fields));
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

fn escape_column(column: &ArrayRef, show: fn(&str) -> String) -> Result<ArrayRef, FleetError> {
    let text = cast(column, &DataType::Utf8)?;
    let Some(text) = text.as_string_opt::<i32>() else {
        return Ok(text.clone());
    };
    let shown = text.iter().map(|text| text.map(show));
    Ok(Arc::new(shown.collect::<StringArray>()))
}

#[cfg(test)]
mod output_tests {
    use super::*;

    #[test]
    fn json_is_the_same_and_plain() {
        let text = "{\"a\":\"\u{202e}é\u{1f600}\u{e0001}\u{9b}\"}";
        let plain = escape_json(text);
        assert!(
            plain.chars().all(lucce_tracelog::escape::is_plain),
            "{plain}"
        );
        let parse = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(parse(&plain), parse(text));
    }
}
