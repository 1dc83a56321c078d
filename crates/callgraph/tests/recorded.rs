//! Slices of contexts recorded in real programs: every number decodes, few calls anchor.
#![cfg(not(loom))]

mod support;

use lucce_callgraph::*;
use lucce_contextkit::{FOP, JAVAC, Shadow, read};
use support::{TINY, replay};

#[test]
fn real_programs_decode_from_the_log_and_seldom_anchor() {
    for program in [JAVAC, FOP] {
        let events = read(program);
        let encoder =
            ContextEncoder::new(ContextLayout::DEFAULT, EncodingPolicy::LUCCE, Vec::new());
        let mut shadow = Shadow::new(&encoder);
        let numbers: Vec<ContextId> = events.iter().map(|event| shadow.event(event)).collect();
        let log = replay(
            encoder.layout(),
            &encoder.with_journal(|changes| changes.clone()),
        );
        for (number, event) in numbers.into_iter().zip(&events) {
            let plain: Vec<ContextFrame> = event.iter().rev().copied().collect();
            assert_eq!(log.decode_context(number, MethodId::EVENT), Ok(plain));
        }
        assert!(
            shadow.anchoring * 25 < shadow.steps,
            "{} of {}",
            shadow.anchoring,
            shadow.steps
        );
    }
}

#[test]
fn real_programs_in_layouts_much_too_small_lose_numbers_but_no_meaning() {
    let events = read(JAVAC);
    for layout in TINY {
        let policy = EncodingPolicy {
            more_anchor_bits: 0,
            ..EncodingPolicy::LUCCE
        };
        let encoder = ContextEncoder::new(layout, policy, Vec::new());
        let mut shadow = Shadow::new(&encoder);
        for event in events.iter().take(2000) {
            let number = shadow.event(event);
            if number != ContextId::UNKNOWN {
                shadow.verify(number, event);
            }
        }
        assert!(encoder.collect_stats().unknown > 0);
    }
}
