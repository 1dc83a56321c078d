//! Sums by path that come from elsewhere than a log, as the rows of a table.

use lucce_callgraph::ContextId;
use lucce_contentid::Detail;

use super::names::{FrameName, KindName, LaneName, MethodName};
use super::{Counted, Joined, Run};
use crate::frame::StackFrame;
use crate::kinds::ALLOC;
use crate::tree::{FrameKey, Tree};

/// Events of one kind along one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathSum {
    /// From the thread's entry, each with its descriptor.
    pub frames: Vec<(StackFrame, String)>,
    /// The kind of event, and the unit of its values.
    pub kind: String,
    pub unit: String,
    /// The type that was allocated, locked, …
    pub what: Option<String>,
    /// What they are told apart by beside that, as `service=shop`; empty: nothing.
    pub tags: String,
    pub count: u64,
    pub value: u64,
}

impl Joined {
    /// Adds them as those of one run. They have no numbers.
    pub fn add_paths(&mut self, sums: &[PathSum]) {
        // As of logs: there is one kind, even without any row.
        self.names.kinds.number(KindName {
            name: ALLOC.name.to_owned(),
            unit: ALLOC.unit.to_owned(),
        });
        let mut counted = Vec::with_capacity(sums.len());
        for sum in sums {
            let mut node = Tree::ROOT;
            for (frame, descriptor) in &sum.frames {
                let key = self.given_frame(frame, descriptor);
                // Four billion nodes are more than memory holds.
                node = self.tree.child(node, key).unwrap_or(node);
            }
            let names = &mut self.names;
            let kind = names.kinds.number(KindName {
                name: sum.kind.clone(),
                unit: sum.unit.clone(),
            });
            let lane = LaneName {
                thread: names.threads.number(String::new()),
                tags: names.tags.number(sum.tags.clone()),
            };
            counted.push(Counted {
                node,
                kind,
                what: sum
                    .what
                    .as_ref()
                    .map(|what| names.types.number(what.clone())),
                lane: names.lanes.number(lane),
                is_idle: false,
                id: ContextId(0),
                count: sum.count,
                value: sum.value,
            });
        }
        self.runs.push(Run {
            id: None,
            counted,
            unknown: 0,
            outside: 0,
            has_numbers: false,
        });
    }

    fn given_frame(&mut self, frame: &StackFrame, descriptor: &str) -> FrameKey {
        let id = frame.id(descriptor, Detail::ByLine);
        let by_method = frame.id(descriptor, Detail::ByMethod);
        let class = self.names.classes.number(frame.class.clone());
        let method = self.names.methods.number(MethodName {
            class,
            name: frame.method.clone(),
            file: frame.file.clone(),
        });
        let line = frame.line;
        let name = FrameName {
            method,
            line,
            id,
            by_method,
        };
        FrameKey(self.names.frames.number(name))
    }
}
