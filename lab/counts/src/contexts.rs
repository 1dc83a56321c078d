//! Numbers of recorded contexts, and back.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use lucce_callgraph::*;

use crate::measured;
use lucce_contextkit::Shadow;

pub type Events = Vec<Vec<ContextFrame>>;

pub fn events(file: &Path) -> Events {
    lucce_contextkit::read(File::open(file).expect("recorded contexts"))
}

fn encoder() -> ContextEncoder<Vec<GraphChange>> {
    ContextEncoder::new(ContextLayout::DEFAULT, EncodingPolicy::LUCCE, Vec::new())
}

/// The numbers of the events, and the changes of the graph that explain them.
pub fn encoded(events: &Events) -> (Vec<ContextId>, Vec<GraphChange>) {
    let encoder = encoder();
    let mut shadow = Shadow::new(&encoder);
    let numbers = events.iter().map(|event| shadow.event(event)).collect();
    (numbers, encoder.with_journal(|changes| changes.clone()))
}

pub fn encode(file: &Path) -> String {
    let events = events(file);
    let encoder = encoder();
    let mut shadow = Shadow::new(&encoder);
    let mut numbers = Vec::with_capacity(events.len());
    measured(&mut || numbers.extend(events.iter().map(|event| shadow.event(event))));
    for (number, event) in numbers.iter().zip(&events).step_by(101) {
        shadow.verify(*number, event);
    }
    format!("{} events, {} steps", events.len(), shadow.steps)
}

pub fn encode_known(file: &Path) -> String {
    let events = events(file);
    let encoder = encoder();
    let mut shadow = Shadow::new(&encoder);
    let first: Vec<ContextId> = events.iter().map(|event| shadow.event(event)).collect();
    let changes = encoder.with_journal(|changes| changes.len());
    let mut again = Shadow::new(&encoder);
    let mut numbers = Vec::with_capacity(events.len());
    measured(&mut || numbers.extend(events.iter().map(|event| again.event(event))));
    assert_eq!(numbers, first);
    assert_eq!(encoder.with_journal(|changes| changes.len()), changes);
    format!("{} events, {} steps", events.len(), again.steps)
}

pub fn decode(file: &Path) -> String {
    let events = events(file);
    let (numbers, changes) = encoded(&events);
    let mut graph = VersionedGraph::new(ContextLayout::DEFAULT);
    for change in changes {
        graph.apply_change(change).expect("a change of our own");
    }
    let different: HashMap<ContextId, &Vec<ContextFrame>> =
        numbers.into_iter().zip(&events).collect();
    let mut decoded = Vec::with_capacity(different.len());
    measured(&mut || {
        decoded.extend(
            different
                .keys()
                .map(|n| graph.decode_context(*n, MethodId::EVENT)),
        );
    });
    for (frames, expected) in decoded.iter().zip(different.values()) {
        let frames = frames.as_ref().expect("a number of our own");
        assert!(frames.iter().eq(expected.iter().rev()));
    }
    format!("{} numbers", decoded.len())
}
