//! Builds the model of one run from which `lucce-export` writes files for other tools.
//!
//! ```text
//! Profile     ──► CallTree, frames by names ──► rows: counters by context, type and thread
//! EventStream ──► events, each with the meaning of its row
//! ```

use std::cell::Cell;
use std::collections::HashMap;
use std::io;

use lucce_callgraph::{ContextFrame, ContextId, SiteId};
use lucce_contentid::{ContentDetail, FrameId};
use lucce_export::{ExportEvent, ExportEventKind, ExportNode, ExportRow, ExportRun, ToolNames};
use lucce_options::KindDescriptor;
use lucce_stream::EventStream;
use lucce_tracelog::{EventTypeId, ThreadId};
use rustc_hash::FxHashMap;

use crate::call_tree::{CallTree, CallTreeBuilder, EqualStacks, NodeId, TreeFrameKey};
use crate::code::CodeSymbols;
use crate::contexts::ContextList;
use crate::escape::EscapedText;
use crate::events::ContextCounter;
use crate::kinds::{ALLOCATION, INUSE, LEAK};
use crate::measure::Measure;
use crate::merged::ValueInterner;
use crate::profile::{Profile, ProgressTick};
use crate::stream_events::EventWindow;

/// Options of an export.
pub struct ExportOptions<'w> {
    /// Only events of this kind; `None`: all.
    pub kind: Option<&'w str>,
    /// The measure that is shown first; `None`: sums of values if there are any.
    pub value: Option<Measure>,
    /// Whether types are one more frame at the end of their stacks.
    pub leaf_type: bool,
    /// Whether content ids are written, in formats that have room for them.
    pub content_ids: bool,
    /// Whether a row with this amount of this total is shown by itself.
    pub admits: &'w dyn Fn(u64, u64) -> bool,
}

/// A run, ready to be written, with access to the events of its stream.
pub struct RunExport<'p> {
    profile: &'p Profile,
    pub run: ExportRun,
    /// What was left out, as in a report of all contexts.
    pub left_out: ContextList,
    places: FxHashMap<ContextId, (NodeId, SiteId)>,
    labels: ExportNames,
    /// The stream's threads, in the stream's order.
    stream_threads: Vec<u32>,
}

/// Numbers of names.
#[derive(Default)]
struct ExportNames {
    kinds: ValueInterner<String>,
    types: ValueInterner<String>,
    threads: ValueInterner<String>,
    meanings: FxHashMap<(EventTypeId, SiteId), (u32, Option<u32>)>,
    by_thread: FxHashMap<ThreadId, u32>,
}

/// The different frames, and their content ids.
#[derive(Default)]
struct ExportFrames {
    frames: ValueInterner<lucce_export::ExportFrame>,
    ids: Vec<FrameId>,
}

/// Whether the kind is that of sampled live objects, which have no counters, and the log has some.
#[must_use]
pub fn has_followed_objects(profile: &Profile, kind: &str) -> bool {
    let is_theirs = INUSE.is_kind(kind) || LEAK.is_kind(kind);
    is_theirs && !profile.followed_objects.snapshots().is_empty()
}

/// Builds the model. `stream`: the model also has its threads, and its events can be read. Calls `tick` with the
/// number of decoded contexts.
#[must_use]
pub fn export_run<'p>(
    profile: &'p Profile,
    options: &ExportOptions<'_>,
    stream: Option<&EventStream>,
    tick: ProgressTick<'_>,
) -> RunExport<'p> {
    let mut building = ExportBuilder {
        profile,
        tree: CallTree::default(),
        frames: ExportFrames::default(),
        labels: ExportNames::default(),
        rows: Vec::new(),
        places: FxHashMap::default(),
        left_out: ContextList::default(),
    };
    building.add_counters(options.kind, tick);
    building.add_live_objects(options.kind);
    if let Some(stream) = stream {
        building.place_streamed_events(options.kind, stream);
    }
    let threads = stream.map_or(&[][..], EventStream::threads).iter();
    let number = |thread: &lucce_stream::StreamThreadInfo| {
        let name = EscapedText(&profile.stream_thread_name(thread)).to_string();
        // Each thread has a track of its own, even if names are equal.
        building.labels.threads.push(name)
    };
    let stream_threads = threads.map(number).collect();
    building.unite_stacks();
    building.finish_run(options, stream_threads)
}

