//! Joins with a table of one row, as that of parameters: the row is what is held in memory, not all others.
//!
//! Of a join without equal columns DataFusion holds the left side, and where it does not know how many rows a side has, it leaves the sides
//! as they are in the text. If the left side then has no room, it is executed a second time, which a plan with a repartition below
//! answers with a panic (DataFusion 54.1, `NestedLoopJoinExec`). A side of one row never comes to that.
//!
//! A join by equal columns holds its left side, too, and has no way to put it into files: `events.event = parameters.p_event` held all
//! events of a service, 1.2 GB of a thousand runs.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, PartitionMode};

/// DataFusion's rule that chooses sides by their sizes: this one comes behind it, and before the rules for partitions.
const BEHIND: &str = "join_selection";

/// DataFusion's rules and this one.
pub fn optimizer_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    let behind = rules.iter().position(|rule| rule.name() == BEHIND);
    rules.insert(behind.map_or(0, |at| at + 1), Arc::new(OneRowJoinRule));
    rules
}

#[derive(Debug)]
struct OneRowJoinRule;

impl PhysicalOptimizerRule for OneRowJoinRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match swap_one_row_side(&plan)? {
                Some(turned) => Transformed::yes(turned),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "one_row"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The join with its one row on the left side, if that is on the right side.
fn swap_one_row_side(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        return match is_right_one_row(join.left(), join.right())? {
            true => join.swap_inputs().map(Some),
            false => Ok(None),
        };
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && *join.join_type() == JoinType::Inner
        && is_right_one_row(join.left(), join.right())?
    {
        return join.swap_inputs(PartitionMode::CollectLeft).map(Some);
    }
    Ok(None)
}

fn is_right_one_row(left: &Arc<dyn ExecutionPlan>, right: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    Ok(!is_one_row(left)? && is_one_row(right)?)
}

fn is_one_row(side: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    Ok(side.partition_statistics(None)?.num_rows == Precision::Exact(1))
}

#[cfg(test)]
mod one_row_joins_tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::NullEquality;
    use datafusion::physical_expr::PhysicalExprRef;
    use datafusion::physical_expr::expressions::Column;
    use datafusion::physical_plan::displayable;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;

    #[test]
    fn the_rule_has_its_place() {
        let rules = optimizer_rules();
        let place = |name| rules.iter().position(|rule| rule.name() == name).unwrap();
        assert_eq!(place("one_row"), place(BEHIND) + 1);
        assert!(place("one_row") < place("EnforceDistribution"));
    }

    /// A join by equal columns of no rows with one row.
    fn joined(kind: JoinType) -> Arc<dyn ExecutionPlan> {
        let column = |name| Field::new(name, DataType::Int64, true);
        let schema = |name| Arc::new(Schema::new(vec![column(name)]));
        let on: (PhysicalExprRef, PhysicalExprRef) = (
            Arc::new(Column::new("all", 0)),
            Arc::new(Column::new("one", 0)),
        );
        let join = HashJoinExec::try_new(
            Arc::new(EmptyExec::new(schema("all"))),
            Arc::new(PlaceholderRowExec::new(schema("one"))),
            vec![on],
            None,
            &kind,
            None,
            PartitionMode::Partitioned,
            NullEquality::NullEqualsNothing,
            false,
        );
        Arc::new(join.unwrap())
    }

    fn optimized(kind: JoinType) -> String {
        let plan = OneRowJoinRule.optimize(joined(kind), &ConfigOptions::default());
        displayable(plan.unwrap().as_ref())
            .indent(false)
            .to_string()
    }

    #[test]
    fn the_row_of_a_join_by_equal_columns_is_what_is_held() {
        let plan = optimized(JoinType::Inner);
        let (row, all) = (plan.find("PlaceholderRowExec"), plan.find("EmptyExec"));
        assert!(row.is_some() && row < all, "{plan}");
        assert!(plan.contains("mode=CollectLeft"), "{plan}");
        // Columns stand as before.
        assert!(plan.contains("[all@1 as all, one@0 as one]"), "{plan}");
        let left = optimized(JoinType::Left);
        assert!(left.contains("mode=Partitioned"), "{left}");
    }
}
