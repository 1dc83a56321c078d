//! Where a dataset has what.
//!
//! ```text
//! DIR/lucce-fleet.json                          what the folder is, and the version of this layout
//! DIR/commits/0000000012.json                   what was added and removed, in this order: `commits`
//! DIR/commits/0000000064.state.json             the sum of all commits up to this one
//! DIR/runs/ID.parquet                           frames, stacks and through lie likewise
//! DIR/events/service=shop/day=2026-11-24/ID.parquet     numbers and stream lie likewise
//! DIR/symbols/service=shop/day=2026-11-24/RUN-ID.lsym   what turns numbers into traces, see `lucce symbols`
//! DIR/taken/service=shop/day=2026-11-24/ID.parquet      what was counted of a run that goes on
//! DIR/temporary/lucce-fleet-ID.parquet           files that are being written; for a bucket they are in TMPDIR
//! ```
//! A file counts only once a commit names it. It is never changed.

use std::path::{Path, PathBuf};

use lucce_contentid::{ContentDetail, FrameId, FrameText};
use serde::{Deserialize, Serialize};

/// The version of folders, commits and tables. Readers refuse later ones.
///
/// * 1 (2026-11-24): the first.
/// * 2 (2026-11-24): `events` has `tags`; who skips them adds up what they tell apart, and counts a run twice that went on.
pub const VERSION: u32 = 2;

pub const MARKER_FILE: &str = "lucce-fleet.json";
pub const COMMITS: &str = "commits";
pub const TEMPORARY: &str = "temporary";

/// A name of a folder is not longer than this, whatever a service is called.
const MAX_FOLDER_NAME: usize = 120;

/// What the dataset has files of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DatasetTable {
    Runs,
    Frames,
    Stacks,
    Through,
    Events,
    Numbers,
    Stream,
    /// No table: files of symbols, see `lucce symbols`.
    Symbols,
    /// No table: events of a run that goes on, as far as they are in the dataset.
    Taken,
}

impl DatasetTable {
    /// Those that SQL can ask.
    pub const ALL: [DatasetTable; 7] = [
        DatasetTable::Runs,
        DatasetTable::Frames,
        DatasetTable::Stacks,
        DatasetTable::Through,
        DatasetTable::Events,
        DatasetTable::Numbers,
        DatasetTable::Stream,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DatasetTable::Runs => "runs",
            DatasetTable::Frames => "frames",
            DatasetTable::Stacks => "stacks",
            DatasetTable::Through => "through",
            DatasetTable::Events => "events",
            DatasetTable::Numbers => "numbers",
            DatasetTable::Stream => "stream",
            DatasetTable::Symbols => "symbols",
            DatasetTable::Taken => "taken",
        }
    }

    /// Below the dataset, with `/` between folders.
    #[must_use]
    pub fn folder_path(self, part: Option<&DatasetPartition>) -> String {
        match part {
            None => self.name().to_owned(),
            Some(part) => format!(
                "{}/service={}/day={}",
                self.name(),
                escape_name(&part.service),
                escape_name(&part.day)
            ),
        }
    }
}

/// One service on one day.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct DatasetPartition {
    pub service: String,
    /// `2026-11-24`, UTC.
    pub day: String,
}

/// A file of a path below the dataset, as commits have it.
#[must_use]
pub fn resolve_path(dataset: &Path, path: &str) -> PathBuf {
    path.split('/')
        .fold(dataset.to_owned(), |at, name| at.join(name))
}

/// A name as that of a folder: letters, digits, `.`, `_` and `-` stay, other bytes are `~` and two digits. No
/// engine takes such a name for a pattern or an escape of its own.
#[must_use]
pub fn escape_name(name: &str) -> String {
    let mut folder = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                folder.push(char::from(byte));
            }
            other => folder.push_str(&format!("~{other:02x}")),
        }
    }
    if folder.len() <= MAX_FOLDER_NAME {
        return folder;
    }
    // Its beginning, and what tells it from others that begin so.
    let text = FrameText {
        class: name,
        method: "",
        descriptor: "",
        line: 0,
    };
    let hash = FrameId::from_frame(text, ContentDetail::ByLine).0;
    folder.truncate(MAX_FOLDER_NAME - 34);
    format!("{folder}~~{hash:032x}")
}

#[cfg(test)]
mod layout_tests {
    use super::*;

    #[test]
    fn names_of_folders_are_harmless_and_differ() {
        assert_eq!(escape_name("shop-1.4_b"), "shop-1.4_b");
        assert_eq!(escape_name("../../etc"), "..~2f..~2fetc");
        assert_eq!(
            escape_name("a b*?[%]{}é~"),
            "a~20b~2a~3f~5b~25~5d~7b~7d~c3~a9~7e"
        );
        let long = "é".repeat(500);
        let other = format!("{long}x");
        assert!(escape_name(&long).len() <= MAX_FOLDER_NAME);
        assert_ne!(escape_name(&long), escape_name(&other));
    }

    #[test]
    fn a_path_never_leaves_the_dataset() {
        let part = DatasetPartition {
            service: "..".into(),
            day: "../x".into(),
        };
        let folder = DatasetTable::Events.folder_path(Some(&part));
        assert_eq!(folder, "events/service=../day=..~2fx");
        assert_eq!(
            resolve_path(Path::new("/d"), &folder),
            Path::new("/d/events/service=../day=..~2fx")
        );
    }
}
