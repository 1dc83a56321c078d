//! The library: traces equal the paths that were numbered, also when a trace has two numbers.

use lucce_callgraph::EncodingPolicy;
use lucce_decoder::{ContextCounter, ContextId, Profile, SiteId, ThreadId};
use lucce_tracelog::ThreadId as LogThread;

#[test]
fn every_number_decodes_to_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let ids = lucce_testkit::sample(&path);
    let profile = Profile::open(&path).unwrap();
    assert_eq!(profile.damage, None);
    for (name, route) in lucce_testkit::paths() {
        let frames = profile.decode_frames(ids[&name]).unwrap();
        let sites: Vec<_> = frames.iter().rev().map(|frame| frame.site).collect();
        let calls = route.calls.iter().map(|(site, _)| *site);
        let expected: Vec<_> = calls.chain([route.event]).map(SiteId).collect();
        assert_eq!(sites, expected, "context {name}");
    }
}

#[test]
fn sizes_come_from_sites_or_cells() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let ids = lucce_testkit::sample(&path);
    let profile = Profile::open(&path).unwrap();
    let contexts = profile.list_contexts(&|_| ());
    let of = |name| contexts.list.iter().find(|c| c.id == ids[&name]).unwrap();
    assert_eq!((of('A').count, of('A').value), (100, 2400));
    assert_eq!((of('B').count, of('B').value), (12, 288));
    assert_eq!((of('C').count, of('C').value), (10, 40_960));
    assert_eq!(
        (contexts.event_count(), contexts.total_value()),
        (124, 2400 + 288 + 40_960 + 16 + 56)
    );
    assert_eq!(profile.single_thread_name(ids[&'D']), Some("worker-1"));
    assert_eq!(profile.single_thread_name(ids[&'B']), None);
    assert_eq!(profile.single_thread_name(ids[&'F']), None);
    let share = ContextCounter {
        id: ids[&'B'],
        thread: LogThread(2),
        event: lucce_decoder::ALLOCATION,
        // The first cell of the second block.
        offset: 64 + (64 + 192) + 64,
        count: 7,
        value: 0,
    };
    assert_eq!(profile.events.counters_of_context(ids[&'B'])[1], share);
    assert_eq!(
        profile.events.counters_of_context(ids[&'B'])[0].thread,
        ThreadId(1)
    );
}

/// What `stats` and `check` show is the sum of what `report` lists, whatever is left out of the traces.
#[test]
fn a_summary_is_the_sum_of_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    lucce_testkit::sample(&path);
    let mut profile = Profile::open(&path).unwrap();
    for include in ["", "app.*", "app.Main", "no.*"] {
        let patterns = lucce_filter::PatternList::parse(include);
        if let Some(patterns) = patterns.ok().filter(|_| !include.is_empty()) {
            let mut filter = lucce_filter::ClassFilter::default();
            filter.include.extend(patterns);
            profile.restrict_scope(&filter);
        }
        let (contexts, summary) = (
            profile.list_contexts(&|_| ()),
            profile.summarize_contexts(&|_| ()),
        );
        let mut traces: Vec<_> = contexts.list.iter().map(|context| context.id).collect();
        traces.dedup();
        assert_eq!(summary.traces, traces.len() as u64, "{include}");
        let kinds = summary.by_kind(&profile);
        let values = kinds
            .values()
            .fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1));
        assert_eq!(
            values,
            (contexts.event_count(), contexts.total_value()),
            "{include}"
        );
        assert_eq!(
            summary.event_count(|_| true),
            contexts.event_count(),
            "{include}"
        );
        assert_eq!(summary.outside, contexts.outside, "{include}");
        assert_eq!(summary.unknown, contexts.unknown, "{include}");
    }
}

/// An encoder that forgets its anchors numbers a path again; the report shows it once.
#[test]
fn two_numbers_of_one_trace_are_one_context() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut writer = lucce_testkit::writer(&path);
    lucce_testkit::code(&mut writer);
    let (writer, first) = lucce_testkit::number(writer, EncodingPolicy::LUCCE);
    drop(writer);
    let bytes = std::fs::read(&path).unwrap();
    let log = lucce_tracelog::InMemoryLog::from_bytes(bytes).unwrap();
    let mut profile = Profile::from_log(&log, &|_| ()).unwrap();
    let (again, changes) = number_again(&mut profile, first[&'A']);
    let both = [first[&'A'], again].map(|id| profile.decode_frames(id).unwrap());
    assert_eq!(both[0], both[1]);
    assert_ne!(first[&'A'], again);
    let contexts = contexts_of(&dir.path().join("y"), first[&'A'], again, changes);
    let aliases = vec![first[&'A'].max(again)];
    assert_eq!(contexts, [(first[&'A'].min(again), aliases, 3)]);
}

/// Numbers context A once more, in a new base version, with nothing but anchors.
fn number_again(
    profile: &mut Profile,
    id: ContextId,
) -> (ContextId, Vec<lucce_callgraph::GraphChange>) {
    use lucce_callgraph::{Anchor, AnchorId, Base, GraphChange, GraphNode, MethodId, Version};
    let version = Version(profile.graph.version_count() as u32 + 1);
    let caller = |head| GraphNode {
        version,
        method: head,
        capacity: 1,
    };
    let mut changes = vec![
        GraphChange::Base(Base::new(version)),
        GraphChange::Node(caller(lucce_testkit::MAIN)),
        GraphChange::Node(caller(lucce_testkit::WORK)),
        GraphChange::Node(caller(MethodId::EVENT)),
    ];
    let mut parent = None;
    let (mut last, mut at) = (lucce_testkit::MAIN, id);
    let steps = [
        (lucce_testkit::MAIN, None),
        (lucce_testkit::WORK, Some(10)),
        (MethodId::EVENT, Some(20)),
    ];
    for (n, (head, site)) in steps.into_iter().enumerate() {
        let anchor = AnchorId(n as u32);
        let from = site.and_then(|site| Some((parent?, SiteId(site), last)));
        changes.push(GraphChange::Anchor(Anchor {
            base: version,
            id: anchor,
            head,
            parent: from,
        }));
        at = lucce_testkit::LAYOUT.pack_context(version, anchor, 0);
        (parent, last) = (Some(at), head);
    }
    changes
        .iter()
        .for_each(|change| profile.graph.apply_change(*change).unwrap());
    (at, changes)
}

/// One event of the first number, two of the second.
fn contexts_of(
    path: &std::path::Path,
    first: ContextId,
    again: ContextId,
    changes: Vec<lucce_callgraph::GraphChange>,
) -> Vec<(ContextId, Vec<ContextId>, u64)> {
    let mut writer = lucce_testkit::writer(path);
    lucce_testkit::code(&mut writer);
    let (mut writer, _) = lucce_testkit::number(writer, EncodingPolicy::LUCCE);
    changes
        .into_iter()
        .for_each(|change| writer.append(change).unwrap());
    let counters = writer.add_counters(LogThread(1), 2).unwrap();
    for (cell, (id, count)) in counters.iter().zip([(first, 1), (again, 2)]) {
        cell.claim(id);
        (0..count).for_each(|_| cell.count_event(0));
    }
    let contexts = Profile::open(path).unwrap().list_contexts(&|_| ());
    contexts
        .list
        .into_iter()
        .map(|c| (c.id, c.aliases, c.count))
        .collect()
}
