//! The agent's answers to a search, as JSON.

use lucce_decoder::escape::EscapedText;
use lucce_decoder::type_name;
use serde::Deserialize;

use super::root_path::RootPathLink;
use crate::{CommandError, CommandStatus};

/// The expected cost of a search.
#[derive(Deserialize)]
pub(super) struct HoldersSearchCost {
    pub(super) followed: u64,
    pub(super) alive: u64,
    pub(super) of: Option<String>,
    pub(super) heap_bytes: Option<u64>,
    /// Absent in answers of older agents.
    pub(super) types: Option<Vec<TypeAliveCount>>,
    /// Whether the agent can limit the VM's pauses; older ones cannot.
    #[serde(default)]
    pub(super) budget: bool,
}

/// Number of objects of one type.
#[derive(Deserialize)]
pub(super) struct TypeAliveCount {
    /// The type's descriptor.
    pub(super) of: String,
    pub(super) alive: u64,
}

impl TypeAliveCount {
    pub(super) fn has_name(&self, name: &str) -> bool {
        EscapedText(&type_name(&self.of)).to_string() == name
    }
}

/// The agent's answer.
#[derive(Deserialize)]
pub(super) struct HoldersAnswer {
    pub(super) followed: u64,
    pub(super) alive: u64,
    pub(super) looked_for: u64,
    pub(super) pauses_us: Vec<u64>,
    pub(super) cut: bool,
    pub(super) over: bool,
    pub(super) changed: u64,
    /// Paths in the order of their types.
    pub(super) paths: Vec<Vec<RootPathLink>>,
    /// Paths that do not reach a root, in the order of their types. Older agents have none.
    #[serde(default)]
    pub(super) unfinished: Vec<Vec<RootPathLink>>,
    #[serde(default)]
    pub(super) out_of_budget: bool,
    #[serde(default)]
    pub(super) collection_us: Option<u64>,
    /// Counts by type; absent in answers of older agents, which are of all types together.
    pub(super) types: Option<Vec<TypeSearchCounts>>,
}

#[derive(Deserialize)]
pub(super) struct TypeSearchCounts {
    /// The type's descriptor.
    pub(super) of: Option<String>,
    pub(super) followed: u64,
    pub(super) alive: u64,
    pub(super) looked_for: u64,
    pub(super) changed: u64,
    /// Number of paths of this type.
    pub(super) paths: usize,
    #[serde(default)]
    pub(super) unfinished: usize,
    #[serde(default)]
    pub(super) collected: u64,
    #[serde(default)]
    pub(super) unreported: u64,
}

pub(super) fn parse_answer<T: for<'a> Deserialize<'a>>(answer: &str) -> Result<T, CommandError> {
    serde_json::from_str(answer)
        .map_err(|_| CommandError::Refused("the answer is foreign".into(), CommandStatus::Damaged))
}
