//! The examples of DACCE's Section 3 and of its slides, with their numbers.

use super::feed::*;
use lucce_encodings::*;

fn dacce() -> Feed<DacceEncoding> {
    Feed::new(DacceEncoding::new(DacceTuning::NEVER))
}

/// The graph of Figure 3 and the slides: C → D adds 1, E → I adds 2, C → I adds 4, maxID is 4.
fn figure_3() -> Feed<DacceEncoding> {
    let mut feed = dacce();
    for path in ["ABDFI", "ABDEI", "ACD", "ACI"] {
        feed.walk(path);
    }
    feed.encoding.re_encode();
    feed
}

fn stack(feed: &Feed<DacceEncoding>) -> Vec<(u64, char, char)> {
    let letter = |method: lucce_callgraph::MethodId| char::from_u32(method.0).unwrap();
    let (_, stack) = feed.encoding.thread_state(MAIN);
    let entry = |(id, site, target, _): &(u64, lucce_callgraph::SiteId, _, u64)| {
        (*id, char::from_u32(site.0 >> 16).unwrap(), letter(*target))
    };
    stack.iter().map(entry).collect()
}

/// Section 3.1: with AD unencoded and maxID 0, the context AD has id 1 and ⟨0, A, D⟩ on the ccStack.
#[test]
fn figure_2_an_unencoded_edge() {
    let mut feed = dacce();
    feed.walk("ACD");
    feed.encoding.re_encode();
    assert_eq!(feed.encoding.max_id(), 0);
    assert_eq!(feed.walk("ACD").id, 0);
    assert_eq!(feed.walk("AD").id, 1);
    assert_eq!(stack(&feed), [(0, 'A', 'D')]);
}

/// Section 3.1: "A → B → C → D, in which AB and CD are unencoded: id = maxID + 1, with ⟨0, A, B⟩ and
/// ⟨maxID + 1, C, D⟩ on ccStack".
#[test]
fn several_unencoded_edges() {
    let mut feed = dacce();
    feed.walk("XBC");
    feed.walk("YBC");
    feed.encoding.re_encode();
    let max = feed.encoding.max_id();
    assert_eq!(max, 1);
    assert_eq!(feed.walk("ABCD").id, max + 1);
    assert_eq!(stack(&feed), [(0, 'A', 'B'), (max + 1, 'C', 'D')]);
}

/// The slides' figure: which edges add what.
#[test]
fn figure_3_additions() {
    let feed = figure_3();
    assert_eq!(feed.encoding.max_id(), 4);
    let addition = |text| feed.encoding.addition_value(weighted_edge(text, 1).edge);
    let adding = ["BD", "CD", "DE", "DF", "FI", "EI", "CI"].map(addition);
    assert_eq!(adding, [0, 1, 0, 0, 0, 2, 4].map(Some));
    assert_eq!(addition("CE"), None);
}

/// Section 3.2: ACEI, where C calls E indirectly, has id 7 and ⟨0, C, E⟩ on the ccStack.
#[test]
fn figure_3_an_indirect_call() {
    let mut feed = figure_3();
    assert_eq!(feed.walk("ACE").id, 5);
    assert_eq!(feed.on("EI").id, 7);
    assert_eq!(stack(&feed), [(0, 'C', 'E')]);
}

/// The slides, 17 to 25: A B D E I C E I, id and stack after each call; and back (26 to 32).
#[test]
fn the_slides_walk() {
    let mut feed = figure_3();
    feed.walk("A");
    let mut ids = vec![feed.encoding.thread_state(MAIN).0];
    for call in ["AB", "BD", "DE", "EI", "IC", "CE", "EI"] {
        ids.push(feed.on(call).id);
    }
    assert_eq!(ids, [0, 0, 0, 0, 2, 5, 5, 7]);
    assert_eq!(stack(&feed), [(2, 'I', 'C'), (5, 'C', 'E')]);
    let mut back = Vec::new();
    while feed.stacks[0].len() > 1 {
        feed.leave(0);
        back.push(feed.check(0).id);
    }
    assert_eq!(back, [5, 5, 2, 0, 0, 0, 0]);
}

