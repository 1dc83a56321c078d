//! From the log to the profile, in one pass.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use lucce_callgraph::{Graph, Layout, MethodId};
use lucce_tracelog::{
    COMMAND, Cells, Damage, Entry, EventCells, Header, Item, Log, LogFile, OpenError, Record, Seal,
    ThreadId, Totals, VmCells, mask_arguments,
};

use crate::code::Code;
use crate::events::{Events, Share};
use crate::kinds::{ALLOCATION, Types};
use crate::limits::MAX_NOTES;
use crate::profile::{Mismatch, Profile, Sizes, Skipped, ThreadInfo, Tick};
use crate::scope::Scope;
use crate::source::Source;

/// What one thread cannot do from one place: twenty years of 100 million events per second, and
/// an exabyte.
const MAX_COUNT: u64 = 1 << 56;
const MAX_BYTES: u64 = 1 << 60;

impl Profile {
    /// # Errors
    /// The file cannot be read or is not a log. A damaged log is no error: what could be read is
    /// there, and `damage` says where the first damage is.
    pub fn open(path: impl AsRef<Path>) -> Result<Profile, OpenError> {
        Source::open(path)?.profile(&|_| ())
    }

    /// As `from_log`, with one block of the log in memory at a time. `None`: its JVM has ended meanwhile, or the file has become
    /// longer, so what was read may not be all.
    ///
    /// # Errors
    /// As `open`.
    pub fn from_file(log: &LogFile, tick: Tick<'_>) -> Result<Option<Profile>, OpenError> {
        let mut profile = empty(log.header(), log.size())?;
        profile.counted_at = log.counted_at();
        let mut shares = Vec::new();
        log.each(|item| profile.take(item, &mut shares, tick))?;
        let is_settled = log.is_settled()?;
        profile.leave_out_impossible(&mut shares);
        profile.events = Events::new(shares);
        profile.size = log.size();
        Ok(is_settled.then_some(profile))
    }

    /// `tick` is told the bytes that were read.
    ///
    /// # Errors
    /// As `open`.
    pub fn from_log(log: &Log, tick: Tick<'_>) -> Result<Profile, OpenError> {
        let mut profile = empty(log.header(), log.size())?;
        let mut shares = Vec::new();
        for item in log.items() {
            if profile.take(item, &mut shares, tick).is_break() {
                break;
            }
        }
        profile.leave_out_impossible(&mut shares);
        profile.events = Events::new(shares);
        Ok(profile)
    }

