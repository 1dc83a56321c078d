//! Algorithm 1: decodes an id and a ccStack to the path.

use super::DacceStackEntry;
use super::dictionary::DacceDictionary;
use super::dynamic_graph::DynamicCallGraph;
use lucce_callgraph::{CallEdge, ContextFrame, MethodId, SiteId};

/// The sub-path that is being decoded.
struct SubPathPosition {
    method: MethodId,
    id: u64,
    /// The sub-path began at the target of the ccStack's top entry.
    on_stack: bool,
}

/// Returns the callers of `method`, innermost first; none if there is no such context.
pub fn decode_path(
    dictionary: &DacceDictionary,
    graph: &DynamicCallGraph,
    method: MethodId,
    id: u64,
    mut stack: Vec<DacceStackEntry>,
) -> Option<Vec<ContextFrame>> {
    let mut at = SubPathPosition::new(method, id, dictionary);
    let mut frames = Vec::new();
    loop {
        // Lines 9 to 25: the sub-path began with the call on top of the ccStack.
        while at.on_stack && at.id == 0 {
            let top = stack.last().filter(|top| top.target == at.method);
            let Some(&top) = top else { break };
            if top.site == SiteId::ENTRY {
                return (stack.len() == 1).then_some(frames);
            }
            let method = graph.caller_of_site(top.site)?;
            frames.push(ContextFrame {
                site: top.site,
                method,
            });
            at = SubPathPosition::new(method, top.id, dictionary);
            pop_entry(&mut stack);
        }
        // Lines 26 to 33: goes back one encoded call.
        match dictionary.find_caller(at.method, at.id) {
            Some((edge, rest)) => {
                frames.push(edge.caller_frame());
                (at.method, at.id) = (edge.caller, rest);
            }
            // Lines 34 to 36.
            None => return (stack.is_empty() && at.is_entry()).then_some(frames),
        }
    }
}

impl SubPathPosition {
    /// AdjustID.
    fn new(method: MethodId, id: u64, dictionary: &DacceDictionary) -> SubPathPosition {
        let rest = id.checked_sub(dictionary.max_id() + 1);
        SubPathPosition {
            method,
            id: rest.unwrap_or(id),
            on_stack: rest.is_some(),
        }
    }

    fn is_entry(&self) -> bool {
        self.id == 0 && !self.on_stack && self.method != CallEdge::NO_CALLER
    }
}

/// Removes the top entry, or one repetition of it.
fn pop_entry(stack: &mut Vec<DacceStackEntry>) {
    match stack.last_mut() {
        Some(top) if top.count > 0 => top.count -= 1,
        _ => {
            stack.pop();
        }
    }
}