/// The key of a row.
#[derive(PartialEq, Eq, Hash)]
struct ExportRowKey {
    node: u32,
    kind: u32,
    what: Option<u32>,
    thread: Option<u32>,
}

struct ExportBuilder<'p> {
    profile: &'p Profile,
    tree: CallTree,
    frames: ExportFrames,
    labels: ExportNames,
    rows: Vec<ExportRow>,
    places: FxHashMap<ContextId, (NodeId, SiteId)>,
    left_out: ContextList,
}

impl<'p> ExportBuilder<'p> {
    fn add_counters(&mut self, kind: Option<&str>, tick: ProgressTick<'_>) {
        let profile = self.profile;
        let is_kind = |share: &&ContextCounter| {
            kind.is_none_or(|kind| profile.is_event_of_kind(share.event, kind))
        };
        self.place_contexts(tick, |share| is_kind(&share));
        let events = profile.events.as_slice().iter().filter(is_kind);
        for share in events.filter(|share| share.count > 0 || share.value > 0) {
            let Some((node, site)) = self.places.get(&share.id).copied() else {
                continue;
            };
            let (kind, what) = self.labels.number_kind_and_type(profile, share.event, site);
            let each = profile.value_per_event(share.event, site);
            self.rows.push(ExportRow {
                node: node.0,
                kind,
                type_index: what,
                thread: Some(self.labels.number_thread(profile, share.thread)),
                context: share.id.0,
                count: share.count,
                value: share.value.saturating_add(share.count.saturating_mul(each)),
            });
        }
    }

    /// The position of each context with wanted events.
    fn place_contexts(
        &mut self,
        tick: ProgressTick<'_>,
        is_wanted: impl Fn(&ContextCounter) -> bool,
    ) {
        let (profile, frames, tree) = (self.profile, &mut self.frames, &mut self.tree);
        let mut grower = CallTreeBuilder::new(profile, frames.number_frames(&profile.code));
        for shares in profile.events.by_context() {
            tick(1);
            let mut wanted = shares.iter().filter(|share| is_wanted(share));
            let Some(first) = wanted.next() else { continue };
            match grower.insert_context(tree, first.id) {
                Ok((CallTree::ROOT, _)) if profile.is_restricted() => {
                    let counts = wanted.chain([first]).map(|share| share.count);
                    let outside = &mut self.left_out.outside;
                    *outside = counts.fold(*outside, u64::saturating_add);
                }
                Ok((node, leaf)) => {
                    let site = leaf.map_or(SiteId::NONE, |leaf| leaf.site);
                    self.places.insert(first.id, (node, site));
                }
                Err(error) => self.left_out.unknown.push((first.id, error)),
            }
        }
        let unexplained = || profile.find_unexplained_damage(&self.left_out.unknown);
        self.left_out.damage = profile.damage.clone().or_else(unexplained);
    }

    /// Adds the sampled objects that were live at the last snapshot.
    fn add_live_objects(&mut self, kind: Option<&str>) {
        let profile = self.profile;
        let is_wanted = kind.is_none_or(|kind| INUSE.is_kind(kind) || LEAK.is_kind(kind));
        let last = profile.followed_objects.snapshots().last();
        let Some(last) = last.filter(|_| is_wanted) else {
            return;
        };
        let alive = self.labels.kinds.intern_value(INUSE.name.to_owned());
        let mut grower = CallTreeBuilder::new(profile, self.frames.number_frames(&profile.code));
        for row in &last.rows {
            let Some((id, of)) = profile.followed_objects.context_and_type(row.key) else {
                continue;
            };
            match grower.insert_context(&mut self.tree, *id) {
                Ok((CallTree::ROOT, _)) if profile.is_restricted() => {}
                Ok((node, _)) => self.rows.push(ExportRow {
                    node: node.0,
                    kind: alive,
                    type_index: Some(self.labels.types.intern_value(EscapedText(of).to_string())),
                    thread: None,
                    context: id.0,
                    count: row.objects,
                    value: row.bytes,
                }),
                Err(error) => self.left_out.unknown.push((*id, error)),
            }
        }
    }

