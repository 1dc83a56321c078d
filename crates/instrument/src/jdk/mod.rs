//! Facts about JDKs. A new JDK needs changes only in this folder.
//!
//! `docs/reference/support.md` describes how each table was made and how it is checked. `facts.txt` lists the JDKs that
//! have the methods of each row.

pub mod agents;
mod differences;
mod facts;
pub mod foreign;
pub mod hidden;
pub mod intrinsics;
pub mod io;
pub mod leaf_methods;
pub mod older_names;
pub mod recorder;
pub mod roles;
pub mod tasks;
pub mod untracked_calls;
pub mod vm_calls;

pub use differences::{TESTED_JDKS, closest_tested_jdk, find_differences};
pub use facts::{FACTS, JdkFact, all_facts};
