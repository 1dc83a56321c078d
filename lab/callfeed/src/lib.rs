//! The calls of a run, for k-calling contexts: from the events of a log, or from a recording. Here logs and the papers' methods meet:
//! neither `lucce-decoder` nor `lucce-kcontexts` knows the other.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod call_feed;
mod call_labels;

pub use call_feed::{
    CallFeedOutcome, CallMeasure, EventLeaf, feed_log_calls, feed_recorded_calls, recorded_code,
};
pub use call_labels::{CallLabels, CallTarget, SiteCall};