    /// Adds positions and meanings of events without counters: of sampled live objects.
    fn place_streamed_events(&mut self, kind: Option<&str>, stream: &EventStream) {
        let profile = self.profile;
        let mut grower = CallTreeBuilder::new(profile, self.frames.number_frames(&profile.code));
        let is_kind = |event| kind.is_none_or(|kind| profile.is_event_of_kind(event, kind));
        for event in stream.iter_events().filter(|event| is_kind(event.event)) {
            let place = self.places.get(&event.id).copied();
            let site = match place {
                Some((_, site)) => site,
                // Contexts out of scope or unknown have no position and are reported as left out.
                None => match grower.insert_context(&mut self.tree, event.id) {
                    Ok((node, leaf)) if node != CallTree::ROOT => {
                        let site = leaf.map_or(SiteId::NONE, |leaf| leaf.site);
                        self.places.insert(event.id, (node, site));
                        site
                    }
                    _ => continue,
                },
            };
            self.labels.number_kind_and_type(profile, event.event, site);
        }
    }

    /// Merges rows whose stacks have one content id and that differ in nothing else.
    fn unite_stacks(&mut self) {
        let ids: Vec<_> = self.frames.ids.iter().copied().map(Some).collect();
        let mut equal = EqualStacks::new(&self.tree, &ids);
        self.rows.sort_by_key(|row| row.context);
        let mut row_of_key: FxHashMap<ExportRowKey, usize> = FxHashMap::default();
        let mut rows: Vec<ExportRow> = Vec::with_capacity(self.rows.len());
        for row in self.rows.drain(..) {
            let node = equal.first_node(NodeId(row.node)).0;
            let name = ExportRowKey {
                node,
                kind: row.kind,
                what: row.type_index,
                thread: row.thread,
            };
            let at = *row_of_key.entry(name).or_insert(rows.len());
            match rows.get_mut(at) {
                Some(sum) => {
                    sum.count = sum.count.saturating_add(row.count);
                    sum.value = sum.value.saturating_add(row.value);
                }
                None => rows.push(ExportRow { node, ..row }),
            }
        }
        self.rows = rows;
        for (node, _) in self.places.values_mut() {
            *node = equal.first_node(*node);
        }
    }

