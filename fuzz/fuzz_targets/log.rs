//! `cargo fuzz run log`: what reads files of this kind, over any bytes and over damage that gets past the checksums.
#![no_main]

mod support;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use lucce_testkit::fuzz::{bodies, mutate};

fuzz_target!(|bytes: &[u8]| bodies::log(bytes));

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    support::mutated(data, (size, most), seed, mutate::log)
});
