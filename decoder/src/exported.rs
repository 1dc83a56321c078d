//! One run for other tools: the model that `lucce-formats` writes files from.
//!
//! ```text
//! Profile ──► Tree, frames by their names ──► rows: what each context, type and thread counted
//! Stream  ──► events, each with its row's meaning
//! ```

use std::cell::Cell;
use std::collections::HashMap;
use std::io;

use lucce_callgraph::{ContextId, Frame, SiteId};
use lucce_contentid::{Detail, FrameId};
use lucce_formats::{Event, Kind, Node, Row, Run};
use lucce_stream::Stream;
use lucce_tracelog::{EventTypeId, ThreadId};
use rustc_hash::FxHashMap;

use crate::code::Code;
use crate::collapsed::Value;
use crate::contexts::Contexts;
use crate::escape::Text;
use crate::events::Share;
use crate::joined::Numbered;
use crate::kinds::{ALLOCATION, INUSE, Known, LEAK};
use crate::profile::{Profile, Tick};
use crate::streamed::Window;
use crate::tree::{EqualStacks, FrameKey, NodeId, Tree};

/// What is exported, and how.
pub struct Wish<'w> {
    /// Events of this kind only.
    pub kind: Option<&'w str>,
    /// What is shown first; none: sums of values if there are any.
    pub value: Option<Value>,
    /// Types are one more frame at the end of their stacks.
    pub leaf_type: bool,
    /// Content ids are written where there is room for them.
    pub contents: bool,
    /// Whether what makes so much of so much is shown by itself.
    pub admits: &'w dyn Fn(u64, u64) -> bool,
}

/// A run, ready to be written; the events of its stream can be asked for.
pub struct Exported<'p> {
    profile: &'p Profile,
    pub run: Run,
    /// What was left out, as a report of all contexts tells it.
    pub left_out: Contexts,
    places: FxHashMap<ContextId, (NodeId, SiteId)>,
    labels: Labels,
    /// Of the stream, in their order there.
    stream_threads: Vec<u32>,
}

/// Numbers of names.
#[derive(Default)]
struct Labels {
    kinds: Numbered<String>,
    types: Numbered<String>,
    threads: Numbered<String>,
    meanings: FxHashMap<(EventTypeId, SiteId), (u32, Option<u32>)>,
    by_thread: FxHashMap<ThreadId, u32>,
}

/// Different frames, and the content id of each.
#[derive(Default)]
struct Frames {
    frames: Numbered<lucce_formats::Frame>,
    ids: Vec<FrameId>,
}

impl Profile {
    /// Whether the kind is that of followed objects, which have no counters, and the log was told of some.
    #[must_use]
    pub fn has_followed(&self, kind: &str) -> bool {
        let is_theirs = INUSE.is(kind) || LEAK.is(kind);
        is_theirs && !self.following.moments().is_empty()
    }

    /// `stream`: its threads are told, too, and its events can be asked for. `tick` is told how many contexts were decoded.
    #[must_use]
    pub fn exported(
        &self,
        wish: &Wish<'_>,
        stream: Option<&Stream>,
        tick: Tick<'_>,
    ) -> Exported<'_> {
        let mut building = Building {
            profile: self,
            tree: Tree::default(),
            frames: Frames::default(),
            labels: Labels::default(),
            rows: Vec::new(),
            places: FxHashMap::default(),
            left_out: Contexts::default(),
        };
        building.count(wish.kind, tick);
        building.survivors(wish.kind);
        if let Some(stream) = stream {
            building.streamed(wish.kind, stream);
        }
        let threads = stream.map_or(&[][..], Stream::threads).iter();
        let number = |thread: &lucce_stream::ThreadInfo| {
            let name = Text(&self.streamed_name(thread)).to_string();
            // Each has a track of its own, whatever others are called.
            building.labels.threads.push(name)
        };
        let stream_threads = threads.map(number).collect();
        building.unite_stacks();
        building.done(wish, stream_threads)
    }
}

/// What rows are told apart by.
#[derive(PartialEq, Eq, Hash)]
struct RowName {
    node: u32,
    kind: u32,
    what: Option<u32>,
    thread: Option<u32>,
}

struct Building<'p> {
    profile: &'p Profile,
    tree: Tree,
    frames: Frames,
    labels: Labels,
    rows: Vec<Row>,
    places: FxHashMap<ContextId, (NodeId, SiteId)>,
    left_out: Contexts,
}

