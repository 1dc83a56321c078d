//! Tests of the rewriter: by an independent reader, by real JVMs, and with hostile input.

mod assembled;
mod identity;
mod jdk;
mod plans;
mod programs;
mod reader;
mod verify;
