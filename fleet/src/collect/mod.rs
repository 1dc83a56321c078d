//! Logs that JVMs send: on this disk first, in the dataset by batches.
//!
//! ```text
//! JVM ─► part ─► spool/RUN/in-N/… ─► the last part: spool/RUN/g-N/, and the answer
//!                                          │ batches, one thread
//!                      spool/RUN/log.lucce ▼ ─► Ingest ─► dataset
//! ```
//! Everything that was acknowledged to a JVM is on the disk: the collector may be killed between any two steps. The wire is `lucce_ship::wire`.

mod batch_ingester;
mod piece_coverage;
mod spool;

pub use batch_ingester::{BatchIngester, BatchReport};
pub use spool::{LogSpool, PartOutcome, SpoolError, SpoolLimits, parse_run_id};
