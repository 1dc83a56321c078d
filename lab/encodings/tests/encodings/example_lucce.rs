//! The worked examples of the Lucce paper with the numbers of its text, by its own Algorithm 1.

use super::feed::*;
use lucce_callgraph::numbering::*;
use lucce_encodings::*;

/// callId and version.
fn pair(number: &EncodedContext) -> (u64, u64) {
    (number.id, number.extra_numbers[0])
}

/// Figure 3: A → B → C → E is ⟨0, v1⟩, A → B → D → E is ⟨1, v2⟩, X → B → D → E is ⟨2, v3⟩. The paper
/// counts a version per edge that matters; by Algorithm 1's own rule there are more.
#[test]
fn figure_3_the_path_of_example_2_again() {
    let mut feed = Feed::new(LuccePaperEncoding::new(63));
    let first = feed.walk("ABCE");
    feed.leave(0);
    feed.leave(0);
    let second = feed.on("BDE");
    let other = feed.start(None);
    feed.calls(other, "XBDE", true);
    let third = feed.check(other);
    let numbers = [&first, &second, &third].map(pair);
    assert_eq!(numbers.map(|(call, _)| call), [0, 1, 2]);
    assert!(numbers[0].1 < numbers[1].1 && numbers[1].1 < numbers[2].1);
    // "The paths that we actually did visit can be decoded in the recorded versions": still so.
    let name = |frame: &lucce_callgraph::ContextFrame| char::from_u32(frame.method.0).unwrap();
    let paths = [first, second, third].map(|number| {
        let frames = feed.encoding.decode_context(&number).unwrap();
        frames.iter().rev().map(name).collect::<String>()
    });
    assert_eq!(paths, ["ABCE", "ABDE", "XBDE"]);
}

/// Example 2's problem: 1 at E, decoded in the graph after the new edge, would be X → B → C → E. The
/// version keeps that from happening.
#[test]
fn example_2_the_same_number_in_two_versions() {
    let mut feed = Feed::new(LuccePaperEncoding::new(63));
    feed.walk("ABCE");
    let old = feed.walk("ABDE");
    assert_eq!(old.id, 1);
    feed.walk("XBCE");
    let now = feed.walk("ABDE");
    assert_eq!(now.id, 2, "the edge's addition value has changed");
    assert_eq!(
        feed.encoding.decode_context(&old),
        feed.encoding.decode_context(&now)
    );
}

/// Example 3, `int f() { … f^l() … }`: each frame keeps its ⟨callId, version⟩ in local variables, and
/// "execution resumes with the previous values of the locals", whatever has changed below it.
#[test]
fn example_3_a_recursive_method_has_its_pair_in_locals() {
    let mut feed = Feed::new(LuccePaperEncoding::new(63));
    let mut pairs = vec![pair(&feed.walk("F"))];
    for _ in 0..5 {
        pairs.push(pair(&feed.on("FF")));
    }
    assert!(pairs.windows(2).all(|calls| calls[0].0 < calls[1].0));
    for before in pairs.iter().rev().skip(1) {
        feed.leave(0);
        assert_eq!(pair(&feed.check(0)), *before);
    }
}

/// Figure 4: "when we reached B for the second time, av(DB) = numCC(A) + numCC(A') = 2. Thus we
/// return callId = 3 for A' → B → C → D → B → C". A' is X here.
#[test]
fn example_4_recursion() {
    let mut feed = Feed::new(LuccePaperEncoding::new(63));
    feed.walk("AB");
    assert_eq!(feed.walk("XBCD").id, 1);
    assert_eq!(feed.on("DBC").id, 3);
}

/// "If the recursion continues, … which unfortunately leads to many nodeUpdated logging events."
#[test]
fn example_4_every_level_is_logged() {
    let mut feed = Feed::new(LuccePaperEncoding::new(63));
    feed.walk("ABCD");
    let mut logged = Vec::new();
    for _ in 0..20 {
        feed.on("DBCD");
        logged.push(feed.encoding.collect_statistics().log_bytes);
    }
    assert!(
        logged.windows(2).all(|pair| pair[0] + 6 <= pair[1]),
        "{logged:?}"
    );
}

