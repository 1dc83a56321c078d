//! Replaces parameters by constants in a question's plan.
//!
//! In the text, parameters are the columns of a table with one row, because every engine can read that. Engines mark
//! parameters differently: DataFusion and DuckDB write `$name`, Spark writes `:name`.
//! So a text with markers would not be the same for all engines.
//!
//! The table itself must not stay in the plan. DataFusion (54.1) knows the row's values only at run time, when the files
//! of the other side may be open already, and such a file is read as a whole.
//!
//! Three ways were measured on 2026-11-26 (54.1, two busy cores, unoptimized build, a dataset of 6 runs): this rewriting;
//! `with_param_values` on a text with `$name` in place of the columns; and `with_param_values` on a view of one row in place
//! of the table, which keeps the text. All nine answers were equal. CPU time and largest RSS:
//!
//! | question | rewriting | `$name` in the text | view of one row |
//! |---|---|---|---|
//! | `callers` | 0.6 s, 138 MB | 0.6 s, 134 MB | 4.2 s, 323 MB |
//! | `leaks` | 0.1 s, 101 MB | 0.1 s, 101 MB | 0.3 s, 124 MB |
//! | `top-growth` | 1.3 s, 136 MB | 1.3 s, 137 MB | 3.7 s, 165 MB |
//! | the other six | 3.2 s, 180 MB | 3.2 s, 183 MB | 3.6 s, 160 MB |
//!
//! `with_param_values` thus costs the same, but only with a text that Spark does not read. On the view the plans read too
//! much. The rewriting keeps both: one text, and constants before any file is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, lit};

use crate::questions::ParameterValue;

/// The table of parameters.
pub const PARAMETER_TABLE: &str = "parameters";

/// The columns of its row: one that is always there, so that there is a row without parameters, too, and `p_NAME` for each.
pub fn parameter_columns(given: &[ParameterValue]) -> impl Iterator<Item = (String, &str)> {
    let always = std::iter::once(("p_".to_owned(), ""));
    always.chain(
        given
            .iter()
            .map(|one| (format!("p_{}", one.name), one.value.as_str())),
    )
}

/// The plan of a question with the values in place of the columns, and without the joins with that one row: a join that has no condition
/// holds its left side in memory, which may be all events. What columns the answer has stays.
///
/// # Errors
/// None that is known: those of the engine.
pub fn bind_plan(plan: LogicalPlan, given: &[ParameterValue]) -> Result<LogicalPlan> {
    let tables = parameter_aliases(&plan)?;
    let values: BTreeMap<String, &str> = parameter_columns(given).collect();
    let value = |of: &Column| {
        let table = of.relation.as_ref()?;
        let value = values.get(&of.name).copied();
        value.filter(|_| tables.contains(table.table()))
    };
    let constant = |expression: Expr| {
        let literal = match &expression {
            Expr::Column(column) | Expr::OuterReferenceColumn(_, column) => value(column),
            _ => None,
        };
        Ok(match literal {
            Some(value) => Transformed::yes(lit(value)),
            None => Transformed::no(expression),
        })
    };
    plan.transform_up_with_subqueries(|plan| {
        let names = NamePreserver::new(&plan);
        let put = plan.map_expressions(|expression| {
            let name = names.save(&expression);
            let put = expression.transform_up(constant)?;
            Ok(put.update_data(|expression| name.restore(expression)))
        })?;
        // What lies below may have fewer columns, too.
        let plan = put.data.recompute_schema()?;
        Ok(Transformed::yes(remove_parameter_join(plan)))
    })
    .data()
}

/// The other side of a join of all rows with the row of parameters.
fn remove_parameter_join(plan: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::Join(join) = plan else {
        return plan;
    };
    let joins_all = join.on.is_empty() && join.filter.is_none();
    if !joins_all || join.join_type != JoinType::Inner {
        return LogicalPlan::Join(join);
    }
    match (
        is_parameter_table(&join.left),
        is_parameter_table(&join.right),
    ) {
        (_, true) => Arc::unwrap_or_clone(join.left),
        (true, _) => Arc::unwrap_or_clone(join.right),
        _ => LogicalPlan::Join(join),
    }
}

/// Whether it is all of the table, under whatever name.
fn is_parameter_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => is_parameter_table(&alias.input),
        LogicalPlan::TableScan(scan) => {
            scan.table_name.table() == PARAMETER_TABLE
                && scan.filters.is_empty()
                && scan.fetch.is_none()
        }
        _ => false,
    }
}

