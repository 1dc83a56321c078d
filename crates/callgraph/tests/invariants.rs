//! The six invariants of the encoding, one test each, for random programs, layouts and policies.
#![cfg(not(loom))]

mod support;

use std::collections::HashMap;

use lucce_callgraph::*;
use proptest::prelude::*;
use support::*;

fn encoder(layout: ContextLayout, policy: EncodingPolicy) -> ContextEncoder<Vec<GraphChange>> {
    ContextEncoder::new(layout, policy, Vec::new())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn invariant_1_every_path_decodes_to_itself(
        layout in layouts(), policy in forgetful(), turns in turns(),
    ) {
        let encoder = encoder(layout, policy);
        for given in run(&encoder, &turns) {
            check(&given, encoder.decode_context(given.id, given.last));
        }
    }

    #[test]
    fn invariant_1_holds_step_by_step(
        layout in layouts(), policy in forgetful(), turns in turns(),
    ) {
        let encoder = encoder(layout, policy);
        let given = run(&encoder, &turns);
        let graph = replay(layout, &encoder.with_journal(|changes| changes.clone()));
        for given in given.iter().filter(|given| given.id != ContextId::UNKNOWN) {
            let mut at = (given.id, given.last);
            let mut frames = Vec::new();
            while let Some((parent, frame)) = graph.find_caller(at.0, at.1).unwrap() {
                frames.push(frame);
                at = (parent, frame.method);
            }
            check(given, Ok(frames));
        }
    }

    #[test]
    fn invariant_1_holds_for_real_threads(
        layout in layouts(), policy in forgetful(), programs in prop::collection::vec(actions(), 4),
    ) {
        let encoder = encoder(layout, policy);
        let all = std::thread::scope(|scope| {
            let run = |actions: &Vec<Action>| {
                let encoder = &encoder;
                let actions = actions.clone();
                scope.spawn(move || on_a_thread(encoder, &actions))
            };
            let running: Vec<_> = programs.iter().map(run).collect();
            running.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let graph = replay(layout, &encoder.with_journal(|changes| changes.clone()));
        for given in &all {
            check(given, graph.decode_context(given.id, given.last));
        }
        no_number_has_two_meanings(&all);
    }

    #[test]
    fn invariant_2_two_paths_to_one_event_never_have_the_same_number(
        layout in layouts(), policy in forgetful(), turns in turns(),
    ) {
        no_number_has_two_meanings(&run(&encoder(layout, policy), &turns));
    }

    #[test]
    fn invariant_3_a_number_is_decodable_from_the_log_before_it(
        layout in layouts(), policy in forgetful(), turns in turns(),
    ) {
        let encoder = encoder(layout, policy);
        let mut threads = vec![Thread::default(); THREADS];
        let mut log = VersionedGraph::new(layout);
        let mut read = 0;
        for turn in turns {
            let given = threads[turn.thread].act(&encoder, turn.action);
            let changes = encoder.with_journal(|changes| changes[read..].to_vec());
            read += changes.len();
            for change in changes {
                prop_assert_eq!(log.apply_change(change), Ok(()));
            }
            if let Some(given) = given {
                check(&given, log.decode_context(given.id, given.last));
            }
        }
    }

    #[test]
    fn invariant_4_a_program_without_new_contexts_logs_nothing_and_takes_no_lock(
        layout in layouts(), policy in policies(), turns in turns(),
    ) {
        let encoder = encoder(layout, policy);
        let first = run(&encoder, &turns);
        let before = encoder.collect_stats();
        let again = run(&encoder, &turns);
        let after = encoder.collect_stats();
        prop_assert_eq!(first, again);
        prop_assert_eq!((before.nodes, before.transitions), (after.nodes, after.transitions));
        prop_assert_eq!((before.anchors, before.bases), (after.anchors, after.bases));
        prop_assert_eq!(before.memory_bytes, after.memory_bytes);
        // If fields have run out, there is nothing to look up, so the lock is taken again.
        prop_assert!(before.unknown > 0 || before.slow_lookups == after.slow_lookups);
    }

    /// The intern table's own bound is tested beside it.
    #[test]
    fn invariant_5_memory_is_bounded(
        layout in layouts(), policy in forgetful(), turns in turns(),
    ) {
        let encoder = encoder(layout, policy);
        let (methods, sites) = seen(&run(&encoder, &turns));
        let stats = encoder.collect_stats();
        prop_assert!(stats.nodes <= stats.versions * methods);
        prop_assert!(stats.transitions <= stats.versions * sites * methods);
        prop_assert!(bases(&encoder).iter().all(|base| base.anchors <= base.most));
    }

    #[test]
    fn invariant_6_a_field_that_runs_out_begins_a_fresh_base_and_never_wraps(
        layout in tiny(), policy in forgetful(), turns in turns(),
    ) {
        let encoder = encoder(layout, policy);
        let given = run(&encoder, &turns);
        let unknown = given.iter().filter(|given| given.id == ContextId::UNKNOWN).count();
        let stats = encoder.collect_stats();
        prop_assert_eq!(stats.unknown, unknown as u64);
        let bases = bases(&encoder);
        let Some((newest, before)) = bases.split_last() else {
            // Nothing was called.
            prop_assert_eq!(unknown, 0);
            return Ok(());
        };
        prop_assert!(before.iter().all(|base| base.anchors == base.most));
        // Only when all versions are in use and the newest base is full.
        let versions_left = stats.versions < layout.max_version().0 as usize;
        prop_assert!(unknown == 0 || !versions_left && newest.anchors == newest.most);
        for given in given.iter().filter(|given| given.id != ContextId::UNKNOWN) {
            prop_assert!(layout.fits_context(given.id));
        }
    }

    #[test]
    fn a_forgotten_context_gets_a_second_number_of_the_same_meaning(turns in turns()) {
        let policy = EncodingPolicy { anchor_budget: 1, ..EncodingPolicy::CCT };
        let encoder = encoder(ContextLayout::DEFAULT, policy);
        for given in run(&encoder, &turns).iter().chain(&run(&encoder, &turns)) {
            prop_assert_ne!(given.id, ContextId::UNKNOWN);
            check(given, encoder.decode_context(given.id, given.last));
        }
    }

    #[test]
    fn a_journal_that_refuses_costs_numbers_but_no_meaning(
        layout in layouts(), policy in forgetful(), turns in turns(),
        refusals in prop::collection::vec(any::<bool>(), 0..200),
    ) {
        let journal = Refusing { changes: Vec::new(), refusals };
        let encoder = ContextEncoder::new(layout, policy, journal);
        let given = run(&encoder, &turns);
        let graph = replay(layout, &encoder.with_journal(|journal| journal.changes.clone()));
        for given in &given {
            check(given, encoder.decode_context(given.id, given.last));
            check(given, graph.decode_context(given.id, given.last));
        }
        let unknown = given.iter().filter(|given| given.id == ContextId::UNKNOWN).count();
        prop_assert_eq!(encoder.collect_stats().unknown, unknown as u64);
    }

    #[test]
    fn encoder_and_replayed_graph_agree_on_every_number(
        layout in layouts(), policy in forgetful(), turns in turns(),
        ids in prop::collection::vec((any::<u64>(), 0..10u32), 100),
    ) {
        let encoder = encoder(layout, policy);
        run(&encoder, &turns);
        let graph = replay(layout, &encoder.with_journal(|changes| changes.clone()));
        let used = layout.version_shift() + layout.max_version().0.count_ones();
        for (id, method) in ids {
            let method = if method == 0 { MethodId::EVENT } else { MethodId(method) };
            for id in [ContextId(id), ContextId(id & (u64::MAX >> (64 - used)))] {
                prop_assert_eq!(encoder.decode_context(id, method), graph.decode_context(id, method));
            }
        }
    }

    #[test]
    fn whatever_is_given_to_step_it_never_panics(
        layout in layouts(), calls in prop::collection::vec(any::<(u64, u32, u32, u32)>(), 50),
        turns in turns(),
    ) {
        let encoder = encoder(layout, EncodingPolicy::LUCCE);
        run(&encoder, &turns);
        for (ctx, site, caller, callee) in calls {
            for ctx in [ContextId(ctx), ContextId::UNKNOWN] {
                encoder.encode_call(ctx, SiteId(site), MethodId(caller), MethodId(callee));
            }
            encoder.root_context(MethodId(callee));
        }
    }
}

/// A program that makes classes for ever has new contexts for ever.
#[test]
fn when_versions_and_anchors_run_out_numbers_go_on() {
    let encoder = encoder(ContextLayout::new(2, 4, 20), EncodingPolicy::LUCCE);
    let (main, runtime) = (MethodId(1), MethodId(2));
    let mut contexts = vec![(encoder.root_context(main), main, Vec::new())];
    for method in 3..1500 {
        // What is new calls what is old, and is called by it.
        let (caller, name, path) = contexts[(method as usize - 3) / 3].clone();
        let callee = if name == runtime {
            MethodId(method)
        } else {
            runtime
        };
        let site = SiteId(method);
        let id = encoder.encode_call(caller, site, name, callee);
        let path: Vec<ContextFrame> = [&[ContextFrame { site, method: name }], &path[..]].concat();
        assert_eq!(encoder.decode_context(id, callee).as_ref(), Ok(&path));
        contexts.push((id, callee, path));
    }
    let stats = encoder.collect_stats();
    assert_eq!((stats.unknown, stats.versions, stats.bases), (0, 3, 2));
    let graph = replay(
        encoder.layout(),
        &encoder.with_journal(|changes| changes.clone()),
    );
    for (id, method, path) in &contexts {
        assert_eq!(graph.decode_context(*id, *method).as_ref(), Ok(path));
    }
}

/// The graph does not grow for ever: what a table of anchors that is too small forgets is made again, so
/// the table grows. What is called from a context that was made again has another number, and is the same.
#[test]
fn a_program_that_goes_on_with_all_its_contexts_needs_no_new_anchors() {
    let policy = EncodingPolicy {
        anchor_budget: 4096,
        ..EncodingPolicy::CCT
    };
    let encoder = encoder(ContextLayout::DEFAULT, policy);
    let [main, inner, leaf] = [1, 2, 3].map(MethodId);
    let begin = encoder.root_context(main);
    let round = || {
        for site in 1..10_000 {
            let context = encoder.encode_call(begin, SiteId(site), main, inner);
            encoder.encode_call(context, SiteId(10_000 + site), inner, leaf);
        }
        encoder.collect_stats().anchors
    };
    let anchors: Vec<usize> = (0..8).map(|_| round()).collect();
    assert_eq!(anchors[3], anchors[7], "{anchors:?}");
    assert!(
        anchors[0] == 19_999 && anchors[7] < 5 * 20_000,
        "{anchors:?}"
    );
}

#[test]
fn unknown_in_unknown_out() {
    let encoder = encoder(ContextLayout::DEFAULT, EncodingPolicy::LUCCE);
    let (site, method) = (SiteId(1), MethodId(1));
    assert_eq!(
        encoder.encode_call(ContextId::UNKNOWN, site, method, method),
        ContextId::UNKNOWN
    );
    assert_eq!(
        encoder.encode_event(ContextId::UNKNOWN, site, method),
        ContextId::UNKNOWN
    );
    assert_eq!(encoder.collect_stats().unknown, 2);
}

#[test]
fn an_encoder_is_shared_by_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&encoder(ContextLayout::DEFAULT, EncodingPolicy::LUCCE));
}

