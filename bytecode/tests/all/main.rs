//! Tests of the rewriter: by an independent reader, by real JVMs, and with hostile input.

mod assembled;
#[path = "../fuzz_body.rs"]
mod fuzz_body;
mod hostile;
mod identity;
mod jdk;
mod limits;
mod plans;
mod programs;
mod reader;
mod tables;
mod verify;
