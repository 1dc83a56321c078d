//! `lab/docs/encodings.md`: the examples of `cct`, `adaptive` and `pcc`.

use super::feed::*;
use lucce_callgraph::{ContextLayout, EncodingPolicy};
use lucce_encodings::*;

/// X B C D B C is six nodes; X B C C one more.
#[test]
fn a_calling_context_tree_has_a_node_for_each_context() {
    let mut feed = Feed::new(VersionedEncoding::new(
        "cct",
        ContextLayout::DEFAULT,
        EncodingPolicy::CCT,
    ));
    let first = feed.walk("XBCDBC");
    assert_eq!(feed.encoding.collect_statistics().anchors, 6);
    feed.walk("XBCC");
    assert_eq!(feed.encoding.collect_statistics().anchors, 7);
    assert_eq!(feed.walk("XBCDBC"), first);
    assert_eq!(feed.encoding.collect_statistics().anchors, 7);
}

/// Numbered anew, A B D E has another number; the old one means what it meant.
#[test]
fn a_number_outlives_the_renumbering() {
    let policy = EncodingPolicy {
        adapt_after: 8,
        unroll: 0,
        ..EncodingPolicy::ADAPTIVE
    };
    let mut feed = Feed::new(VersionedEncoding::new(
        "adaptive",
        ContextLayout::DEFAULT,
        policy,
    ));
    let old = feed.walk("ABDE");
    for path in ["ACDE", "AEDE", "ABCDE", "ACBDE", "ADBCE", "AECBDE"] {
        feed.walk(path);
    }
    assert!(feed.encoding.collect_statistics().re_encodings > 0);
    let new = feed.walk("ABDE");
    assert_ne!(old, new);
    assert_eq!(
        feed.encoding.decode_context(&old),
        feed.encoding.decode_context(&new)
    );
    let logged = feed.encoding.collect_statistics().log_bytes;
    assert_eq!(feed.walk("ABDE"), new);
    assert_eq!(feed.encoding.collect_statistics().log_bytes, logged);
}

/// V becomes 3 V + site: a call adds the same in every context, and eight values are too few for nine.
#[test]
fn a_hash_adds_the_site_and_collides() {
    let mut feed = Feed::new(PccEncoding::new(32));
    let mut value = |path: &str| {
        feed.start(None);
        let thread = feed.stacks.len() - 1;
        feed.calls(thread, path, true);
        // The frame itself: an event would add its own site.
        feed.number(thread, lucce_callgraph::SiteId::NONE).0.id
    };
    let added = |before: u64, after: u64| after.wrapping_sub(before.wrapping_mul(3)) & 0xffff_ffff;
    let (ab, abc) = (value("AB"), value("ABC"));
    let (xb, xbc) = (value("XB"), value("XBC"));
    assert_ne!(ab, xb);
    assert_eq!(added(ab, abc), added(xb, xbc));
    let mut few = Feed::new(PccEncoding::new(3));
    for path in ["A", "B", "C", "D", "E", "F", "G", "H", "I"] {
        let thread = few.start(None);
        few.calls(thread, path, true);
        few.number(thread, lucce_callgraph::SiteId(7));
    }
    assert!(few.encoding.collect_statistics().collisions > 0);
}