    /// `Break`: the log is damaged here.
    fn take(
        &mut self,
        item: Result<Item<'_>, Damage>,
        shares: &mut Vec<Share>,
        tick: Tick<'_>,
    ) -> ControlFlow<()> {
        let taken = item.and_then(|item| {
            match item {
                Item::Record(entry) => self.entry(entry, tick)?,
                Item::Cells(cells) => self.cells(&cells, shares, tick),
                Item::Totals(totals) => self.totals(&totals, tick),
                Item::EventCells(cells) => self.event_cells(&cells, shares, tick),
                Item::VmCells(cells) => self.vm_cells(&cells, tick),
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

    fn entry(&mut self, entry: Entry<'_>, tick: Tick<'_>) -> Result<(), Damage> {
        let (count, bytes) = self.sizes.records.entry(entry.kind).or_default();
        *count += 1;
        *bytes += entry.size;
        tick(entry.size);
        entry
            .record
            .map_or(Ok(()), |record| self.record(record, entry.offset))
    }

    fn record(&mut self, record: Record<'_>, offset: u64) -> Result<(), Damage> {
        match record {
            Record::Meta(r) if r.key == COMMAND => {
                self.meta.insert(r.key.into(), mask_arguments(&r.value));
                self.command = r.value.trim_end().to_owned();
            }
            Record::Meta(r) => {
                self.meta.insert(r.key.into(), r.value.into());
            }
            Record::Class(r) => self.code.class(r),
            Record::Method(r) => self.code.method(r),
            Record::Site(r) => self.code.site(r),
            Record::SiteSize(r) => self.code.site_size(r.site, r.bytes),
            Record::Change(change) => self
                .graph
                .apply(change)
                .map_err(|error| Damage::at(offset, error.to_string()))?,
            Record::Thread(r) => {
                let info = ThreadInfo {
                    name: r.name.into(),
                    is_virtual: r.is_virtual,
                };
                self.threads.insert(r.id, info);
            }
            Record::ThreadEnd(_) => {}
            Record::Mismatch(r) => {
                let mismatch = Mismatch {
                    id: r.id,
                    at: r.at,
                    expected: r.expected.into(),
                    decoded: r.decoded.into(),
                };
                push_note(&mut self.mismatches, mismatch, (offset, &mut self.damage));
            }
            Record::Skipped(r) => {
                let skipped = Skipped {
                    class: r.class.into(),
                    method: r.method.map(Into::into),
                    reason: r.reason.into(),
                };
                push_note(&mut self.skipped, skipped, (offset, &mut self.damage));
            }
            Record::Warning(r) => {
                push_note(
                    &mut self.warnings,
                    r.text.into(),
                    (offset, &mut self.damage),
                );
            }
            Record::Stat(r) => {
                self.stats.insert(r.key.into(), r.value);
            }
            Record::End(_) => self.ended = true,
            Record::ThreadOrigin(r) => {
                let origins = self.origins.entry(r.thread).or_default();
                if !origins.contains(&r.context) {
                    origins.push(r.context);
                }
            }
            Record::ThreadTag(r) => {
                let tags = self.tags.entry(r.thread).or_default();
                tags.insert(r.key.into(), r.value.into());
            }
            Record::EventType(r) => {
                let id = r.id;
                if !self.types.add(r) {
                    let reason = format!("a second meaning of event type {}", id.0);
                    return Err(Damage::at(offset, reason));
                }
            }
            Record::Followed(r) => self.following.followed(r),
            Record::Snapshot(r) => self.following.snapshot(r),
            Record::Survivors(r) => self.following.survivors(r),
            Record::HeapCensus(r) => self.following.census(r),
        }
        Ok(())
    }

    /// Whether cells are taken: not if their checksum says that some are not what was written. Which ones it does not say.
    fn admit_cells(&mut self, seal: Seal, offset: u64, what: impl FnOnce() -> String) -> bool {
        match seal {
            Seal::Right => true,
            Seal::Absent => {
                self.unsealed += 1;
                true
            }
            Seal::Wrong => {
                let what = what();
                let reason = format!("{what} do not agree with their checksum and are left out");
                self.damage.get_or_insert(Damage::at(offset, reason));
                false
            }
        }
    }

    /// Each holds until the JVM ends and tells it.
    fn totals(&mut self, totals: &Totals<'_>, tick: Tick<'_>) {
        if !self.admit_cells(totals.seal, totals.offset, || "totals".to_owned()) {
            return;
        }
        for (key, value) in totals.iter() {
            self.stats.insert(key.to_owned(), value);
        }
        self.sizes.counters.1 += totals.size();
        tick(totals.size());
    }

    /// A counter is the only thing that can be left out: nothing else depends on it.
    fn cells(&mut self, cells: &Cells<'_>, shares: &mut Vec<Share>, tick: Tick<'_>) {
        let thread = cells.thread;
        if !self.admit_cells(cells.seal, cells.offset, || counters_of(thread)) {
            return;
        }
        for cell in cells.iter() {
            if cell.count > MAX_COUNT || cell.bytes > MAX_BYTES {
                self.damage.get_or_insert(Damage::at(
                    cell.offset,
                    "a counter of more than any program can count",
                ));
                continue;
            }
            self.sizes.counters.0 += 1;
            // Of a context that was only asked for.
            if cell.count == 0 {
                continue;
            }
            shares.push(Share {
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

    /// As `cells`; whether the type is known is asked when everything was read.
    fn event_cells(&mut self, cells: &EventCells<'_>, shares: &mut Vec<Share>, tick: Tick<'_>) {
        let thread = cells.thread;
        if !self.admit_cells(cells.seal, cells.offset, || counters_of(thread)) {
            return;
        }
        for cell in cells.iter() {
            if cell.count > MAX_COUNT || cell.zero != 0 {
                self.damage.get_or_insert(Damage::at(
                    cell.offset,
                    "a counter of more than any program can count",
                ));
                continue;
            }
            shares.push(Share {
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

    /// What the VM says stands for itself.
    fn vm_cells(&mut self, cells: &VmCells<'_>, tick: Tick<'_>) {
        if !self.admit_cells(cells.seal, cells.offset, || "counters of the VM".to_owned()) {
            return;
        }
        for count in cells.iter() {
            if count.bytes > MAX_BYTES {
                self.damage.get_or_insert(Damage::at(
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
            self.damage.get_or_insert(Damage::at(
                first.offset,
                "a counter of more than any program can count",
            ));
        }
        self.sizes.counters.0 += counted.len() as u64;
        self.counted_sums.extend(counted);
        self.sizes.counters.1 += cells.size();
        tick(cells.size());
    }

    /// Counters by type whose type the log does not know, or whose values nothing can have.
    fn leave_out_impossible(&mut self, shares: &mut Vec<Share>) {
        let mut wrong: Option<(u64, &'static str)> = None;
        shares.retain(|share| {
            let Some(reason) = self.impossible(share) else {
                return true;
            };
            let first = wrong.is_none_or(|(offset, _)| share.offset < offset);
            if first {
                wrong = Some((share.offset, reason));
            }
            false
        });
        if let Some((offset, reason)) = wrong {
            self.damage.get_or_insert(Damage::at(offset, reason));
        }
    }

    /// Why nothing can have counted this; `None`: something can.
    fn impossible(&self, share: &Share) -> Option<&'static str> {
        if share.event == ALLOCATION {
            return self.impossible_bytes(share);
        }
        match self.types.get(share.event) {
            None => Some("a counter of a type that the log does not explain"),
            Some(info) if !info.unit.is_empty() && share.value > MAX_BYTES => {
                Some("a counter of more than any program can count")
            }
            Some(_) => None,
        }
    }

    /// Of a counter of allocations, why no objects take so many bytes. Of a JVM that was killed or still runs, one event
    /// may be counted already whose bytes are not.
    fn impossible_bytes(&self, share: &Share) -> Option<&'static str> {
        if !share.value.is_multiple_of(ALIGNMENT) {
            return Some("a counter of bytes that no objects take: they are aligned");
        }
        let (_, leaf) = self.graph.caller(share.id, MethodId::EVENT).ok()??;
        let allocated = self.code.allocated(leaf.site)?;
        let counted = match self.ended {
            true => share.count,
            false => share.count.saturating_sub(1),
        };
        let is_array = allocated.ends_with(']');
        let least = counted.saturating_mul(SMALLEST_ARRAY);
        if is_array && share.value < least {
            return Some("a counter of fewer bytes than the smallest arrays take");
        }
        let has_size = self.code.size(leaf.site).is_some();
        let is_sampled = self.meta.contains_key("sampled.bytes");
        (has_size && !is_array && !is_sampled && share.value > 0)
            .then_some("a counter of bytes at a site that says the size of its objects")
    }
}

/// Objects' sizes are multiples of this in every HotSpot.
const ALIGNMENT: u64 = 8;
/// An array without elements, in every HotSpot.
const SMALLEST_ARRAY: u64 = 16;

fn counters_of(ThreadId(thread): ThreadId) -> String {
    format!("counters of thread {thread}")
}

/// Adds a note of the agent's, which is at this offset; where there are as many as are kept, that is damage.
fn push_note<T>(notes: &mut Vec<T>, note: T, (offset, damage): (u64, &mut Option<Damage>)) {
    if notes.len() < MAX_NOTES {
        notes.push(note);
        return;
    }
    damage.get_or_insert_with(|| {
        let text = format!("more than {MAX_NOTES} notes of one kind: the rest is left out");
        Damage::at(offset, text)
    });
}

fn empty(header: &Header, size: u64) -> Result<Profile, OpenError> {
    Ok(Profile {
        header: *header,
        size,
        graph: Graph::new(layout(header)?),
        code: Code::default(),
        events: Events::default(),
        types: Types::default(),
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
        following: Default::default(),
        sizes: Sizes::default(),
        ended: false,
        unsealed: 0,
        counted_at: Instant::now(),
        damage: None,
        scope: Scope::default(),
    })
}

fn layout(header: &Header) -> Result<Layout, OpenError> {
    let bits = [header.version_bits, header.anchor_bits, header.call_bits].map(u32::from);
    let [version, anchor, call] = bits;
    let possible = (1..=Layout::MAX_VERSION_BITS).contains(&version)
        && (1..=32).contains(&anchor)
        && (1..=56).contains(&call)
        && version + anchor + call <= 64;
    match possible {
        true => Ok(Layout::new(version, anchor, call)),
        false => Err(OpenError::Damaged(Damage::at(
            10,
            format!("a number cannot have {version} + {anchor} + {call} bits"),
        ))),
    }
}