    fn finish_run(
        mut self,
        options: &ExportOptions<'_>,
        stream_threads: Vec<u32>,
    ) -> RunExport<'p> {
        let kinds = self.list_kinds();
        let requested_kind = options.kind.map(str::to_owned);
        let main = requested_kind.unwrap_or_else(|| self.profile.main_kind().name);
        let main_kind = kinds.iter().position(|kind| kind.name == main).unwrap_or(0);
        let counts_first = match options.value {
            Some(value) => value == Measure::Count,
            None => kinds.get(main_kind).is_none_or(|kind| !kind.has_values),
        };
        if options.leaf_type {
            self.append_type_frames();
        }
        let stats = |key| {
            self.profile
                .meta
                .get(key)
                .map(|text| EscapedText(text).to_string())
        };
        let millis = self.profile.stat_value("run.millis");
        let mut run = ExportRun {
            command: stats("command").unwrap_or_else(|| "java".to_owned()),
            pid: self.profile.header.pid,
            start_ns: self.profile.header.start,
            duration_ns: (millis > 0).then(|| millis.saturating_mul(1_000_000)),
            id: self.profile.header.run.map(|run| run.bits()),
            kinds,
            main_kind: main_kind as u32,
            counts_first,
            types: self.labels.types.as_slice().to_vec(),
            threads: self.labels.threads.as_slice().to_vec(),
            frames: Vec::new(),
            nodes: Vec::new(),
            rows: std::mem::take(&mut self.rows),
            content_ids: Vec::new(),
        };
        self.merge_small_rows(&mut run, options);
        if options.content_ids {
            run.content_ids = self.list_content_ids();
        }
        run.nodes = self.list_nodes();
        run.frames = self.frames.frames.as_slice().to_vec();
        run.sort_rows();
        RunExport {
            profile: self.profile,
            run,
            left_out: self.left_out,
            places: self.places,
            labels: self.labels,
            stream_threads,
        }
    }

    fn list_kinds(&mut self) -> Vec<ExportEventKind> {
        let counted = self.profile.counted_kinds();
        let mut kinds: Vec<ExportEventKind> = Vec::new();
        if self.labels.kinds.as_slice().is_empty() {
            // Readers also need kinds without events.
            self.labels
                .kinds
                .intern_value(self.profile.main_kind().name);
        }
        for name in self.labels.kinds.as_slice() {
            let counted_kind = counted.iter().find(|kind| kind.name == *name);
            let unit = match counted_kind {
                Some(kind) => kind.unit.clone(),
                None => KindDescriptor::for_kind(name).unit.to_owned(),
            };
            let descriptor = KindDescriptor::for_kind(name);
            let number = kinds.len() as u32;
            let mut own = self.rows.iter().filter(|row| row.kind == number);
            kinds.push(ExportEventKind {
                name: EscapedText(name).to_string(),
                has_values: !unit.is_empty() || own.any(|row| row.value > 0),
                unit: EscapedText(&unit).to_string(),
                timed_kind: descriptor.times,
                tool_names: ToolNames {
                    pprof: descriptor.pprof,
                    jfr: descriptor.jfr,
                },
            });
        }
        kinds
    }

    /// Adds types as frames at the end of stacks.
    fn append_type_frames(&mut self) {
        for row in &mut self.rows {
            let Some(name) = row.type_index.and_then(|what| self.labels.types.get(what)) else {
                continue;
            };
            let key = self.frames.number_pseudo_frame(name);
            if let Some(node) = self.tree.get_or_insert_child(NodeId(row.node), key) {
                row.node = node.0;
            }
        }
    }

    /// Merges rows that are too small into one row for each kind, without a trace.
    fn merge_small_rows(&mut self, run: &mut ExportRun, options: &ExportOptions<'_>) {
        let of = |row: &ExportRow, kinds: &[ExportEventKind]| {
            let kind = kinds.get(row.kind as usize);
            let by_value =
                kind.is_some_and(|kind| kind.has_values) && options.value != Some(Measure::Count);
            if by_value { row.value } else { row.count }
        };
        let mut whole: HashMap<u32, u64> = HashMap::new();
        let mut sums: HashMap<(u32, u32, Option<u32>), u64> = HashMap::new();
        for row in &run.rows {
            let amount = of(row, &run.kinds);
            for sum in [
                whole.entry(row.kind).or_default(),
                sums.entry((row.node, row.kind, row.type_index))
                    .or_default(),
            ] {
                *sum = sum.saturating_add(amount);
            }
        }
        let mut rest: HashMap<u32, ExportRow> = HashMap::new();
        let key = self.frames.number_pseudo_frame("[rest]");
        let Some(node) = self.tree.get_or_insert_child(CallTree::ROOT, key) else {
            return;
        };
        run.rows.retain(|row| {
            let sum = sums.get(&(row.node, row.kind, row.type_index)).copied();
            let whole = whole.get(&row.kind).copied();
            let is_large = (options.admits)(sum.unwrap_or_default(), whole.unwrap_or_default());
            if !is_large {
                let rest = rest.entry(row.kind).or_insert(ExportRow {
                    node: node.0,
                    type_index: None,
                    thread: None,
                    context: 0,
                    count: 0,
                    value: 0,
                    ..*row
                });
                rest.count = rest.count.saturating_add(row.count);
                rest.value = rest.value.saturating_add(row.value);
            }
            is_large
        });
        run.rows.extend(rest.into_values());
    }

    fn list_nodes(&self) -> Vec<ExportNode> {
        let step = |number: usize| self.tree.caller_and_frame(NodeId(number as u32));
        let nodes = (0..self.tree.len()).map(|number| {
            let (caller, key) = step(number).unwrap_or((CallTree::ROOT, TreeFrameKey(0)));
            ExportNode {
                caller: caller.0,
                frame: key.0,
            }
        });
        nodes.collect()
    }

    /// Content ids of all nodes; callers come first.
    fn list_content_ids(&self) -> Vec<u128> {
        // A type at the end of a stack is no frame of the context.
        let id = |key: TreeFrameKey| {
            let id = self.frames.ids.get(key.0 as usize).copied();
            id.filter(|id| id.0 != 0)
        };
        let stacks = self.tree.stack_ids(id);
        stacks.into_iter().map(|stack| stack.0).collect()
    }
}

