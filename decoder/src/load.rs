//! Builds a profile from a log, in one pass.
//!
//! ```text
//! InMemoryLog or LogFile ──► LogItem ──► graph, code, threads, … (records)
//!                                    └─► shares ──► ContextCounters (counters)
//! ```

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use lucce_callgraph::{ContextLayout, MethodId, VersionedGraph};
use lucce_filter::PatternList;
use lucce_options::KindDescriptor;
use lucce_options::kinds::{
    ALIVE_THREADS, COLLECTED_RESOURCES, LIVING_BLOCKS, LOCK_HOLDERS, OLDEST_BLOCKS, OPEN_RESOURCES,
    SAMPLE_ERRORS,
};
use lucce_tracelog::{
    AllocationCounters, COMMAND, EventCounters, InMemoryLog, LogDamage, LogEntry, LogFile,
    LogHeader, LogItem, LogRecord, LogTotals, OpenError, SealState, ThreadId, VmCounters,
    mask_arguments,
};

use crate::code::CodeSymbols;
use crate::code_origin::find_class_origins;
use crate::events::{ContextCounter, ContextCounters};
use crate::kinds::{ALLOCATION, EventTypeTable};
use crate::limits::MAX_NOTES;
use crate::marks::RunMarks;
use crate::profile::{DecodeMismatch, LogSizes, Profile, ProfileThread, ProgressTick, SkippedCode};
use crate::recorded_options::read_recorded_options;
use crate::scope::FrameScope;
use crate::source::LogSource;

/// Limits of one counter: 100 million events per second for twenty years, and an exabyte. Larger values are damage.
const MAX_COUNT: u64 = 1 << 56;
const MAX_BYTES: u64 = 1 << 60;

impl Profile {
    /// Reads a log, packed or not.
    ///
    /// # Errors
    /// The file cannot be read or is not a log. A damaged log is no error: the profile has all that could be read, and its
    /// `damage` names the first damage.
    pub fn open(path: impl AsRef<Path>) -> Result<Profile, OpenError> {
        LogSource::open(path)?.read_profile(&|_| ())
    }

    /// Reads a log like `from_log`, with one block of it in memory at a time. `None`: the JVM ended meanwhile, or the file
    /// grew, so the profile may be incomplete.
    ///
    /// # Errors
    /// As `open`.
    pub fn from_file(log: &LogFile, tick: ProgressTick<'_>) -> Result<Option<Profile>, OpenError> {
        let mut profile = empty_profile(log.header(), log.size())?;
        profile.counters_read_at = log.counters_read_at();
        let mut shares = Vec::new();
        log.for_each_item(|item| profile.add_item(item, &mut shares, tick))?;
        let is_settled = log.is_settled()?;
        profile.drop_impossible_counters(&mut shares);
        profile.take_longest_values(&mut shares);
        profile.set_counters(shares);
        profile.size = log.size();
        profile.classify_code(&PatternList::default());
        Ok(is_settled.then_some(profile))
    }

    /// Reads a log in memory. Calls `tick` with the number of bytes read.
    ///
    /// # Errors
    /// As `open`.
    pub fn from_log(log: &InMemoryLog, tick: ProgressTick<'_>) -> Result<Profile, OpenError> {
        let mut profile = empty_profile(log.header(), log.size())?;
        let mut shares = Vec::new();
        for item in log.items() {
            if profile.add_item(item, &mut shares, tick).is_break() {
                break;
            }
        }
        profile.drop_impossible_counters(&mut shares);
        profile.take_longest_values(&mut shares);
        profile.set_counters(shares);
        profile.classify_code(&PatternList::default());
        Ok(profile)
    }

    /// Decides the origin of each class. `app`: the classes of the program; empty: those that the agent's option `app=`
    /// names, or else those that the rules of `code_origin` find.
    pub fn classify_code(&mut self, app: &PatternList) {
        let recorded = match app.is_empty() {
            true => read_recorded_options(self).map(|options| options.app),
            false => None,
        };
        let app = recorded.unwrap_or_else(|| app.clone());
        let found = find_class_origins(self, app);
        self.own_places = found.own_places;
        self.code.set_class_origins(&found.origins);
    }

