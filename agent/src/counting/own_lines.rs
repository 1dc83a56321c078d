//! Allocations by line of own code, for the program itself (`io.lucce.AgentStatus`).
//!
//! The line of a context is that of its innermost frame of own code. A context id never changes its meaning, so each is
//! decoded once.

use std::fmt::Write;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use lucce_callgraph::{ContextFrame, ContextId, MethodId};
use lucce_filter::{PatternList, is_jdk_name};
use lucce_instrument::kinds::ALLOC;
use lucce_jvmti::JniEnvironment;
use lucce_tracelog::escape::EscapedText;
use rustc_hash::FxHashMap;

use crate::counting::CountingParts;
use crate::counting::object_sizes::{ContextAllocation, find_site_allocation};
use crate::memory::locks::WatchedMutex;
use crate::registry::written_records::external_name;
use crate::registry::{CodeRegistry, NATIVE_LINE};
use crate::stack::trace::resolve_elements;

/// The line of contexts without a frame of own code.
const NO_OWN_LINE: usize = 0;

/// The lines of the contexts that were decoded.
#[derive(Default)]
pub struct OwnLineCache(WatchedMutex<OwnLineTable>);

#[derive(Default)]
struct OwnLineTable {
    /// Empty: all classes but the JDK's.
    own_code: PatternList,
    /// The first is that of [`NO_OWN_LINE`].
    texts: Vec<String>,
    by_text: FxHashMap<String, usize>,
    by_context: FxHashMap<ContextId, ContextLine>,
}

#[derive(Clone, Copy)]
struct ContextLine {
    line: usize,
    /// Bytes of each object in addition to the counter's sum. `None`: the context's events are no allocations.
    object_bytes: Option<u64>,
}

/// Objects and bytes.
#[derive(Clone, Copy, Default)]
struct LineSums {
    objects: u64,
    bytes: u64,
}

/// The sums of all allocations since the start by line, as text: a row `OBJECTS BYTES LINE` for each line. Contexts without
/// own code have a row with an empty last part, even if it is 0. `None`: not every allocation is counted. The caller holds no
/// lock.
pub fn sum_by_own_line(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    own_code: &PatternList,
) -> Option<String> {
    let core = agent.core;
    let is_exact = core.sampling_interval().is_none() && core.budget.is_none();
    if core.is_hookless() || !core.options.has_alloc_hooks() || !is_exact {
        return None;
    }
    // No lock is held while objects are measured. Another thread that asks meanwhile begins with an empty cache.
    let mut lines = mem::take(&mut *agent.counting.own_lines.0.lock());
    if lines.own_code != *own_code || lines.texts.is_empty() {
        lines = OwnLineTable::new(own_code.clone());
    }
    let mut sums = vec![LineSums::default(); lines.texts.len()];
    for (number, counted) in read_untyped_sums(agent) {
        let context = lines.find_line(agent, env, number);
        if let Some(object_bytes) = context.object_bytes {
            let bytes = counted.bytes + counted.objects * object_bytes;
            add_sums(&mut sums, context.line, counted.objects, bytes);
        }
    }
    for (number, counted) in read_typed_sums(agent) {
        let context = lines.find_line(agent, env, number);
        add_sums(&mut sums, context.line, counted.objects, counted.bytes);
    }
    let mut rows = String::new();
    for (line, (sum, text)) in sums.iter().zip(&lines.texts).enumerate() {
        // Before counting begins, that row says that allocations will be counted.
        if sum.objects > 0 || line == NO_OWN_LINE {
            let _ = writeln!(rows, "{} {} {text}", sum.objects, sum.bytes);
        }
    }
    *agent.counting.own_lines.0.lock() = lines;
    Some(rows)
}

fn add_sums(sums: &mut Vec<LineSums>, line: usize, objects: u64, bytes: u64) {
    if sums.len() <= line {
        sums.resize(line + 1, LineSums::default());
    }
    if let Some(sum) = sums.get_mut(line) {
        sum.objects += objects;
        sum.bytes += bytes;
    }
}

/// Relaxed: the number stands for itself.
fn load_count(word: &AtomicU64) -> u64 {
    u64::from_le(word.load(Ordering::Relaxed))
}