/// Section 3.3: ADACDAD has id 1 and ⟨0, A, D⟩, ⟨1, D, A⟩, ⟨1, D, A⟩, ⟨1, A, D⟩.
#[test]
fn figure_5_recursion() {
    let mut feed = dacce();
    feed.walk("ACD");
    feed.encoding.re_encode();
    assert_eq!(feed.encoding.max_id(), 0);
    assert_eq!(feed.walk("ADACDAD").id, 1);
    let expected = [(0, 'A', 'D'), (1, 'D', 'A'), (1, 'D', 'A'), (1, 'A', 'D')];
    assert_eq!(stack(&feed), expected);
}

/// Figure 5 (e): once the edge is known to be recursive, equal entries are one with a count.
#[test]
fn figure_5_compressed_recursion() {
    let mut feed = dacce();
    feed.walk("ACDACD");
    feed.encoding.re_encode();
    let path = "A".to_owned() + &"CDA".repeat(50);
    feed.walk(&path);
    let (_, stack) = feed.encoding.thread_state(MAIN);
    let counts: Vec<u64> = stack.iter().map(|(_, _, _, count)| *count).collect();
    assert_eq!(counts, [0, 48]);
    while feed.stacks[0].len() > 1 {
        feed.leave(0);
        feed.check(0);
    }
    assert_eq!(feed.encoding.stack_depth(MAIN), 0);
}

/// Section 4.1: a number keeps its timestamp, and is decoded with the dictionary of that time.
#[test]
fn figure_6_dictionaries() {
    let mut feed = dacce();
    let mut numbers = Vec::new();
    for path in ["ABD", "ACD", "ABDE", "ABD", "ACDE"] {
        let number = feed.walk(path);
        let place = feed.number(0, lucce_callgraph::SiteId(7)).1;
        numbers.push((number, place));
        feed.encoding.re_encode();
        // The thread's own context was translated.
        feed.check(0);
    }
    let stamps: Vec<u64> = numbers
        .iter()
        .map(|(number, _)| number.extra_numbers[0])
        .collect();
    assert_eq!(stamps, [0, 1, 2, 3, 4]);
    for (number, plain) in numbers {
        assert_eq!(feed.encoding.decode_context(&number), Ok(plain));
    }
}

/// Section 4: the most frequently invoked edge is encoded with 0.
#[test]
fn the_hottest_edge_adds_nothing() {
    let every_call = DacceTuning {
        sample_interval: 1,
        new_edges: u64::MAX,
        stack_percent: u64::MAX / 1000,
        hot_percent: u64::MAX / 1000,
    };
    let mut feed = Feed::new(DacceEncoding::new(every_call));
    feed.walk("ABD");
    (0..10).for_each(|_| drop(feed.walk("ACD")));
    feed.encoding.re_encode();
    let addition = |text| feed.encoding.addition_value(weighted_edge(text, 1).edge);
    assert_eq!([addition("CD"), addition("BD")], [Some(0), Some(1)]);
}

/// Section 3.2, Figure 4: a call site with many targets finds them in its hash table.
#[test]
fn many_targets_of_one_site() {
    let mut feed = dacce();
    let site = edge('A', 'B', 0).site;
    let call = |callee: u32| lucce_callgraph::CallEdge {
        site,
        caller: method('A'),
        callee: lucce_callgraph::MethodId(callee),
    };
    feed.walk("A");
    for callee in 1000..1100 {
        feed.enter(0, call(callee));
        feed.check(0);
        feed.leave(0);
    }
    feed.encoding.re_encode();
    let hashed = feed.encoding.collect_statistics().other_counts;
    assert!(hashed.contains(&("hashed sites", 1)), "{hashed:?}");
    for callee in 1000..1100 {
        feed.enter(0, call(callee));
        feed.check(0);
        assert_eq!(feed.encoding.stack_depth(MAIN), 0);
        feed.leave(0);
    }
}

/// Section 5.3: a thread keeps the context that it was started in, across renumberings.
#[test]
fn a_thread_knows_where_it_was_started() {
    let mut feed = figure_3();
    feed.walk("ABDEI");
    let child = feed.start(Some((0, lucce_callgraph::SiteId(9))));
    feed.calls(child, "XY", true);
    feed.encoding.re_encode();
    feed.check(child);
    feed.check_starts();
}