impl<'p> Building<'p> {
    fn count(&mut self, kind: Option<&str>, tick: Tick<'_>) {
        let profile = self.profile;
        let is_kind = |share: &&Share| kind.is_none_or(|kind| profile.is_of(share.event, kind));
        self.walk(tick, |share| is_kind(&share));
        let events = profile.events.all().iter().filter(is_kind);
        for share in events.filter(|share| share.count > 0 || share.value > 0) {
            let Some((node, site)) = self.places.get(&share.id).copied() else {
                continue;
            };
            let (kind, what) = self.labels.meaning(profile, share.event, site);
            let each = profile.each(share.event, site);
            self.rows.push(Row {
                node: node.0,
                kind,
                what,
                thread: Some(self.labels.thread(profile, share.thread)),
                number: share.id.0,
                count: share.count,
                value: share.value.saturating_add(share.count.saturating_mul(each)),
            });
        }
    }

    /// The place of each context that has events which are wanted.
    fn walk(&mut self, tick: Tick<'_>, is_wanted: impl Fn(&Share) -> bool) {
        let (profile, frames, tree) = (self.profile, &mut self.frames, &mut self.tree);
        let mut grower = profile.grower(frames.keys(&profile.code));
        for shares in profile.events.by_context() {
            tick(1);
            let mut wanted = shares.iter().filter(|share| is_wanted(share));
            let Some(first) = wanted.next() else { continue };
            match grower.node(tree, first.id) {
                Ok((Tree::ROOT, _)) if profile.is_restricted() => {
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
        let unexplained = || profile.unexplained(&self.left_out.unknown);
        self.left_out.damage = profile.damage.clone().or_else(unexplained);
    }

    /// Objects that were followed and alive at the last snapshot.
    fn survivors(&mut self, kind: Option<&str>) {
        let profile = self.profile;
        let is_wanted = kind.is_none_or(|kind| INUSE.is(kind) || LEAK.is(kind));
        let last = profile.following.moments().last();
        let Some(last) = last.filter(|_| is_wanted) else {
            return;
        };
        let alive = self.labels.kinds.number(INUSE.name.to_owned());
        let mut grower = profile.grower(self.frames.keys(&profile.code));
        for row in &last.rows {
            let Some((id, of)) = profile.following.name(row.key) else {
                continue;
            };
            match grower.node(&mut self.tree, *id) {
                Ok((Tree::ROOT, _)) if profile.is_restricted() => {}
                Ok((node, _)) => self.rows.push(Row {
                    node: node.0,
                    kind: alive,
                    what: Some(self.labels.types.number(Text(of).to_string())),
                    thread: None,
                    number: id.0,
                    count: row.objects,
                    value: row.bytes,
                }),
                Err(error) => self.left_out.unknown.push((*id, error)),
            }
        }
    }

    /// Places and meanings of events that no counter has: of objects that are followed.
    fn streamed(&mut self, kind: Option<&str>, stream: &Stream) {
        let profile = self.profile;
        let mut grower = profile.grower(self.frames.keys(&profile.code));
        let is_kind = |event| kind.is_none_or(|kind| profile.is_of(event, kind));
        for event in stream.events().filter(|event| is_kind(event.event)) {
            let known = self.places.get(&event.id).copied();
            let site = match known {
                Some((_, site)) => site,
                // What is out of scope or unknown stays without a place, and is told as left out.
                None => match grower.node(&mut self.tree, event.id) {
                    Ok((node, leaf)) if node != Tree::ROOT => {
                        let site = leaf.map_or(SiteId::NONE, |leaf| leaf.site);
                        self.places.insert(event.id, (node, site));
                        site
                    }
                    _ => continue,
                },
            };
            self.labels.meaning(profile, event.event, site);
        }
    }

    /// Makes one row of those whose stacks have one content id and which do not differ in anything else.
    fn unite_stacks(&mut self) {
        let ids: Vec<_> = self.frames.ids.iter().copied().map(Some).collect();
        let mut equal = EqualStacks::new(&self.tree, &ids);
        self.rows.sort_by_key(|row| row.number);
        let mut known: FxHashMap<RowName, usize> = FxHashMap::default();
        let mut rows: Vec<Row> = Vec::with_capacity(self.rows.len());
        for row in self.rows.drain(..) {
            let node = equal.first_node(NodeId(row.node)).0;
            let name = RowName {
                node,
                kind: row.kind,
                what: row.what,
                thread: row.thread,
            };
            let at = *known.entry(name).or_insert(rows.len());
            match rows.get_mut(at) {
                Some(sum) => {
                    sum.count = sum.count.saturating_add(row.count);
                    sum.value = sum.value.saturating_add(row.value);
                }
                None => rows.push(Row { node, ..row }),
            }
        }
        self.rows = rows;
        for (node, _) in self.places.values_mut() {
            *node = equal.first_node(*node);
        }
    }

    fn done(mut self, wish: &Wish<'_>, stream_threads: Vec<u32>) -> Exported<'p> {
        let kinds = self.kinds();
        let asked = wish.kind.map(str::to_owned);
        let main = asked.unwrap_or_else(|| self.profile.main_kind().name);
        let main_kind = kinds.iter().position(|kind| kind.name == main).unwrap_or(0);
        let counts_first = match wish.value {
            Some(value) => value == Value::Count,
            None => kinds.get(main_kind).is_none_or(|kind| !kind.has_values),
        };
        if wish.leaf_type {
            self.add_types();
        }
        let stats = |key| {
            self.profile
                .meta
                .get(key)
                .map(|text| Text(text).to_string())
        };
        let millis = self.profile.stat("run.millis");
        let mut run = Run {
            command: stats("command").unwrap_or_else(|| "java".to_owned()),
            pid: self.profile.header.pid,
            start: self.profile.header.start,
            lasted: (millis > 0).then(|| millis.saturating_mul(1_000_000)),
            id: self.profile.header.run.map(|run| run.bits()),
            kinds,
            main_kind: main_kind as u32,
            counts_first,
            types: self.labels.types.all().to_vec(),
            threads: self.labels.threads.all().to_vec(),
            frames: Vec::new(),
            nodes: Vec::new(),
            rows: std::mem::take(&mut self.rows),
            contents: Vec::new(),
        };
        self.sum_up(&mut run, wish);
        if wish.contents {
            run.contents = self.contents();
        }
        run.nodes = self.nodes();
        run.frames = self.frames.frames.all().to_vec();
        run.sort_rows();
        Exported {
            profile: self.profile,
            run,
            left_out: self.left_out,
            places: self.places,
            labels: self.labels,
            stream_threads,
        }
    }

    fn kinds(&mut self) -> Vec<Kind> {
        let counted = self.profile.kinds();
        let mut kinds: Vec<Kind> = Vec::new();
        if self.labels.kinds.all().is_empty() {
            // Readers want to know of what there is nothing.
            self.labels.kinds.number(self.profile.main_kind().name);
        }
        for name in self.labels.kinds.all() {
            let known = counted.iter().find(|kind| kind.name == *name);
            let unit = match known {
                Some(kind) => kind.unit.clone(),
                None => Known::of(name).unit.to_owned(),
            };
            let number = kinds.len() as u32;
            let mut own = self.rows.iter().filter(|row| row.kind == number);
            kinds.push(Kind {
                name: Text(name).to_string(),
                has_values: !unit.is_empty() || own.any(|row| row.value > 0),
                unit: Text(&unit).to_string(),
                times: Known::of(name).times,
                words: Known::of(name).words,
            });
        }
        kinds
    }

    /// The types at the ends of their stacks.
    fn add_types(&mut self) {
        for row in &mut self.rows {
            let Some(name) = row.what.and_then(|what| self.labels.types.get(what)) else {
                continue;
            };
            let key = self.frames.named(name);
            if let Some(node) = self.tree.child(NodeId(row.node), key) {
                row.node = node.0;
            }
        }
    }

    /// What is not large enough becomes one row of its kind, without a trace.
    fn sum_up(&mut self, run: &mut Run, wish: &Wish<'_>) {
        let of = |row: &Row, kinds: &[Kind]| {
            let kind = kinds.get(row.kind as usize);
            let by_value =
                kind.is_some_and(|kind| kind.has_values) && wish.value != Some(Value::Count);
            if by_value { row.value } else { row.count }
        };
        let mut whole: HashMap<u32, u64> = HashMap::new();
        let mut sums: HashMap<(u32, u32, Option<u32>), u64> = HashMap::new();
        for row in &run.rows {
            let amount = of(row, &run.kinds);
            for sum in [
                whole.entry(row.kind).or_default(),
                sums.entry((row.node, row.kind, row.what)).or_default(),
            ] {
                *sum = sum.saturating_add(amount);
            }
        }
        let mut rest: HashMap<u32, Row> = HashMap::new();
        let key = self.frames.named("[rest]");
        let Some(node) = self.tree.child(Tree::ROOT, key) else {
            return;
        };
        run.rows.retain(|row| {
            let sum = sums.get(&(row.node, row.kind, row.what)).copied();
            let whole = whole.get(&row.kind).copied();
            let is_large = (wish.admits)(sum.unwrap_or_default(), whole.unwrap_or_default());
            if !is_large {
                let rest = rest.entry(row.kind).or_insert(Row {
                    node: node.0,
                    what: None,
                    thread: None,
                    number: 0,
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

    fn nodes(&self) -> Vec<Node> {
        let step = |number: usize| self.tree.step(NodeId(number as u32));
        let nodes = (0..self.tree.len()).map(|number| {
            let (caller, key) = step(number).unwrap_or((Tree::ROOT, FrameKey(0)));
            Node {
                caller: caller.0,
                frame: key.0,
            }
        });
        nodes.collect()
    }

    /// Callers come first.
    fn contents(&self) -> Vec<u128> {
        // A type at the end is no frame of the context.
        let id = |key: FrameKey| {
            let id = self.frames.ids.get(key.0 as usize).copied();
            id.filter(|id| id.0 != 0)
        };
        let stacks = self.tree.stacks(id);
        stacks.into_iter().map(|stack| stack.0).collect()
    }
}

impl Exported<'_> {
    /// Tells of the stream's events in the window, in the order of time. How many the log does not explain, or are of
    /// another kind, `left_out` counts.
    ///
    /// # Errors
    /// Those of `tell`.
    pub fn each_event(
        &self,
        stream: &Stream,
        window: &Window<'_>,
        left_out: &Cell<u64>,
        tell: &mut dyn FnMut(&Event) -> io::Result<()>,
    ) -> io::Result<()> {
        let wanted = stream.events().filter(|event| window.holds(stream, event));
        for event in wanted {
            match self.event(stream, &event) {
                Some(event) => tell(&event)?,
                None => left_out.set(left_out.get() + 1),
            }
        }
        Ok(())
    }

    fn event(&self, stream: &Stream, event: &lucce_stream::Event) -> Option<Event> {
        let (node, site) = self.places.get(&event.id).copied()?;
        let at = match event.event {
            ALLOCATION => site,
            _ => SiteId::NONE,
        };
        let (kind, what) = self.labels.meanings.get(&(event.event, at)).copied()?;
        let each = self.profile.each(event.event, site);
        let thread = (event.thread.0 as usize).checked_sub(1);
        let value = u64::try_from(event.value).unwrap_or(0);
        let lasts = self.run.kinds.get(kind as usize)?.is_time();
        Some(Event {
            row: Row {
                node: node.0,
                kind,
                what,
                thread: thread.and_then(|at| self.stream_threads.get(at).copied()),
                number: event.id.0,
                count: 1,
                value: value.saturating_add(each),
            },
            at: stream.since_start(event.clock),
            lasted: lasts.then_some(value),
        })
    }
}

impl Frames {
    fn keys<'f>(&'f mut self, code: &'f Code) -> impl FnMut(Frame) -> Option<FrameKey> + 'f {
        let mut known: FxHashMap<Frame, FrameKey> = FxHashMap::default();
        move |frame| Some(*known.entry(frame).or_insert_with(|| self.key(code, frame)))
    }

    fn key(&mut self, code: &Code, frame: Frame) -> FrameKey {
        let shown = code.frame(frame);
        let descriptor = code.descriptor(frame.method);
        let id = shown.id(descriptor, Detail::ByLine);
        let escaped = lucce_formats::Frame {
            class: Text(&shown.class).to_string(),
            method: Text(&shown.method).to_string(),
            descriptor: Text(descriptor).to_string(),
            file: shown.file.map(|file| Text(&file).to_string()),
            line: shown.line,
        };
        self.number(escaped, id)
    }

    /// What is no frame of the program.
    fn named(&mut self, name: &str) -> FrameKey {
        let frame = lucce_formats::Frame {
            class: name.to_owned(),
            method: String::new(),
            descriptor: String::new(),
            file: None,
            line: -1,
        };
        self.number(frame, FrameId(0))
    }

    fn number(&mut self, frame: lucce_formats::Frame, id: FrameId) -> FrameKey {
        let number = self.frames.number(frame);
        if number as usize == self.ids.len() {
            self.ids.push(id);
        }
        FrameKey(number)
    }
}

impl Labels {
    /// Its kind, and what it happened to.
    fn meaning(
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
        let what = profile.detail_at(event, site);
        let meaning = (
            self.kinds.number(kind.to_owned()),
            what.map(|what| self.types.number(Text(what).to_string())),
        );
        self.meanings.insert((event, at), meaning);
        meaning
    }

    fn thread(&mut self, profile: &Profile, thread: ThreadId) -> u32 {
        let threads = &mut self.threads;
        *self
            .by_thread
            .entry(thread)
            .or_insert_with(|| threads.number(Text(&profile.thread_name(thread)).to_string()))
    }
}
