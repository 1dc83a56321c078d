//! Class files: parse, plan and rewrite never panic, and what is written can be read.
#![no_main]

#[path = "../../bytecode/tests/fuzz_body.rs"]
mod fuzz_body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_body::fuzz_body(bytes));