/// Theorem 1 overlooks methods that call themselves at two sites, like the naive Fibonacci: with
/// Algorithm 1 to the letter the second call would get the number 1 + 5 + 1 = 7, beyond numCC(F) = 5.
#[test]
fn a_method_that_calls_itself_twice() {
    let mut feed = Feed::new(LuccePaperEncoding::new(63));
    assert_eq!(feed.walk("F").id, 0);
    assert_eq!(feed.on("F0F").id, 1);
    assert_eq!(feed.on("F1F").id, 1 + 1 + 2);
    let repaired = feed.encoding.collect_statistics().other_counts;
    assert!(repaired.contains(&("repaired", 1)), "{repaired:?}");
    feed.walk("F1F0F0F1F1F0F");
}

/// Numbers that exceed a Java long are lost and reported as lost.
#[test]
fn what_exceeds_the_limit_is_lost() {
    let mut feed = Feed::new(LuccePaperEncoding::new(8));
    feed.walk("ABC");
    for _ in 0..400 {
        feed.calls(0, "CABC", false);
    }
    let place = lucce_callgraph::ContextFrame {
        site: lucce_callgraph::SiteId(7),
        method: method('C'),
    };
    let number = feed.encoding.current_context(MAIN, place);
    assert_eq!(
        feed.encoding.decode_context(&number),
        Err(ContextDecodeError::Lost)
    );
    assert_eq!(feed.encoding.collect_statistics().unnumbered, 1);
    // Higher frames are as good as before.
    feed.unwind(0, 1200);
    feed.check(0);
}

/// `lab/docs/encodings.md`: B and C call D, D calls E; every node keeps number 0 for sub-paths that begin.
#[test]
fn a_graph_numbered_in_advance() {
    let edges = graph(&["A", "AB", "AC", "BD", "CD", "DE"]);
    let rules = NumberingRules {
        sub_path_starts: SubPathStarts::Anywhere,
        ..NumberingRules::for_exact_ids(32)
    };
    let plan = AcyclicNumbering::from_edges(&edges, &rules);
    let counts = ['A', 'B', 'C', 'D', 'E'].map(|letter| plan.context_count(method(letter)));
    assert_eq!(counts, [1, 2, 2, 5, 6]);
    assert_eq!(plan.addition_value(weighted_edge("CD", 1).edge), Some(3));
    let layout = lucce_callgraph::ContextLayout::DEFAULT;
    // As PCCE has it: nothing is numbered that is not in the graph.
    let policy = lucce_callgraph::EncodingPolicy {
        lazy: false,
        ..lucce_callgraph::EncodingPolicy::STATIC
    };
    let mut feed = Feed::new(VersionedEncoding::with_numbering_plan(
        "static", layout, policy, plan,
    ));
    feed.walk("ACDE");
    // The thread's entry, and an event, which was not planned.
    assert_eq!(feed.encoding.collect_statistics().anchors, 2);
    feed.walk("ABE");
    assert_eq!(feed.encoding.collect_statistics().anchors, 4);
}

/// The policy of the agent: what is not in the graph is numbered lazily.
#[test]
fn what_was_not_known_in_advance_has_a_range_too() {
    let edges = graph(&["A", "AB", "AC", "BD", "CD", "DE"]);
    let layout = lucce_callgraph::ContextLayout::DEFAULT;
    let policy = lucce_callgraph::EncodingPolicy::STATIC;
    let plan =
        AcyclicNumbering::from_edges(&edges, &NumberingRules::for_base_version(layout, &policy));
    let mut feed = Feed::new(VersionedEncoding::with_numbering_plan(
        "static", layout, policy, plan,
    ));
    for path in ["ACDE", "ABE", "ABDEABDE"] {
        feed.walk(path);
    }
    assert_eq!(
        feed.encoding.collect_statistics().anchors,
        1,
        "the thread's entry"
    );
}
