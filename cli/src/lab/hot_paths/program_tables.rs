//! The measurements of one program.

use lucce_kcontexts::{Figures, Sizes, Times};
use serde::Serialize;

/// One program's rows and curves.
#[derive(Serialize)]
pub struct ProgramTables {
    pub name: String,
    /// What the call tree's nodes are: `calls` or `events`.
    pub value: String,
    pub sizes: Sizes,
    /// Times, for recorded calls only: a log's contexts have no order.
    pub times: Option<Times>,
    /// The bursts of static bursting, for recorded calls only.
    pub bursts: Option<String>,
    pub figures: Figures,
}