    /// Sets the counters. Holders of locks, living threads, living memory and open resources are no events of their own.
    fn set_counters(&mut self, counters: Vec<ContextCounter>) {
        let take_kinds = |counters: Vec<ContextCounter>, kinds: &[&KindDescriptor]| {
            let is_taken = |counter: &ContextCounter| {
                let mut kinds = kinds.iter();
                kinds.any(|kind| self.types.is_of_kind(counter.event, kind.name))
            };
            counters.into_iter().partition(is_taken)
        };
        let counters = match self.types.has_kind(OPEN_RESOURCES.name) {
            true => {
                let (open, counters) = take_kinds(counters, &[&OPEN_RESOURCES]);
                let (collected, counters) = take_kinds(counters, &[&COLLECTED_RESOURCES]);
                (self.open_resources, self.collected_resources) = (open, collected);
                counters
            }
            false => counters,
        };
        let (alive, counters) = take_kinds(counters, &[&ALIVE_THREADS]);
        let (memory, counters) = take_kinds(counters, &[&LIVING_BLOCKS, &OLDEST_BLOCKS]);
        (self.alive_threads, self.living_memory) = (alive, memory);
        let all = ContextCounters::new(counters);
        let is_error =
            |counter: &ContextCounter| self.types.is_of_kind(counter.event, SAMPLE_ERRORS.name);
        let all = match self.types.has_kind(SAMPLE_ERRORS.name) {
            true => {
                let (errors, all) = all.partition_counters(is_error);
                self.sample_errors = errors;
                all
            }
            false => all,
        };
        let is_holder =
            |counter: &ContextCounter| self.types.is_of_kind(counter.event, LOCK_HOLDERS.name);
        (self.lock_holders, self.events) = all.partition_counters(is_holder);
    }

    /// Adds a record or a block of counters. `Break`: the log is damaged here.
    fn add_item(
        &mut self,
        item: Result<LogItem<'_>, LogDamage>,
        shares: &mut Vec<ContextCounter>,
        tick: ProgressTick<'_>,
    ) -> ControlFlow<()> {
        let taken = item.and_then(|item| {
            match item {
                LogItem::Record(entry) => self.add_entry(entry, tick)?,
                LogItem::Counters(cells) => self.add_allocation_counters(&cells, shares, tick),
                LogItem::Totals(totals) => self.add_totals(&totals, tick),
                LogItem::EventCounters(cells) => self.add_event_counters(&cells, shares, tick),
                LogItem::VmCounters(cells) => self.add_vm_counters(&cells, tick),
            }
            Ok(())
        });
        match taken {
            Ok(()) => ControlFlow::Continue(()),
            Err(damage) => {
                self.damage.get_or_insert(damage);
                ControlFlow::Break(())
            }
        }
    }

    fn add_entry(&mut self, entry: LogEntry<'_>, tick: ProgressTick<'_>) -> Result<(), LogDamage> {
        let (count, bytes) = self.sizes.records.entry(entry.kind).or_default();
        *count += 1;
        *bytes += entry.size;
        tick(entry.size);
        entry
            .record
            .map_or(Ok(()), |record| self.add_record(record, entry.offset))
    }

