//! The model of a run from which all formats are written.
//!
//! ```text
//! frames   a.b.C.main:4   a.b.C.work:21        each different frame once
//! nodes    0 ─ 1 ─ 2                           a node is a frame and the node of its callers; 0 has none
//! rows     (2, alloc, byte[], main) 7 events, 168 bytes
//! ```
//! Names are escaped already: a format only adds its own escapes.

use std::io;

/// The counts of a run.
pub struct ExportRun {
    /// The program's command line.
    pub command: String,
    pub pid: u32,
    /// Nanoseconds since 1970.
    pub start_ns: u64,
    /// Duration in nanoseconds, if known.
    pub duration_ns: Option<u64>,
    /// The run id; none: the log is older than run ids.
    pub id: Option<u64>,
    pub kinds: Vec<ExportEventKind>,
    /// The kind that is shown first.
    pub main_kind: u32,
    /// Of the main kind, counts are shown first, not sums of values.
    pub counts_first: bool,
    /// Types that were allocated, locked, thrown, …
    pub types: Vec<String>,
    pub threads: Vec<String>,
    pub frames: Vec<ExportFrame>,
    /// The first is the root; callers come before their callees.
    pub nodes: Vec<ExportNode>,
    /// Rows with similar stacks are near each other.
    pub rows: Vec<ExportRow>,
    /// The content id of each node; empty: not requested.
    pub content_ids: Vec<u128>,
}

/// Passes each event to a function, in the order of time, thread by thread or mixed.
pub type ExportEventSource<'e> =
    dyn Fn(&mut dyn FnMut(&ExportEvent) -> io::Result<()>) -> io::Result<()> + 'e;

/// A kind of event.
#[derive(Clone, Debug)]
pub struct ExportEventKind {
    pub name: String,
    /// Unit of the values: `bytes`, `ns`, or empty.
    pub unit: String,
    /// Whether events have values.
    pub has_values: bool,
    /// The kind whose values are the durations of these events; each of its events follows the event of this kind.
    pub timed_kind: Option<&'static str>,
    pub tool_names: ToolNames,
}

/// Names in other tools of a kind of event.
#[derive(Clone, Copy, Debug)]
pub struct ToolNames {
    /// pprof's names for the number of events and for their values.
    pub pprof: Option<[&'static str; 2]>,
    /// Returns Flight Recorder's event type for an event's type.
    pub jfr: fn(&str) -> Option<&'static str>,
}

impl ToolNames {
    /// No names in other tools.
    pub const NONE: ToolNames = ToolNames {
        pprof: None,
        jfr: |_| None,
    };
}

impl ExportEventKind {
    /// Whether values are durations.
    #[must_use]
    pub fn is_time(&self) -> bool {
        self.unit == "ns"
    }
}

/// A frame in readable form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExportFrame {
    /// Such as `a.b.C$D`; for a type at the end of a stack, its name.
    pub class: String,
    /// Empty if the frame is a type, or stands for the rest.
    pub method: String,
    /// Such as `(I)V`; empty if unknown.
    pub descriptor: String,
    pub file: Option<String>,
    /// As in `StackTraceElement`: -1 unknown, -2 native.
    pub line: i32,
}

impl ExportFrame {
    /// Returns `a.b.C.m`.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        match self.method.is_empty() {
            true => self.class.clone(),
            false => format!("{}.{}", self.class, self.method),
        }
    }

    /// Returns the line, from 1; none: unknown or native.
    #[must_use]
    pub fn line_number(&self) -> Option<u32> {
        u32::try_from(self.line).ok().filter(|line| *line > 0)
    }

    #[must_use]
    pub fn is_native(&self) -> bool {
        self.line == -2
    }
}

/// A node of the tree: a frame and the node of its callers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportNode {
    pub caller: u32,
    pub frame: u32,
}

/// Events of one context, type and thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportRow {
    pub node: u32,
    pub kind: u32,
    pub type_index: Option<u32>,
    pub thread: Option<u32>,
    /// The context id; 0: none.
    pub context: u64,
    pub count: u64,
    /// In the kind's unit.
    pub value: u64,
}

/// A single event. `row.count` is 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportEvent {
    pub row: ExportRow,
    /// Its end, in nanoseconds since the run's start.
    pub end_ns: u64,
    /// Its duration in nanoseconds, if such events have one.
    pub duration_ns: Option<u64>,
}

impl ExportRun {
    /// The root of all nodes.
    pub const ROOT: u32 = 0;

    #[must_use]
    pub fn event_kind(&self, row: &ExportRow) -> Option<&ExportEventKind> {
        self.kinds.get(row.kind as usize)
    }