/// What the table is called in the text.
fn parameter_aliases(plan: &LogicalPlan) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    plan.apply_with_subqueries(|plan| {
        match plan {
            LogicalPlan::SubqueryAlias(alias) if is_parameter_table(plan) => {
                names.insert(alias.alias.table().to_owned());
            }
            plan if is_parameter_table(plan) => {
                names.insert(PARAMETER_TABLE.to_owned());
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}

#[cfg(test)]
mod bind_parameters_tests {
    use super::*;
    use crate::engine::{parameters_row, register_views};
    use crate::layout::DatasetTable;
    use crate::questions::{ALL, Question};
    use arrow::array::RecordBatch;
    use arrow::datatypes::SchemaRef;
    use datafusion::datasource::MemTable;
    use datafusion::prelude::SessionContext;

    fn parameter(name: &str, value: &str) -> ParameterValue {
        ParameterValue {
            name: name.into(),
            value: value.into(),
        }
    }

    /// The plan of a text, over tables without rows.
    fn planned(sql: &str, given: &[ParameterValue]) -> LogicalPlan {
        let context = SessionContext::new();
        let table = |name: &str, schema: SchemaRef, rows: Vec<RecordBatch>| {
            let table = MemTable::try_new(schema, vec![rows]).unwrap();
            context.register_table(name, Arc::new(table)).unwrap();
        };
        for of in DatasetTable::ALL {
            table(of.name(), of.schema(), Vec::new());
        }
        let row = parameters_row(given).unwrap();
        table(PARAMETER_TABLE, row.schema(), vec![row]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(register_views(&context)).unwrap();
        let frame = runtime.block_on(context.sql(sql)).unwrap();
        frame.into_unoptimized_plan()
    }

    fn answered(plan: &LogicalPlan) -> SchemaRef {
        Arc::clone(plan.schema().inner())
    }

    /// Columns of parameters that the plan still reads.
    fn left(plan: &LogicalPlan) -> Vec<String> {
        let tables = parameter_aliases(plan).unwrap();
        let mut left = Vec::new();
        plan.apply_with_subqueries(|plan| {
            for expression in plan.expressions() {
                for column in expression.column_refs() {
                    let table = column.relation.as_ref().map(|table| table.table());
                    if table.is_some_and(|table| tables.contains(table)) {
                        left.push(column.to_string());
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        left
    }

    fn whole(question: &Question) -> Vec<ParameterValue> {
        question
            .parameter_specs()
            .map(|slot| parameter(slot.name, "7"))
            .collect()
    }

    #[test]
    fn no_question_reads_its_parameters() {
        for question in ALL {
            let given = whole(question);
            let before = planned(question.sql, &given);
            assert!(!left(&before).is_empty(), "{}", question.name);
            let after = bind_plan(before.clone(), &given).unwrap();
            assert_eq!(left(&after), Vec::<String>::new(), "{}", question.name);
            assert_eq!(answered(&after), answered(&before), "{}", question.name);
            let text = after.display_indent().to_string();
            assert!(!text.contains(PARAMETER_TABLE), "{}: {text}", question.name);
        }
    }

    #[test]
    fn what_has_the_name_of_a_parameter_and_is_none_stays() {
        let given = [parameter("top", "3")];
        let sql = "SELECT q.p_top, o.p_top AS own, (SELECT MAX(r.log_bytes) FROM runs r WHERE r.service = q.p_top) AS most
            FROM parameters q CROSS JOIN (SELECT r.service AS p_top FROM runs r) o WHERE o.p_top > q.p_top";
        let before = planned(sql, &given);
        let after = bind_plan(before.clone(), &given).unwrap();
        assert_eq!(answered(&after), answered(&before));
        let text = after.display_indent().to_string();
        assert!(text.contains(r#"o.p_top > Utf8("3")"#), "{text}");
        assert!(text.contains(r#"r.service = Utf8("3")"#), "{text}");
        assert!(text.contains("o.p_top AS own"), "{text}");
        assert!(text.contains(r#"Utf8("3") AS p_top"#), "{text}");
        // All of its columns, also the one that no parameter has.
        let all = planned("SELECT * FROM runs r CROSS JOIN parameters p", &given);
        let after = bind_plan(all.clone(), &given).unwrap();
        assert_eq!(answered(&after), answered(&all));
        assert_eq!(left(&after), Vec::<String>::new());
        // Without other columns the row remains, and a join that leaves rows out stays.
        for sql in [
            "SELECT p.p_top FROM parameters p",
            "SELECT r.service FROM runs r LEFT JOIN parameters p ON r.version = p.p_top",
            "SELECT r.service FROM runs r CROSS JOIN (SELECT 1 FROM parameters p WHERE p.p_top = '4') p",
        ] {
            let plan = bind_plan(planned(sql, &given), &given).unwrap();
            let text = plan.display_indent().to_string();
            assert!(text.contains("TableScan: parameters"), "{sql}: {text}");
        }
    }
}