    fn add_record(&mut self, record: LogRecord<'_>, offset: u64) -> Result<(), LogDamage> {
        match record {
            LogRecord::Meta(r) if r.key == COMMAND => {
                self.meta.insert(r.key.into(), mask_arguments(&r.value));
                self.command = r.value.trim_end().to_owned();
            }
            LogRecord::Meta(r) => {
                self.meta.insert(r.key.into(), r.value.into());
            }
            LogRecord::Class(r) => self.code.add_class(r),
            LogRecord::CodeSource(r) => self.code.add_code_source(&r),
            LogRecord::ClassSource(r) => self.code.add_class_source(r),
            LogRecord::Method(r) => self.code.add_method(r),
            LogRecord::Site(r) => self.code.add_site(r),
            LogRecord::SiteSize(r) => self.code.add_site_size(r.site, r.bytes),
            LogRecord::Change(change) => self
                .graph
                .apply_change(change)
                .map_err(|error| LogDamage::at_offset(offset, error.to_string()))?,
            LogRecord::Thread(r) => {
                let info = ProfileThread {
                    name: r.name.into(),
                    is_virtual: r.is_virtual,
                };
                self.threads.insert(r.id, info);
            }
            LogRecord::ThreadEnd(_) => {}
            LogRecord::Mismatch(r) => {
                let mismatch = DecodeMismatch {
                    id: r.id,
                    at: r.at,
                    expected: r.expected.into(),
                    decoded: r.decoded.into(),
                };
                push_note(&mut self.mismatches, mismatch, (offset, &mut self.damage));
            }
            LogRecord::Skipped(r) => {
                let skipped = SkippedCode {
                    class: r.class.into(),
                    method: r.method.map(Into::into),
                    reason: r.reason.into(),
                };
                push_note(&mut self.skipped, skipped, (offset, &mut self.damage));
            }
            LogRecord::Warning(r) => {
                push_note(
                    &mut self.warnings,
                    r.text.into(),
                    (offset, &mut self.damage),
                );
            }
            LogRecord::Stat(r) => {
                self.stats.insert(r.key.into(), r.value);
            }
            LogRecord::End(_) => self.ended = true,
            LogRecord::ThreadOrigin(r) => {
                let origins = self.origins.entry(r.thread).or_default();
                if !origins.contains(&r.context) {
                    origins.push(r.context);
                }
            }
            LogRecord::ThreadTag(r) => {
                let tags = self.tags.entry(r.thread).or_default();
                tags.insert(r.key.into(), r.value.into());
            }
            LogRecord::EventType(r) => {
                let id = r.id;
                if !self.types.add_type(r) {
                    let reason = format!("a second meaning of event type {}", id.0);
                    return Err(LogDamage::at_offset(offset, reason));
                }
            }
            LogRecord::Followed(r) => self.followed_objects.add_object_key(r),
            LogRecord::Snapshot(r) => self.followed_objects.begin_snapshot(r),
            LogRecord::Survivors(r) => self.followed_objects.add_survivors(r),
            LogRecord::HeapCensus(r) => self.followed_objects.begin_census(r),
            LogRecord::MarkedCounters(r) => self.marks.add_counters(&r),
            LogRecord::Mark(r) => {
                if !self.marks.add_mark(&r) {
                    let reason = "a mark without all of its counters".to_owned();
                    self.damage
                        .get_or_insert(LogDamage::at_offset(offset, reason));
                }
            }
        }
        Ok(())
    }

    /// Whether counters are added: not if their checksum is wrong, since it does not say which ones are damaged.
    fn admit_counters(
        &mut self,
        seal: SealState,
        offset: u64,
        what: impl FnOnce() -> String,
    ) -> bool {
        match seal {
            SealState::Right => true,
            SealState::Absent => {
                self.unsealed += 1;
                true
            }
            SealState::Wrong => {
                let what = what();
                let reason = format!("{what} do not agree with their checksum and are left out");
                self.damage
                    .get_or_insert(LogDamage::at_offset(offset, reason));
                false
            }
        }
    }

    /// Adds running totals. Each is valid until the JVM ends and writes the final one.
    fn add_totals(&mut self, totals: &LogTotals<'_>, tick: ProgressTick<'_>) {
        if !self.admit_counters(totals.seal, totals.offset, || "totals".to_owned()) {
            return;
        }
        for (key, value) in totals.iter() {
            self.stats.insert(key.to_owned(), value);
        }
        self.sizes.counters.1 += totals.size();
        tick(totals.size());
    }

    /// Adds counters of allocations. A damaged counter is left out and reading goes on: nothing depends on a counter.
    fn add_allocation_counters(
        &mut self,
        cells: &AllocationCounters<'_>,
        shares: &mut Vec<ContextCounter>,
        tick: ProgressTick<'_>,
    ) {
        let thread = cells.thread;
        if !self.admit_counters(cells.seal, cells.offset, || {
            describe_thread_counters(thread)
        }) {
            return;
        }
        for cell in cells.iter() {
            if cell.count > MAX_COUNT || cell.bytes > MAX_BYTES {
                self.damage.get_or_insert(LogDamage::at_offset(
                    cell.offset,
                    "a counter of more than any program can count",
                ));
                continue;
            }
            self.sizes.counters.0 += 1;
            // The agent looked up this context, but no event was counted.
            if cell.count == 0 {
                continue;
            }
            shares.push(ContextCounter {
                id: cell.id,
                thread: cells.thread,
                offset: cell.offset,
                count: cell.count,
                event: ALLOCATION,
                value: cell.bytes,
            });
        }
        self.sizes.counters.1 += cells.size();
        tick(cells.size());
    }

