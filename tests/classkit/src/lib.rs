//! Fixtures of class files: JDKs and their classes, plans that hook everything, and the body of the fuzz target `class`.

mod fuzz_body;
pub mod jdks;
pub mod plans;

pub use fuzz_body::fuzz_body;
