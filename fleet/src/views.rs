//! The dataset for other engines: which files make up each table now.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use crate::commits::State;
use crate::error::Error;
use crate::layout::{Table, file};
use crate::schema::sql_type;

/// The files of a table, and its columns for tables that have no file yet.
#[derive(Serialize)]
struct Snapshot<'s> {
    /// The number of the last commit that is in it.
    commit: u64,
    tables: Vec<Files<'s>>,
}

#[derive(Serialize)]
struct Files<'s> {
    table: &'s str,
    columns: Vec<(String, &'static str)>,
    files: Vec<String>,
}

fn files<'s>(dataset: &Path, state: &State) -> Result<Vec<Files<'s>>, Error> {
    let dataset = dataset.canonicalize().map_err(Error::of(dataset))?;
    let of = |table: Table| {
        let paths = state
            .of(table)
            .map(|entry| file(&dataset, &entry.path).display().to_string());
        let schema = table.schema();
        let columns = schema.fields().iter();
        Files {
            table: table.name(),
            columns: columns
                .map(|field| (field.name().clone(), sql_type(field.data_type())))
                .collect(),
            files: paths.collect(),
        }
    };
    Ok(Table::ALL.map(of).into())
}

/// For programs: `{"commit": 7, "tables": [{"table": "runs", "columns": [["run_id", "VARCHAR"], …], "files": […]}, …]}`.
///
/// # Errors
/// The folder is not there.
pub fn json(dataset: &Path, state: &State) -> Result<String, Error> {
    let snapshot = Snapshot {
        commit: state.number,
        tables: files(dataset, state)?,
    };
    serde_json::to_string(&snapshot).map_err(|e| Error::Output(e.into()))
}

/// `CREATE VIEW` statements for DuckDB: `duckdb -init FILE`.
///
/// # Errors
/// The folder is not there.
pub fn duckdb(dataset: &Path, state: &State) -> Result<String, Error> {
    let mut text = String::new();
    for table in files(dataset, state)? {
        let name = table.table;
        if table.files.is_empty() {
            let columns: Vec<_> = table
                .columns
                .iter()
                .map(|(name, of)| format!("CAST(NULL AS {of}) AS \"{name}\""))
                .collect();
            let _ = writeln!(
                text,
                "CREATE OR REPLACE VIEW {name} AS SELECT {} WHERE 1 = 0;",
                columns.join(", ")
            );
            continue;
        }
        let paths: Vec<_> = table
            .files
            .iter()
            .map(|path| format!("'{}'", path.replace('\'', "''")))
            .collect();
        let list = paths.join(", ");
        let _ = writeln!(
            text,
            "CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet([{list}], hive_partitioning = false, union_by_name = true);"
        );
    }
    Ok(text)
}
