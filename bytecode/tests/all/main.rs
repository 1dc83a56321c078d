//! Tests of the rewriter: by an independent reader, by real JVMs, and with hostile input.

mod annotations;
mod assembled;
mod bounds;
mod hostile;
mod identity;
mod integers;
mod large;
mod limits;
mod programs;
mod reader;
mod tables;
mod tight;
mod verify;
