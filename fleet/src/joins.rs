//! Joins with a table of one row, as that of parameters: the row is what is held in memory, not all others.
//!
//! Of a join without equal columns DataFusion holds the left side, and where it does not know how many rows a side has, it leaves the sides
//! as they stand in the text. If the left side then has no room, it is asked a second time, which a plan with a repartition below
//! answers with a panic (DataFusion 54.1, `NestedLoopJoinExec`). A side of one row never comes to that.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::NestedLoopJoinExec;

/// DataFusion's rule that chooses sides by their sizes: this one comes behind it, and before what is said of partitions.
const BEHIND: &str = "join_selection";

/// DataFusion's rules and this one.
pub fn rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    let behind = rules.iter().position(|rule| rule.name() == BEHIND);
    rules.insert(behind.map_or(0, |at| at + 1), Arc::new(OneRow));
    rules
}

#[derive(Debug)]
struct OneRow;

impl PhysicalOptimizerRule for OneRow {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() else {
                return Ok(Transformed::no(plan));
            };
            if !is_one_row(join.left())? && is_one_row(join.right())? {
                return Ok(Transformed::yes(join.swap_inputs()?));
            }
            Ok(Transformed::no(plan))
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

fn is_one_row(side: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    Ok(side.partition_statistics(None)?.num_rows == Precision::Exact(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_has_its_place() {
        let rules = rules();
        let place = |name| rules.iter().position(|rule| rule.name() == name).unwrap();
        assert_eq!(place("one_row"), place(BEHIND) + 1);
        assert!(place("one_row") < place("EnforceDistribution"));
    }
}