    #[must_use]
    pub fn type_name(&self, row: &ExportRow) -> Option<&str> {
        self.types.get(row.type_index? as usize).map(String::as_str)
    }

    #[must_use]
    pub fn thread_name(&self, row: &ExportRow) -> Option<&str> {
        self.threads.get(row.thread? as usize).map(String::as_str)
    }

    /// Returns the context's content id, as lucce prints it.
    #[must_use]
    pub fn content_id_text(&self, row: &ExportRow) -> Option<String> {
        let content = self.content_ids.get(row.node as usize)?;
        (row.node != Self::ROOT).then(|| format!("{content:032x}"))
    }

    /// Returns the run id, as lucce prints it.
    #[must_use]
    pub fn id_text(&self) -> Option<String> {
        self.id.map(|id| format!("{id:016x}"))
    }

    /// Returns a node and its callers, innermost first, without the root.
    #[must_use]
    pub fn node_path(&self, node: u32) -> Vec<u32> {
        let caller = |at: u32| self.nodes.get(at as usize).map(|node| node.caller);
        let first = (node != Self::ROOT).then_some(node);
        std::iter::successors(first, |at| caller(*at).filter(|at| *at != Self::ROOT)).collect()
    }

    /// Returns the indices of a stack's frames, innermost first.
    pub fn stack_frames(&self, node: u32) -> impl Iterator<Item = u32> {
        let mut at = node;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize).filter(|_| at != Self::ROOT)?;
            at = node.caller;
            Some(node.frame)
        })
    }

    /// Returns the number of frames in the stacks of all rows together.
    #[must_use]
    pub fn count_row_frames(&self) -> u64 {
        let depths = self.node_depths();
        let nodes = self.rows.iter().map(|row| row.node);
        sum_depths(&depths, nodes)
    }

    /// Returns the number of frames in all different stacks of the rows.
    #[must_use]
    pub fn count_stack_frames(&self) -> u64 {
        let depths = self.node_depths();
        let mut is_stack = vec![false; self.nodes.len()];
        for row in &self.rows {
            if let Some(is_stack) = is_stack.get_mut(row.node as usize) {
                *is_stack = true;
            }
        }
        let nodes = (0..).zip(is_stack).filter(|(_, is_stack)| *is_stack);
        sum_depths(&depths, nodes.map(|(node, _)| node))
    }

    /// Returns for each node the number of frames of its stack.
    fn node_depths(&self) -> Vec<u32> {
        let mut depths = Vec::with_capacity(self.nodes.len());
        depths.push(0);
        for node in self.nodes.iter().skip(1) {
            let callers = depths.get(node.caller as usize).copied();
            depths.push(callers.unwrap_or_default() + 1);
        }
        depths
    }

    /// Returns the context id as lucce prints it, so that it can be decoded.
    #[must_use]
    pub fn context_text(&self, row: &ExportRow) -> Option<String> {
        let number = (row.context != 0).then_some(row.context)?;
        Some(match self.id_text() {
            Some(id) => format!("lucce:{id}:{number:#x}"),
            None => format!("{number:#x}"),
        })
    }

    /// Returns the main class or jar: the command line's first word.
    #[must_use]
    pub fn program_name(&self) -> &str {
        let first = self.command.split_whitespace().next();
        first.unwrap_or("java")
    }

    /// Sorts the rows by a depth-first walk of the tree, so that similar stacks are near each other.
    pub fn sort_rows(&mut self) {
        let places = self.preorder_positions();
        let place = |node: u32| places.get(node as usize).copied().unwrap_or_default();
        self.rows.sort_by_key(|row| {
            (
                place(row.node),
                row.kind,
                row.type_index,
                row.thread,
                row.context,
            )
        });
    }

    /// Returns for each node its position in a depth-first walk.
    fn preorder_positions(&self) -> Vec<u32> {
        let mut sizes = vec![1_u32; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let own = sizes.get(at).copied().unwrap_or_default();
            if let Some(size) = sizes.get_mut(node.caller as usize) {
                *size += own;
            }
        }
        let mut places = vec![0_u32; self.nodes.len()];
        let mut next = vec![1_u32; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            let own = sizes.get(at).copied().unwrap_or_default();
            let Some(free) = next.get_mut(node.caller as usize) else {
                continue;
            };
            let place = *free;
            *free += own;
            if let (Some(at_place), Some(first)) = (places.get_mut(at), next.get_mut(at)) {
                (*at_place, *first) = (place, place + 1);
            }
        }
        places
    }
}

fn sum_depths(depths: &[u32], nodes: impl Iterator<Item = u32>) -> u64 {
    let depth = |node: u32| depths.get(node as usize).copied().unwrap_or_default();
    nodes.map(|node| u64::from(depth(node))).sum()
}
