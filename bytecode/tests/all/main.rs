//! Tests of the rewriter: by an independent reader, by real JVMs, and with hostile input.

mod annotations;
mod assembled;
mod bounds;
#[path = "../fuzz_body.rs"]
mod fuzz_body;
mod hostile;
mod identity;
mod integers;
mod jdk;
mod large;
mod limits;
mod plans;
mod programs;
mod reader;
mod tables;
mod tight;
mod verify;
