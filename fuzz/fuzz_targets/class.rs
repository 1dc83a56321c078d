//! Class files: parse, plan and rewrite never panic, and what is written can be read.
#![no_main]


libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lucce_classkit::fuzz_body(bytes));