fn on_a_thread(encoder: &ContextEncoder<Vec<GraphChange>>, actions: &[Action]) -> Vec<Given> {
    let mut thread = Thread::default();
    let given: Vec<Given> = actions
        .iter()
        .filter_map(|action| thread.act(encoder, *action))
        .collect();
    for given in &given {
        check(given, encoder.decode_context(given.id, given.last));
    }
    given
}

fn no_number_has_two_meanings(given: &[Given]) {
    let mut meanings = HashMap::new();
    for given in given.iter().filter(|given| given.id != ContextId::UNKNOWN) {
        let first = meanings
            .entry((given.id, given.last))
            .or_insert(&given.plain);
        assert_eq!(*first, &given.plain, "{:?}", given.id);
    }
}

/// How many methods (EVENT among them) and sites the numbers speak of.
fn seen(given: &[Given]) -> (usize, usize) {
    let mut methods: Vec<MethodId> = given.iter().map(|given| given.last).collect();
    let frames = given.iter().flat_map(|given| &given.plain);
    let mut sites: Vec<SiteId> = frames.map(|frame| frame.site).collect();
    methods.sort();
    methods.dedup();
    sites.sort();
    sites.dedup();
    (methods.len(), sites.len())
}

/// A base's anchors and how many it may have.
#[derive(Debug)]
struct Anchors {
    anchors: u64,
    most: u64,
}

fn bases(encoder: &ContextEncoder<Vec<GraphChange>>) -> Vec<Anchors> {
    let layout = encoder.layout();
    let mut bases: Vec<Anchors> = Vec::new();
    encoder.with_journal(|changes| {
        for change in changes {
            match change {
                GraphChange::Base(base) => bases.push(Anchors {
                    anchors: 0,
                    most: base
                        .anchor_bits
                        .map_or(layout.anchor_count(), |bits| 1 << bits),
                }),
                GraphChange::Anchor(_) => bases.last_mut().unwrap().anchors += 1,
                _ => {}
            }
        }
    });
    bases
}

/// Refuses where its list says so, then accepts.
struct Refusing {
    changes: Vec<GraphChange>,
    refusals: Vec<bool>,
}

impl GraphJournal for Refusing {
    fn append_change(&mut self, change: GraphChange) -> Result<(), JournalError> {
        if self.refusals.pop() == Some(true) {
            return Err(JournalError);
        }
        self.changes.push(change);
        Ok(())
    }
}
