//! A log with so many contexts that two threads walk: each context has the frames that its number decodes to.

use std::collections::HashMap;

use lucce_decoder::{MergedProfile, NodeId, Profile};

#[path = "../../examples/large_log.rs"]
#[allow(dead_code, reason = "it is a program, too")]
mod large_log;

#[test]
fn two_threads_find_what_numbers_decode_to() {
    let folder = std::env::temp_dir().join(format!("lucce-large-{}", std::process::id()));
    let contexts = large_log::write(&folder, 130_000).unwrap();
    let profile = Profile::open(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();
    let mut joined = MergedProfile::default();
    joined.add_profile(&profile, &|_| ());
    let run = &joined.runs[0];
    assert!(run.unknown == 0 && contexts > 100_000);
    let mut nodes: HashMap<Vec<String>, NodeId> = HashMap::new();
    for row in run.counters.iter().step_by(53) {
        let frames = joined.path_frames(row.node);
        assert_eq!(frames, profile.decode_trace(row.id).unwrap().frames);
        // Equal traces are one node.
        let texts = frames.iter().map(ToString::to_string).collect();
        assert_eq!(*nodes.entry(texts).or_insert(row.node), row.node);
    }
    let counted: u64 = run.counters.iter().map(|row| row.count).sum();
    assert_eq!(counted, profile.events.event_count());
}
