//! The dataset for other engines: which files make up each table now.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use crate::commits::DatasetState;
use crate::error::FleetError;
use crate::layout::{DatasetTable, resolve_path};
use crate::schema::sql_type;

/// A view over the tables, in SQL that each engine knows.
#[derive(Serialize)]
pub struct DerivedView {
    #[serde(rename = "view")]
    pub name: &'static str,
    pub sql: &'static str,
}

/// `events` with the column `request`: the value of the tag `request`.
pub const DERIVED_VIEWS: [DerivedView; 1] = [DerivedView {
    name: "requests",
    sql: "SELECT *, CASE WHEN ', ' || tags LIKE '%, request=%' THEN split_part(split_part(', ' || tags, ', request=', 2), ', ', 1) ELSE '(no request)' END AS request FROM events",
}];

/// The files of a table, and its columns for tables that have no file yet.
#[derive(Serialize)]
struct ViewSnapshot<'s> {
    /// The number of the last commit that is in it.
    commit: u64,
    tables: Vec<TableFiles<'s>>,
    views: &'static [DerivedView],
}

#[derive(Serialize)]
struct TableFiles<'s> {
    table: &'s str,
    columns: Vec<(String, &'static str)>,
    files: Vec<String>,
}

fn list_table_files<'s>(
    dataset: &Path,
    state: &DatasetState,
) -> Result<Vec<TableFiles<'s>>, FleetError> {
    let dataset = dataset
        .canonicalize()
        .map_err(FleetError::for_path(dataset))?;
    let of = |table: DatasetTable| {
        let paths = state
            .files_of(table)
            .map(|entry| resolve_path(&dataset, &entry.path).display().to_string());
        let schema = table.schema();
        let columns = schema.fields().iter();
        TableFiles {
            table: table.name(),
            columns: columns
                .map(|field| (field.name().clone(), sql_type(field.data_type())))
                .collect(),
            files: paths.collect(),
        }
    };
    Ok(DatasetTable::ALL.map(of).into())
}

/// For programs: `{"commit": 7, "tables": [{"table": "runs", "columns": [["run_id", "VARCHAR"], …], "files": […]}, …],
/// "views": [{"view": "requests", "sql": "SELECT …"}]}`.
///
/// # Errors
/// The folder is not there.
pub fn render_json(dataset: &Path, state: &DatasetState) -> Result<String, FleetError> {
    let snapshot = ViewSnapshot {
        commit: state.number,
        tables: list_table_files(dataset, state)?,
        views: &DERIVED_VIEWS,
    };
    serde_json::to_string(&snapshot).map_err(|e| FleetError::Output(e.into()))
}

/// `CREATE VIEW` statements for DuckDB: `duckdb -init FILE`.
///
/// # Errors
/// The folder is not there.
pub fn render_duckdb(dataset: &Path, state: &DatasetState) -> Result<String, FleetError> {
    let mut text = String::new();
    for table in list_table_files(dataset, state)? {
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
    for DerivedView { name, sql } in &DERIVED_VIEWS {
        let _ = writeln!(text, "CREATE OR REPLACE VIEW {name} AS {sql};");
    }
    Ok(text)
}