    /// Adds counters of other events. Their types are checked after the whole log was read.
    fn add_event_counters(
        &mut self,
        cells: &EventCounters<'_>,
        shares: &mut Vec<ContextCounter>,
        tick: ProgressTick<'_>,
    ) {
        let thread = cells.thread;
        if !self.admit_counters(cells.seal, cells.offset, || {
            describe_thread_counters(thread)
        }) {
            return;
        }
        for cell in cells.iter() {
            if cell.count > MAX_COUNT || cell.zero != 0 {
                self.damage.get_or_insert(LogDamage::at_offset(
                    cell.offset,
                    "a counter of more than any program can count",
                ));
                continue;
            }
            shares.push(ContextCounter {
                id: cell.id,
                thread: cells.thread,
                event: cell.event,
                offset: cell.offset,
                count: cell.count,
                value: cell.value,
            });
            self.sizes.counters.0 += 1;
        }
        self.sizes.counters.1 += cells.size();
        tick(cells.size());
    }

    /// Adds bytes that the VM counted, and what the hooks had counted at that moment.
    fn add_vm_counters(&mut self, cells: &VmCounters<'_>, tick: ProgressTick<'_>) {
        if !self.admit_counters(cells.seal, cells.offset, || "counters of the VM".to_owned()) {
            return;
        }
        for count in cells.iter() {
            if count.bytes > MAX_BYTES {
                self.damage.get_or_insert(LogDamage::at_offset(
                    count.offset,
                    "a counter of more than any program can count",
                ));
                continue;
            }
            self.vm_counts.push(count);
            self.sizes.counters.0 += 1;
        }
        let (counted, wrong): (Vec<_>, Vec<_>) = cells
            .iter_counted()
            .partition(|sum| sum.bytes <= MAX_BYTES && sum.objects <= MAX_COUNT);
        if let Some(first) = wrong.first() {
            self.damage.get_or_insert(LogDamage::at_offset(
                first.offset,
                "a counter of more than any program can count",
            ));
        }
        self.sizes.counters.0 += counted.len() as u64;
        self.counted_sums.extend(counted);
        self.sizes.counters.1 += cells.size();
        tick(cells.size());
    }

    /// Removes counters whose type the log does not explain, or whose values are impossible.
    fn drop_impossible_counters(&mut self, shares: &mut Vec<ContextCounter>) {
        let mut wrong: Option<(u64, &'static str)> = None;
        shares.retain(|share| {
            let Some(reason) = self.impossible_reason(share) else {
                return true;
            };
            let first = wrong.is_none_or(|(offset, _)| share.offset < offset);
            if first {
                wrong = Some((share.offset, reason));
            }
            false
        });
        if let Some((offset, reason)) = wrong {
            self.damage
                .get_or_insert(LogDamage::at_offset(offset, reason));
        }
    }

    /// Moves longest values out of the counters: they are no sums.
    fn take_longest_values(&mut self, shares: &mut Vec<ContextCounter>) {
        let longest: HashSet<&str> = KindDescriptor::iter_all()
            .filter_map(|kind| kind.longest)
            .collect();
        let is_longest = |share: &ContextCounter| {
            let kind = self.types.get(share.event);
            kind.is_some_and(|info| longest.contains(&*info.kind))
        };
        let all = std::mem::take(shares).into_iter();
        let (taken, left): (Vec<_>, Vec<_>) = all.partition(is_longest);
        *shares = left;
        for share in taken {
            let known = self.longest_values.entry(share.id).or_default();
            *known = share.value.max(*known);
        }
    }

    /// Why no program can have this counter; `None`: it is possible.
    fn impossible_reason(&self, share: &ContextCounter) -> Option<&'static str> {
        if share.event == ALLOCATION {
            return self.impossible_bytes_reason(share);
        }
        match self.types.get(share.event) {
            None => Some("a counter of a type that the log does not explain"),
            Some(info) if !info.unit.is_empty() && share.value > MAX_BYTES => {
                Some("a counter of more than any program can count")
            }
            Some(_) => None,
        }
    }