/// Sums of the counters by context alone; sizes that sites determine are not in the bytes.
fn read_untyped_sums(agent: CountingParts<'_>) -> FxHashMap<ContextId, LineSums> {
    let mut sums: FxHashMap<ContextId, LineSums> = FxHashMap::default();
    let blocks = agent.counters.lock_counter_blocks();
    for counter in blocks.iter().flat_map(|block| block.iter()) {
        let count = load_count(&counter.count);
        if count > 0 {
            let sum = sums.entry(counter.id()).or_default();
            sum.objects += count;
            sum.bytes += load_count(&counter.bytes);
        }
    }
    sums
}

/// Sums of the allocations that have counters by type: objects that the VM makes.
fn read_typed_sums(agent: CountingParts<'_>) -> FxHashMap<ContextId, LineSums> {
    let types = agent.counting.event_types.details_of_kind(ALLOC.name);
    let mut sums: FxHashMap<ContextId, LineSums> = FxHashMap::default();
    let blocks = agent.counters.lock_event_counter_blocks();
    for counter in blocks.iter().flat_map(|block| block.iter()) {
        let count = load_count(&counter.count);
        if count > 0 && types.contains_key(&counter.event_type()) {
            let sum = sums.entry(counter.id()).or_default();
            sum.objects += count;
            sum.bytes += load_count(&counter.value);
        }
    }
    sums
}

impl OwnLineTable {
    fn new(own_code: PatternList) -> OwnLineTable {
        OwnLineTable {
            own_code,
            texts: vec![String::new()],
            ..OwnLineTable::default()
        }
    }

    fn find_line(
        &mut self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        number: ContextId,
    ) -> ContextLine {
        if let Some(known) = self.by_context.get(&number) {
            return *known;
        }
        let unknown = ContextLine {
            line: NO_OWN_LINE,
            object_bytes: Some(0),
        };
        let decoded = agent.core.encoder.decode_context(number, MethodId::EVENT);
        // The class of a frame may have been unloaded: then the line is not known any more.
        let Ok(frames) = decoded else {
            return unknown;
        };
        let Some(first) = frames.first() else {
            return unknown;
        };
        let object_bytes = match find_site_allocation(agent, env, first.site.0) {
            ContextAllocation::Object { size, .. } => Some(size),
            ContextAllocation::Nothing => None,
            ContextAllocation::Unknown => Some(0),
        };
        let own_frames = agent.stack.tasks.own_frame_count(&frames);
        let frames = frames.get(..own_frames).unwrap_or_default();
        let text = find_own_line(&agent.core.registry(), frames, &self.own_code);
        let line = text.map_or(NO_OWN_LINE, |text| self.intern_line(text));
        let found = ContextLine { line, object_bytes };
        self.by_context.insert(number, found);
        found
    }

    fn intern_line(&mut self, text: String) -> usize {
        if let Some(known) = self.by_text.get(&text) {
            return *known;
        }
        let line = self.texts.len();
        self.texts.push(text.clone());
        self.by_text.insert(text, line);
        line
    }
}

/// The innermost frame of own code, as a stack trace shows it. `frames`: innermost first.
fn find_own_line(
    registry: &CodeRegistry,
    frames: &[ContextFrame],
    own_code: &PatternList,
) -> Option<String> {
    let is_own = |frame: &&ContextFrame| {
        let site = registry.site(frame.site.0);
        let method = site.and_then(|site| registry.method(site.method));
        let class = method.and_then(|method| registry.class(method.class));
        class.is_some_and(|class| {
            let name = external_name(registry.name_text(class.name));
            match own_code.is_empty() {
                true => !is_jdk_name(&name),
                false => own_code.matches_class(&name),
            }
        })
    };
    let frame = frames.iter().find(is_own)?;
    let elements = resolve_elements(registry, std::slice::from_ref(frame))?;
    let element = elements.first()?;
    let (class, method) = (EscapedText(&element.class), EscapedText(&element.method));
    let file = element.file.as_deref().map(EscapedText);
    Some(match (file, element.line) {
        (_, NATIVE_LINE) => format!("{class}.{method}(Native Method)"),
        (Some(file), 0..) => format!("{class}.{method}({file}:{})", element.line),
        (Some(file), _) => format!("{class}.{method}({file})"),
        (None, _) => format!("{class}.{method}(Unknown Source)"),
    })
}
