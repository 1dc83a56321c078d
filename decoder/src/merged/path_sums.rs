//! Adds sums by path from other sources than a log, such as rows of a table.

use lucce_callgraph::ContextId;
use lucce_contentid::ContentDetail;

use super::names::{FrameName, KindName, MethodName, TaggedThread};
use super::{MergedCounter, MergedProfile, MergedRun};
use crate::call_tree::{CallTree, TreeFrameKey};
use crate::frame::StackFrame;
use crate::kinds::ALLOC;
use crate::tags::request_of_tags;

/// The events of one kind and one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathSum {
    /// Frames from the thread's entry, each with its descriptor.
    pub frames: Vec<(StackFrame, String)>,
    /// The kind of event; `unit`: the unit of its values.
    pub kind: String,
    pub unit: String,
    /// The allocated or locked type, or other detail.
    pub what: Option<String>,
    /// Further properties, as `service=shop`; empty: none.
    pub tags: String,
    pub count: u64,
    pub value: u64,
}

impl MergedProfile {
    /// Adds sums as one run. It has no context ids.
    pub fn add_paths(&mut self, sums: &[PathSum]) {
        // Like a log, it has one kind even without rows.
        self.names.kinds.intern_value(KindName {
            name: ALLOC.name.to_owned(),
            unit: ALLOC.unit.to_owned(),
        });
        let mut counted = Vec::with_capacity(sums.len());
        for sum in sums {
            let mut node = CallTree::ROOT;
            for (frame, descriptor) in &sum.frames {
                let key = self.number_given_frame(frame, descriptor);
                // Memory holds fewer than four billion nodes.
                node = self.tree.get_or_insert_child(node, key).unwrap_or(node);
            }
            let names = &mut self.names;
            let kind = names.kinds.intern_value(KindName {
                name: sum.kind.clone(),
                unit: sum.unit.clone(),
            });
            let tagged_thread = TaggedThread {
                thread: names.threads.intern_value(String::new()),
                tags: names.tags.intern_value(sum.tags.clone()),
                request: names.requests.intern_value(request_of_tags(&sum.tags)),
            };
            counted.push(MergedCounter {
                node,
                kind,
                what: sum
                    .what
                    .as_ref()
                    .map(|what| names.types.intern_value(what.clone())),
                tagged_thread: names.tagged_threads.intern_value(tagged_thread),
                is_idle: false,
                id: ContextId(0),
                count: sum.count,
                value: sum.value,
            });
        }
        self.runs.push(MergedRun {
            id: None,
            counters: counted,
            unknown: 0,
            outside: 0,
            has_numbers: false,
        });
    }

    fn number_given_frame(&mut self, frame: &StackFrame, descriptor: &str) -> TreeFrameKey {
        let id = frame.frame_id(descriptor, ContentDetail::ByLine);
        let by_method = frame.frame_id(descriptor, ContentDetail::ByMethod);
        let class = self.names.classes.intern_value(frame.class.clone());
        let method = self.names.methods.intern_value(MethodName {
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
        TreeFrameKey(self.names.frames.intern_value(name))
    }
}
