//! Code that comes and goes, against the plain stack: what lives keeps its numbers, what is gone is unknown and never
//! taken for something else, and the journal knows all of it.
#![cfg(not(loom))]

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use lucce_callgraph::*;
use proptest::prelude::*;
use support::*;

/// Methods that stay.
const STAY: u32 = 5;
/// Methods of each generation.
const COME: u32 = 4;
const SITES: u32 = 3;
/// From here on sites of one generation in methods that stay: where objects of its classes are made.
const MADE: u32 = 1 << 24;

/// All generations before this one are gone.
struct Before(u32);

fn first_of(generation: u32) -> u32 {
    STAY + 1 + generation * COME
}

impl DeadCode for Before {
    fn is_method_dead(&self, method: MethodId) -> bool {
        (STAY + 1..first_of(self.0)).contains(&method.0)
    }

    fn is_site_dead(&self, site: SiteId) -> bool {
        match site.0.checked_sub(MADE) {
            Some(made) => made < self.0 * (STAY + 1),
            None => self.is_method_dead(MethodId(site.0 / SITES)),
        }
    }
}

impl Before {
    fn is_in(&self, given: &Given) -> bool {
        let is_gone = |frame: &ContextFrame| {
            self.is_method_dead(frame.method) || self.is_site_dead(frame.site)
        };
        given.plain.iter().any(is_gone)
    }
}

/// A thread that runs methods that stay and those of one generation.
struct Program {
    stack: Vec<(MethodId, ContextId)>,
    frames: Vec<ContextFrame>,
    random: u64,
}

impl Program {
    fn next(&mut self, below: u32) -> u32 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) as u32 % below
    }

    fn method(&mut self, generation: u32) -> MethodId {
        let which = self.next(STAY + COME);
        MethodId(match which < STAY {
            true => 1 + which,
            false => first_of(generation) + which - STAY,
        })
    }

    /// Begins with an empty stack, and leaves one.
    fn run(
        &mut self,
        encoder: &ContextEncoder<Vec<GraphChange>>,
        generation: u32,
        steps: u32,
        given: &mut Vec<Given>,
    ) {
        let head = MethodId(1 + self.next(STAY));
        self.stack = vec![(head, encoder.root_context(head))];
        self.frames.clear();
        for _ in 0..steps {
            let Some(&(caller, context)) = self.stack.last() else {
                break;
            };
            let site = SiteId(caller.0 * SITES + self.next(SITES));
            match self.next(5) {
                0 if self.stack.len() > 1 => {
                    self.stack.pop();
                    self.frames.pop();
                }
                1 | 2 => {
                    let site = match caller.0 <= STAY && self.next(2) == 0 {
                        true => SiteId(MADE + generation * (STAY + 1) + caller.0),
                        false => site,
                    };
                    let id = encoder.encode_event(context, site, caller);
                    let mut plain = vec![ContextFrame {
                        site,
                        method: caller,
                    }];
                    plain.extend(self.frames.iter().rev());
                    let last = MethodId::EVENT;
                    if id != ContextId::UNKNOWN {
                        given.push(Given { id, last, plain });
                    }
                }
                _ if self.stack.len() < 12 => {
                    let callee = self.method(generation);
                    let id = encoder.encode_call(context, site, caller, callee);
                    self.stack.push((callee, id));
                    self.frames.push(ContextFrame {
                        site,
                        method: caller,
                    });
                }
                _ => {}
            }
        }
    }
}

fn check_all(encoder: &ContextEncoder<Vec<GraphChange>>, gone: &Before, given: &[Given]) {
    for given in given {
        let decoded = encoder.decode_context(given.id, given.last);
        match gone.is_in(given) {
            true => {
                assert_eq!(encoder.check_liveness(&[given.id], given.last), [false]);
                // Never a wrong one.
                assert!(decoded.is_err(), "{given:?}");
            }
            false => {
                assert_eq!(encoder.check_liveness(&[given.id], given.last), [true]);
                check(given, decoded);
            }
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_lives_keeps_its_numbers_and_what_is_gone_is_nobodys(
        layout in layouts(), policy in forgetful(), random in any::<u64>(),
    ) {
        let encoder = ContextEncoder::with_plan_and_memory(layout, policy, Vec::new(), None, Some(&Lasting));
        let plans = policy.adapt_after > 0;
        let mut program = Program { stack: Vec::new(), frames: Vec::new(), random };
        let mut given = Vec::new();
        for generation in 0..12 {
            program.run(&encoder, generation, 150, &mut given);
            let gone = Before(generation);
            encoder.sweep_dead_code(&gone);
            if !plans {
                check_all(&encoder, &gone, &given);
            }
        }
        let graph = replay(layout, &encoder.with_journal(|changes| changes.clone()));
        for given in &given {
            check(given, graph.decode_context(given.id, given.last));
        }
        let mut meanings = HashMap::new();
        for given in &given {
            let meaning = meanings.entry(given.id).or_insert(&given.plain);
            assert_eq!(*meaning, &given.plain);
        }
    }
}

/// Lasts as long as the process, as the agent's does.
struct Lasting;

impl TableMemory for Lasting {
    fn allocate_zeroed(&self, words: usize) -> Option<&'static [AtomicU64]> {
        let words: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        Some(Box::leak(words))
    }

    fn release_words(&self, words: &'static [AtomicU64]) {
        words
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

const GENERATIONS: u32 = 10_000;

#[test]
fn memory_is_that_of_what_lives() {
    let (layout, policy) = (ContextLayout::DEFAULT, EncodingPolicy::LUCCE);
    let encoder =
        ContextEncoder::with_plan_and_memory(layout, policy, Vec::new(), None, Some(&Lasting));
    let mut program = Program {
        stack: Vec::new(),
        frames: Vec::new(),
        random: 1,
    };
    let mut given = Vec::new();
    let mut most = [0; 4];
    for generation in 0..GENERATIONS {
        given.clear();
        program.run(&encoder, generation, 400, &mut given);
        if generation % 50 == 49 {
            encoder.sweep_dead_code(&Before(generation));
            let quarter = (generation * 4 / GENERATIONS) as usize;
            most[quarter] = encoder.collect_stats().memory_bytes.max(most[quarter]);
        }
    }
    let gone = given
        .iter()
        .filter(|given| Before(GENERATIONS).is_in(given));
    assert!(gone.clone().count() > 10);
    encoder.sweep_dead_code(&Before(GENERATIONS));
    let gone: Vec<_> = gone.map(|given| given.id).collect();
    let living = encoder.check_liveness(&gone, MethodId::EVENT);
    assert_eq!(living, vec![false; gone.len()]);
    let given = encoder.collect_stats();
    assert!(given.transitions > 200_000, "{given:?}");
    assert!(most[3] < most[2] * 9 / 8, "{most:?}");
}
