//! The dataset for other engines: which files make up each table now.

use std::fmt::Write;

use percent_encoding::percent_decode_str;
use serde::Serialize;

use crate::commits::DatasetState;
use crate::error::FleetError;
use crate::layout::DatasetTable;
use crate::schema::sql_type;
use crate::store::SharedStore;

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

/// Who opens the files, and by which names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileReader {
    /// URLs as lucce has them.
    Plain,
    /// Hadoop's file systems: `s3a://`.
    Hadoop,
}

impl FileReader {
    /// The dataset as the beginning of the names of its files, without `/` at the end.
    fn base_name(self, store: &SharedStore) -> Result<String, FleetError> {
        let base = store.base_url()?;
        let path = percent_decode_str(base.path()).decode_utf8_lossy();
        let path = path.trim_end_matches('/');
        let bucket = base.host_str().unwrap_or_default();
        Ok(match (base.scheme(), self) {
            ("file", _) => path.to_owned(),
            ("s3", FileReader::Hadoop) => format!("s3a://{bucket}{path}"),
            ("az", FileReader::Hadoop) => {
                let what = "--for spark has names for folders and s3:// only";
                return Err(FleetError::Usage(what.into()));
            }
            (scheme, _) => format!("{scheme}://{bucket}{path}"),
        })
    }
}

fn list_table_files<'s>(
    store: &SharedStore,
    state: &DatasetState,
    reader: FileReader,
) -> Result<Vec<TableFiles<'s>>, FleetError> {
    let base = reader.base_name(store)?;
    let of = |table: DatasetTable| {
        let paths = state
            .files_of(table)
            .map(|entry| format!("{base}/{}", entry.path));
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
/// The folder is not there, or the reader has no names for the store.
pub fn render_json(
    store: &SharedStore,
    state: &DatasetState,
    reader: FileReader,
) -> Result<String, FleetError> {
    let snapshot = ViewSnapshot {
        commit: state.number,
        tables: list_table_files(store, state, reader)?,
        views: &DERIVED_VIEWS,
    };
    serde_json::to_string(&snapshot).map_err(|e| FleetError::Output(e.into()))
}

/// `CREATE VIEW` statements for DuckDB: `duckdb -init FILE`.
///
/// # Errors
/// The folder is not there.
pub fn render_duckdb(store: &SharedStore, state: &DatasetState) -> Result<String, FleetError> {
    let mut text = String::new();
    for table in list_table_files(store, state, FileReader::Plain)? {
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

#[cfg(test)]
mod views_tests {
    use std::path::Path;

    use super::*;
    use crate::store::open_store;

    #[test]
    fn files_have_the_names_that_their_reader_knows() {
        for (url, plain, hadoop) in [
            ("s3://runs", "s3://runs", "s3a://runs"),
            ("s3://runs/a%20b/", "s3://runs/a b", "s3a://runs/a b"),
        ] {
            let store = open_store(Path::new(url)).unwrap();
            let names = [FileReader::Plain, FileReader::Hadoop].map(|reader| {
                let name = reader.base_name(&store);
                name.unwrap()
            });
            assert_eq!(names, [plain, hadoop]);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let store = open_store(&path).unwrap();
        let name = FileReader::Hadoop.base_name(&store).unwrap();
        assert_eq!(name, path.to_str().unwrap());
    }
}
