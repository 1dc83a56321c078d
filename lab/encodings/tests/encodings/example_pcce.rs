//! The walks of PCCE's Figures 2, 4, 5 and 7, with the numbers of its text. Figure 4 is also the
//! Lucce paper's Example 1.

use super::feed::*;
use lucce_encodings::*;

const FIGURE_2: [&str; 7] = ["A", "AB", "AC", "BD", "CD", "DE", "DF"];

/// As far as the text tells: D calls F at two sites.
const FIGURE_4: [&str; 12] = [
    "A", "AB", "AJ", "BD", "JD", "DF1", "DF2", "DG", "JG", "FI", "GI", "JI",
];

/// F → C is recursive; E is called by B before D.
const FIGURE_5: [&str; 11] = [
    "A", "AB", "AC", "BE", "CD", "CG", "DE", "DF", "GF", "FH", "FC",
];

fn pcce(edges: &[&str]) -> Feed<PcceEncoding> {
    Feed::new(PcceEncoding::new(&graph(edges), PcceEncoding::BITS, false))
}

fn counts(encoding: &PcceEncoding, methods: &str) -> Vec<u64> {
    let count = |letter| encoding.numbering().context_count(method(letter));
    methods.chars().map(count).collect()
}

fn additions(encoding: &PcceEncoding, edges: &[&str]) -> Vec<u64> {
    let addition = |text: &&str| {
        encoding
            .numbering()
            .addition_value(weighted_edge(text, 1).edge)
            .unwrap()
    };
    edges.iter().map(addition).collect()
}

/// "Paths ABDE and ABDF have the same encoding 0 … the maximum ID is 1", and one edge adds.
#[test]
fn figure_2() {
    let mut feed = pcce(&FIGURE_2);
    assert_eq!(feed.encoding.numbering().max_id(), 1);
    assert_eq!([feed.walk("ABDE").id, feed.walk("ABDF").id], [0, 0]);
    assert_eq!([feed.walk("ACDE").id, feed.walk("ACDF").id], [1, 1]);
    let all = ["AB", "AC", "BD", "CD", "DE", "DF"];
    assert_eq!(additions(&feed.encoding, &all), [0, 0, 0, 1, 0, 0]);
}

/// "Nodes A, B, and J are annotated with 1, D with 2"; "GI has the label +4, JI +7"; JG is 2.
#[test]
fn figure_4_annotations() {
    let feed = pcce(&FIGURE_4);
    assert_eq!(counts(&feed.encoding, "ABJDFG"), [1, 1, 1, 2, 4, 3]);
    assert_eq!(counts(&feed.encoding, "I"), [8]);
    let labelled = additions(&feed.encoding, &["FI", "GI", "JI", "JG"]);
    assert_eq!(labelled, [0, 4, 7, 2]);
    // "5 edges need to be instrumented".
    let adding = feed.encoding.numbering().additions.values();
    assert_eq!(adding.filter(|addition| **addition > 0).count(), 5);
}

/// "Assume the ID 6 is generated at function I … yielding the context AJGI."
#[test]
fn figure_4_decoding() {
    let mut feed = pcce(&FIGURE_4);
    assert_eq!(feed.walk("AJGI").id, 6);
    // Lucce's Example 1: two call sites of F in D are two edges.
    assert_ne!(feed.walk("ABD1F").id, feed.walk("ABD2F").id);
}

/// "ACGFCDE is encoded as a sub-path with ID 3 on the stack and the current sub-path id = 1";
/// "ACGFCDFH … 3 on the stack and current id = 0".
#[test]
fn figure_5() {
    let mut feed = pcce(&FIGURE_5);
    let back = edge('F', 'C', 0).site;
    assert_eq!(feed.walk("ACGFCDE").id, 1);
    assert_eq!(feed.encoding.thread_state(MAIN), (1, vec![(3, back, 1)]));
    for _ in "EDC".chars() {
        feed.leave(0);
    }
    // "Assume the execution returns from E, D, C, and then calls C, D, F, and H".
    assert_eq!(feed.on("FCDFH").id, 0);
    assert_eq!(feed.encoding.thread_state(MAIN), (0, vec![(3, back, 1)]));
    // "Paths that do not involve recursion, such as ACGFH, are not divided".
    feed.walk("ACGFH");
    assert_eq!(feed.encoding.stack_depth(MAIN), 0);
}

