//! Bytes that are no class, or almost one.

use std::fs;
use std::sync::LazyLock;

use lucce_bytecode::ClassFile;
use proptest::prelude::*;

use crate::assembled;
use lucce_classkit::fuzz_body;
use lucce_classkit::jdks::{self, Folder, source};
use lucce_classkit::plans::rewrite_everything;

/// Compiled and assembled classes to damage.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut seeds: Vec<_> = assembled::all()
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect();
    seeds.retain(|bytes| bytes.len() < 5000);
    if let Some(jdk) = jdks::all().first() {
        let folder = Folder::create();
        jdk.compile(&folder.0, &["-g"], &[source("Edges.java")]);
        for file in fs::read_dir(&folder.0).expect("classes").flatten() {
            seeds.push(fs::read(file.path()).expect("a class"));
        }
    }
    seeds
});

#[test]
fn truncated_classes_are_refused() {
    for seed in SEEDS.iter() {
        fuzz_body(seed);
        for len in 0..seed.len() {
            assert!(ClassFile::parse(&seed[..len]).is_err());
        }
        // The VM decides about bytes behind the class.
        let longer = [seed, &[0][..]].concat();
        assert!(rewrite_everything(&longer).bytes.ends_with(&[0]));
    }
}

#[test]
fn each_byte_may_be_wrong() {
    for seed in SEEDS.iter() {
        let mut bytes = seed.clone();
        for at in 0..bytes.len() {
            for wrong in [0xff, seed[at].wrapping_add(1)] {
                bytes[at] = wrong;
                fuzz_body(&bytes);
            }
            bytes[at] = seed[at];
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn several_bytes_may_be_wrong(
        seed in 0..100usize,
        wrong in prop::collection::vec((any::<u16>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = SEEDS[seed % SEEDS.len()].clone();
        for (at, byte) in wrong {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        fuzz_body(&bytes);
    }

    #[test]
    fn any_bytes_do(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_body(&bytes);
        fuzz_body(&[&[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61][..], &bytes].concat());
    }
}

/// The corpus of the fuzz target, damaged in the same ways each time.
#[test]
fn the_corpus_may_be_damaged() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/class");
    let mut files: Vec<_> = fs::read_dir(corpus).expect("a corpus").flatten().collect();
    files.sort_by_key(fs::DirEntry::path);
    assert!(files.len() > 5);
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % below
    };
    for file in files {
        let sound = fs::read(file.path()).expect("a class");
        fuzz_body(&sound);
        for _ in 0..3000 {
            let mut bytes = sound.clone();
            for _ in 0..1 + random(4) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes[at] = bytes[at].wrapping_add(1),
                    2 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, 0),
                }
            }
            fuzz_body(&bytes);
        }
    }
}