impl RunExport<'_> {
    /// Calls `tell` with the stream's events in the window, in order of time. `left_out` counts events of other kinds and
    /// events that the log does not explain.
    ///
    /// # Errors
    /// Errors of `tell`.
    pub fn for_each_event(
        &self,
        stream: &EventStream,
        window: &EventWindow<'_>,
        left_out: &Cell<u64>,
        tell: &mut dyn FnMut(&ExportEvent) -> io::Result<()>,
    ) -> io::Result<()> {
        let wanted = stream
            .iter_events()
            .filter(|event| window.contains_event(stream, event));
        for event in wanted {
            match self.export_event(stream, &event) {
                Some(event) => tell(&event)?,
                None => left_out.set(left_out.get() + 1),
            }
        }
        Ok(())
    }

    fn export_event(
        &self,
        stream: &EventStream,
        event: &lucce_stream::StreamEvent,
    ) -> Option<ExportEvent> {
        let (node, site) = self.places.get(&event.id).copied()?;
        let at = match event.event {
            ALLOCATION => site,
            _ => SiteId::NONE,
        };
        let (kind, what) = self.labels.meanings.get(&(event.event, at)).copied()?;
        let each = self.profile.value_per_event(event.event, site);
        let thread = (event.thread.0 as usize).checked_sub(1);
        let value = u64::try_from(event.value).unwrap_or(0);
        let lasts = self.run.kinds.get(kind as usize)?.is_time();
        Some(ExportEvent {
            row: ExportRow {
                node: node.0,
                kind,
                type_index: what,
                thread: thread.and_then(|at| self.stream_threads.get(at).copied()),
                context: event.id.0,
                count: 1,
                value: value.saturating_add(each),
            },
            end_ns: stream.since_start(event.clock),
            duration_ns: lasts.then_some(value),
        })
    }
}

impl ExportFrames {
    fn number_frames<'f>(
        &'f mut self,
        code: &'f CodeSymbols,
    ) -> impl FnMut(ContextFrame) -> Option<TreeFrameKey> + 'f {
        let mut cache: FxHashMap<ContextFrame, TreeFrameKey> = FxHashMap::default();
        move |frame| {
            Some(
                *cache
                    .entry(frame)
                    .or_insert_with(|| self.number_resolved_frame(code, frame)),
            )
        }
    }

    fn number_resolved_frame(&mut self, code: &CodeSymbols, frame: ContextFrame) -> TreeFrameKey {
        let shown = code.resolve_frame(frame);
        let descriptor = code.method_descriptor(frame.method);
        let id = shown.frame_id(descriptor, ContentDetail::ByLine);
        let (class, method) = match shown.marker_text() {
            Some(text) => (text, ""),
            None => (&*shown.class, &*shown.method),
        };
        let escaped = lucce_export::ExportFrame {
            class: EscapedText(class).to_string(),
            method: EscapedText(method).to_string(),
            descriptor: EscapedText(descriptor).to_string(),
            file: shown.file.map(|file| EscapedText(&file).to_string()),
            line: shown.line,
        };
        self.number_frame(escaped, id)
    }

    /// Numbers a frame that is not of the program.
    fn number_pseudo_frame(&mut self, name: &str) -> TreeFrameKey {
        let frame = lucce_export::ExportFrame {
            class: name.to_owned(),
            method: String::new(),
            descriptor: String::new(),
            file: None,
            line: -1,
        };
        self.number_frame(frame, FrameId(0))
    }

    fn number_frame(&mut self, frame: lucce_export::ExportFrame, id: FrameId) -> TreeFrameKey {
        let number = self.frames.intern_value(frame);
        if number as usize == self.ids.len() {
            self.ids.push(id);
        }
        TreeFrameKey(number)
    }
}

impl ExportNames {
    /// The numbers of an event's kind and detail.
    fn number_kind_and_type(
        &mut self,
        profile: &Profile,
        event: EventTypeId,
        site: SiteId,
    ) -> (u32, Option<u32>) {
        let at = match event {
            ALLOCATION => site,
            _ => SiteId::NONE,
        };
        if let Some(known) = self.meanings.get(&(event, at)) {
            return *known;
        }
        let info = profile.types.get(event);
        let kind = info.map_or("?", |info| &info.kind);
        let what = profile.event_detail(event, site);
        let meaning = (
            self.kinds.intern_value(kind.to_owned()),
            what.map(|what| self.types.intern_value(EscapedText(what).to_string())),
        );
        self.meanings.insert((event, at), meaning);
        meaning
    }

    fn number_thread(&mut self, profile: &Profile, thread: ThreadId) -> u32 {
        let threads = &mut self.threads;
        *self.by_thread.entry(thread).or_insert_with(|| {
            threads.intern_value(EscapedText(&profile.thread_name(thread)).to_string())
        })
    }
}