/// "ACGF CGF CGF CGF … can be encoded to two pairs 3:1 and 2:3".
#[test]
fn figure_5_repetitions() {
    let mut feed = pcce(&FIGURE_5);
    let number = feed.walk("ACGFCGFCGFCGF");
    let back = edge('F', 'C', 0).site;
    // The last of the three repetitions is the current sub-path.
    assert_eq!(number.id, 2);
    let (_, stack) = feed.encoding.thread_state(MAIN);
    assert_eq!(stack, [(3, back, 1), (2, back, 2)]);
    for depth in (1..=3).rev() {
        feed.unwind(0, 3);
        assert_eq!(feed.check(0).id, if depth == 1 { 3 } else { 2 });
    }
    assert_eq!(feed.encoding.stack_depth(MAIN), 0);
}

/// Section 7: where ids have too few bits, cold callers push, hot ones do not.
#[test]
fn selective_reduction() {
    let mut edges = graph(&["A", "AB", "AC", "AD", "BE", "CE", "DE", "EF"]);
    edges[5].weight = 50;
    edges[6].weight = 20;
    let mut feed = Feed::new(PcceEncoding::new(&edges, 1, false));
    assert_eq!(feed.encoding.numbering().max_id(), 1);
    let depth = |feed: &mut Feed<PcceEncoding>, path| {
        feed.walk(path);
        feed.encoding.stack_depth(MAIN)
    };
    assert_eq!(depth(&mut feed, "ACEF"), 0);
    assert_eq!(depth(&mut feed, "ADEF"), 1);
    assert_eq!(depth(&mut feed, "ABEF"), 1);
}

/// The frame offsets of Figure 7 (b), as far as the text tells; FI and JI are such that "the
/// extensions from ImCC[F], ImCC[G] and ImCC[J] do not conflict".
fn hybrid() -> Feed<PcceHybridEncoding> {
    let offsets = [
        ("AB", 1),
        ("BD", 2),
        ("AJ", 1),
        ("JD", 3),
        ("DF1", 1),
        ("DF2", 1),
        ("DG", 1),
        ("JG", 3),
        ("FI", 3),
        ("GI", 1),
        ("JI", 2),
    ];
    let offsets = offsets.map(|(text, offset)| (weighted_edge(text, 1).edge, offset));
    let edges = graph(&FIGURE_4);
    Feed::new(PcceHybridEncoding::new(
        &edges,
        32,
        false,
        offsets.into_iter().collect(),
    ))
}

/// "The stack offset of the context ABD is 3; AJD is 1 + 3 = 4"; ImCC[F] holds 4 and 5; "the hybrid
/// version instruments 3 edges".
#[test]
fn figure_7_implicit_contexts() {
    let feed = hybrid();
    let implicit = |letter| feed.encoding.implicit_offsets(method(letter));
    assert_eq!(implicit('D'), [3, 4]);
    assert_eq!(implicit('F'), [4, 5]);
    assert_eq!(implicit('G'), [4, 5]);
    assert_eq!(feed.encoding.instrumented_edge_count(), 3);
}

/// "offset = 5, id = 0 and the current function G: AJDG"; "offset = 5, id = 6 and I: AJGI".
#[test]
fn figure_7_decoding() {
    let mut feed = hybrid();
    feed.walk("AJDG");
    assert_eq!(feed.encoding.thread_state(MAIN), (5, 0, 0));
    feed.walk("AJGI");
    assert_eq!(feed.encoding.thread_state(MAIN), (5, 6, 0));
    let paths = [
        "ABD1F", "AJD1F", "ABD2F", "AJD2F", "ABDG", "AJG", "ABD1FI", "AJD2FI", "ABDGI", "AJI",
    ];
    for path in paths {
        feed.walk(path);
    }
}