    /// Why no objects have this number of bytes. If the JVM was killed or still runs, the last event may be counted
    /// without its bytes.
    fn impossible_bytes_reason(&self, share: &ContextCounter) -> Option<&'static str> {
        if !share.value.is_multiple_of(ALIGNMENT) {
            return Some("a counter of bytes that no objects take: they are aligned");
        }
        let (_, leaf) = self.graph.find_caller(share.id, MethodId::EVENT).ok()??;
        let allocated = self.code.allocated_type(leaf.site)?;
        let counted = match self.ended {
            true => share.count,
            false => share.count.saturating_sub(1),
        };
        let is_array = allocated.ends_with(']');
        let least = counted.saturating_mul(SMALLEST_ARRAY);
        if is_array && share.value < least {
            return Some("a counter of fewer bytes than the smallest arrays take");
        }
        let has_size = self.code.object_size(leaf.site).is_some();
        let is_sampled = self.meta.contains_key("sampled.bytes");
        (has_size && !is_array && !is_sampled && share.value > 0)
            .then_some("a counter of bytes at a site that says the size of its objects")
    }
}

/// Object alignment in bytes, in every HotSpot.
const ALIGNMENT: u64 = 8;
/// Bytes of an array without elements, in every HotSpot.
const SMALLEST_ARRAY: u64 = 16;

fn describe_thread_counters(ThreadId(thread): ThreadId) -> String {
    format!("counters of thread {thread}")
}

/// Adds a note of the agent, at `offset` of the log. More than [`MAX_NOTES`] notes are damage.
fn push_note<T>(notes: &mut Vec<T>, note: T, (offset, damage): (u64, &mut Option<LogDamage>)) {
    if notes.len() < MAX_NOTES {
        notes.push(note);
        return;
    }
    damage.get_or_insert_with(|| {
        let text = format!("more than {MAX_NOTES} notes of one kind: the rest is left out");
        LogDamage::at_offset(offset, text)
    });
}

fn empty_profile(header: &LogHeader, size: u64) -> Result<Profile, OpenError> {
    Ok(Profile {
        header: *header,
        size,
        graph: VersionedGraph::new(layout_from_header(header)?),
        code: CodeSymbols::default(),
        events: ContextCounters::default(),
        marks: RunMarks::default(),
        interval: None,
        types: EventTypeTable::default(),
        lock_holders: ContextCounters::default(),
        sample_errors: ContextCounters::default(),
        alive_threads: Vec::new(),
        living_memory: Vec::new(),
        open_resources: Vec::new(),
        collected_resources: Vec::new(),
        threads: Default::default(),
        origins: Default::default(),
        tags: Default::default(),
        vm_counts: Vec::new(),
        counted_sums: Vec::new(),
        across_threads: false,
        meta: Default::default(),
        command: String::new(),
        stats: Default::default(),
        mismatches: Vec::new(),
        skipped: Vec::new(),
        warnings: Vec::new(),
        followed_objects: Default::default(),
        sizes: LogSizes::default(),
        ended: false,
        unsealed: 0,
        counters_read_at: Instant::now(),
        damage: None,
        scope: FrameScope::default(),
        own_places: BTreeSet::new(),
        longest_values: HashMap::new(),
    })
}

fn layout_from_header(header: &LogHeader) -> Result<ContextLayout, OpenError> {
    let bits = [header.version_bits, header.anchor_bits, header.call_bits].map(u32::from);
    let [version, anchor, call] = bits;
    let possible = (1..=ContextLayout::MAX_VERSION_BITS).contains(&version)
        && (1..=32).contains(&anchor)
        && (1..=56).contains(&call)
        && version + anchor + call <= 64;
    match possible {
        true => Ok(ContextLayout::new(version, anchor, call)),
        false => Err(OpenError::Damaged(LogDamage::at_offset(
            10,
            format!("a number cannot have {version} + {anchor} + {call} bits"),
        ))),
    }
}
