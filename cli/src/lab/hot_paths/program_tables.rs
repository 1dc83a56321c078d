//! The measurements of one program.

use lucce_kcontexts::{BuildTimes, ForestFigures, ForestSizes};
use serde::Serialize;

/// One program's rows and curves.
#[derive(Serialize)]
pub struct ProgramTables {
    pub name: String,
    /// What the call tree's nodes are: `calls` or `events`.
    pub value: String,
    pub sizes: ForestSizes,
    /// Times, for recorded calls only: a log's contexts have no order.
    pub times: Option<BuildTimes>,
    /// The bursts of static bursting, for recorded calls only.
    pub bursts: Option<String>,
    pub figures: ForestFigures,
}
