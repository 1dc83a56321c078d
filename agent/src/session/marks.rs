//! Marks: `lucce ctl mark`, `lucce ctl reset` and `CallContext.mark` write into the log what all counters have counted so far.
//! Readers subtract it from the later counts.
//!
//! Threads go on counting. An event that is counted during the mark belongs to either side of it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use lucce_callgraph::ContextId;
use lucce_control::json::ReplyObject;
use lucce_tracelog::{EventTypeId, LogFull, MarkRecord, MarkedCounter, MarkedCounters, ThreadId};

use crate::session::Agent;
use crate::session::event_totals::EventTotals;
use crate::thread::coverage::visit_blocks;
use crate::thread::tags;

/// The name of a reset in the log.
pub const RESET_NAME: &str = "reset";
/// Names that stand for the run's start and end.
const RESERVED_NAMES: [&str; 2] = ["start", "end"];
/// Longest name of a mark, in UTF-16 units.
pub const LONGEST_NAME: usize = tags::LONGEST;
/// Counters of one record; a record of this many has far less than a block's bytes.
const RECORD_COUNTERS: usize = 1024;
/// Allocations by bytecode.
const BYTECODE_ALLOCATIONS: EventTypeId = EventTypeId(0);

/// The id of the last mark.
static LAST_MARK: AtomicU32 = AtomicU32::new(0);

/// Whether readers begin to count at the mark by default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MarkEffect {
    Named,
    Reset,
}

/// Writes a mark.
///
/// # Errors
/// One line for the user: the name is none, or the log is full.
pub fn write_mark(agent: &Agent, name: &str, effect: MarkEffect) -> Result<String, String> {
    check_name(name)?;
    let mut writer = MarkWriter {
        agent,
        // Relaxed: only the numbers must differ.
        mark: LAST_MARK.fetch_add(1, Ordering::Relaxed) + 1,
        written: 0,
        pending: Vec::new(),
    };
    let elapsed = agent.core.started.elapsed();
    let at_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
    let written = writer.write_counters();
    let written = written.and_then(|()| {
        agent.core.log.append_record(MarkRecord {
            id: writer.mark,
            is_reset: effect == MarkEffect::Reset,
            at_ns,
            counters: writer.written,
            name: name.into(),
        })
    });
    written.map_err(|full| format!("the mark is not in the log: {full}"))?;
    Ok(ReplyObject::default()
        .with_text("mark", name)
        .with_raw("at_ms", elapsed.as_millis())
        .with_raw("recorded", EventTotals::count_events(agent).sum_events())
        .into_json())
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = !name.is_empty() && !name.contains(char::is_control);
    if !is_plain || name.encode_utf16().count() > LONGEST_NAME {
        return Err(format!(
            "a mark's name has 1 to {LONGEST_NAME} characters in one line"
        ));
    }
    match RESERVED_NAMES.contains(&name) {
        true => Err(format!("a mark cannot have the name {name}")),
        false => Ok(()),
    }
}

struct MarkWriter<'a> {
    agent: &'a Agent,
    mark: u32,
    /// Number of counters in the log.
    written: u64,
    pending: Vec<MarkedCounter>,
}

impl MarkWriter<'_> {
    /// Writes all counters that have counted. Lock order: the list of blocks, then the log.
    fn write_counters(&mut self) -> Result<(), LogFull> {
        // Relaxed: each value is used by itself. Acquire, for ids: the counter's type was stored before.
        let load = |word: &AtomicU64| u64::from_le(word.load(Ordering::Relaxed));
        let load_id = |id: &AtomicU64| ContextId(u64::from_le(id.load(Ordering::Acquire)));
        let counters = &self.agent.counters;
        let mut result = Ok(());
        visit_blocks(
            || counters.lock_counter_blocks(),
            |block| {
                for cell in block.iter() {
                    self.pending.push(MarkedCounter {
                        context: load_id(&cell.id),
                        event: BYTECODE_ALLOCATIONS,
                        count: load(&cell.count),
                        value: load(&cell.bytes),
                    });
                }
                result = result.and_then(|()| self.write_pending(block.thread()));
                block.release_pages();
            },
        );
        visit_blocks(
            || counters.lock_event_counter_blocks(),
            |block| {
                for cell in block.iter() {
                    self.pending.push(MarkedCounter {
                        context: load_id(&cell.id),
                        event: cell.event_type(),
                        count: load(&cell.count),
                        value: load(&cell.value),
                    });
                }
                result = result.and_then(|()| self.write_pending(block.thread()));
                block.release_pages();
            },
        );
        result
    }

    /// Writes the pending counters of a thread id.
    fn write_pending(&mut self, thread: ThreadId) -> Result<(), LogFull> {
        self.pending.retain(|counter| {
            counter.context != ContextId::UNKNOWN && (counter.count > 0 || counter.value > 0)
        });
        for counters in self.pending.chunks(RECORD_COUNTERS) {
            self.agent.core.log.append_record(MarkedCounters {
                mark: self.mark,
                thread,
                counters: counters.to_vec(),
            })?;
            self.written += counters.len() as u64;
        }
        self.pending.clear();
        Ok(())
    }
}
