//! `cargo fuzz run log`: what reads files of this kind, over any bytes and over damage that gets past the checksums.
#![no_main]
#![allow(dead_code, reason = "targets share their bodies")]

#[path = "../../decoder/tests/fuzz/bodies.rs"]
mod bodies;
#[path = "../../decoder/tests/fuzz/mutate.rs"]
mod mutate;
mod support;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|bytes: &[u8]| bodies::log(bytes));

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    support::mutated(data, (size, most), seed, mutate::log)
});
