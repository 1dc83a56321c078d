//! Classes that live: each has a tag of the VM's, and the VM reports the tag of a class that it has unloaded.
//!
//! A tag is the index of a counter and the bytes of the class file. Tags are in a JVMTI environment of their own: no other
//! part of the agent, and no other agent, sees them. Unloaded classes are counted in counters without a thread.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_jvmti::{JniEnvironment, Jvmti};
use lucce_tracelog::{CounterBlock, EventCounter, EventTypeId, ThreadId};
use rustc_hash::FxHashMap;

use crate::core::AgentCore;
use crate::memory::locks::WatchedMutex;

/// Counters of the first block; each further block has as many as all before it.
const FIRST_COUNTERS: usize = 64;
/// Number of blocks. Classes for which they have no counter are taken for living.
const MAX_BLOCKS: usize = 15;
/// Maximum number of classes between their class files and their definitions. Beyond it, the oldest is forgotten, whose
/// definition has failed: no thread needs that long.
const MAX_ARRIVING: usize = 1 << 10;

/// A class between its class file and its definition: the thread that defines it, and its name's hash.
pub type ArrivingClassKey = (usize, u64);

/// The tags of classes and loaders, and the counters of those that were unloaded.
#[derive(Default)]
pub struct ClassUnloads {
    /// Has the tags. `None`: the VM has no such environment.
    tags: OnceLock<Option<Jvmti>>,
    /// Read without locks: the VM's thread that reports a tag may have locks of the VM.
    blocks: [OnceLock<&'static [EventCounter]>; MAX_BLOCKS],
    indices: WatchedMutex<UnloadIndices>,
    arriving: WatchedMutex<ArrivingClasses>,
    /// Held from the question whether an object has a tag until it has one.
    first_tag: WatchedMutex<FirstTag>,
}

#[derive(Default)]
struct FirstTag;

/// Bytes of classes that threads are about to define.
#[derive(Default)]
struct ArrivingClasses {
    bytes: FxHashMap<ArrivingClassKey, DefinitionBytes>,
    arrived: u64,
}

struct DefinitionBytes {
    bytes: u32,
    /// Position in the order of arrival.
    position: u64,
}

impl ArrivingClasses {
    fn add_class(&mut self, class: ArrivingClassKey, bytes: u32) {
        if self.bytes.len() >= MAX_ARRIVING {
            let oldest = self.bytes.iter().min_by_key(|(_, class)| class.position);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.bytes.remove(&key);
            }
        }
        let position = self.arrived;
        self.arrived += 1;
        self.bytes
            .insert(class, DefinitionBytes { bytes, position });
    }
}

#[derive(Default)]
struct UnloadIndices {
    by_type: FxHashMap<(ContextId, EventTypeId), u32>,
    blocks: Vec<CounterBlock<EventCounter>>,
}

impl ClassUnloads {
    /// The environment with the tags. `report_tag`: what the VM calls when an object with a tag is gone.
    pub fn tag_environment(
        &self,
        env: JniEnvironment,
        report_tag: ti::JvmtiObjectFreeFn,
    ) -> Option<Jvmti> {
        *self.tags.get_or_init(|| {
            let tags = env.vm()?.new_tool_environment().ok()?;
            let mut wanted = ti::jvmtiCapabilities::default();
            wanted.set_can_generate_object_free_events(true);
            let mut callbacks = ti::jvmtiEventCallbacks::default();
            callbacks.ObjectFree = Some(report_tag);
            let is_ready = tags.add_capabilities(&wanted).is_ok()
                && tags.set_callbacks(&callbacks).is_ok()
                && tags.enable_event(ti::JVMTI_EVENT_OBJECT_FREE).is_ok();
            if !is_ready {
                tags.dispose_environment();
            }
            is_ready.then_some(tags)
        })
    }

    /// Counts `object`, a class or a loader, as unloaded in this context and type once the VM reports it.
    pub fn follow_object(
        &self,
        core: &AgentCore,
        (tags, object): (Jvmti, jobject),
        counter: (ContextId, EventTypeId),
        bytes: u32,
    ) {
        if let Some(index) = self.find_or_add_index(core, counter) {
            // A class without a tag is taken for living.
            let _ = tags.set_tag(object, i64::from(index + 1) << 32 | i64::from(bytes));
        }
    }

    /// As [`ClassUnloads::follow_object`], if no thread has followed the loader before. Returns whether it was the first.
    pub fn follow_loader(
        &self,
        core: &AgentCore,
        (tags, loader): (Jvmti, jobject),
        counter: (ContextId, EventTypeId),
    ) -> bool {
        let _first_tag = self.first_tag.lock();
        let is_first = tags.get_tag(loader) == Ok(0);
        if is_first {
            self.follow_object(core, (tags, loader), counter, 0);
        }
        is_first
    }

    /// The VM has unloaded the class or loader with this tag.
    pub fn count_unload(&self, tag: i64) {
        let index = (tag >> 32).checked_sub(1);
        let counter = index
            .and_then(|index| usize::try_from(index).ok())
            .and_then(|index| self.find_counter(index));
        if let Some(counter) = counter {
            // Several threads may report tags. The log is little-endian, as are the systems that the agent runs on.
            counter.count.fetch_add(1, Ordering::Relaxed);
            counter
                .value
                .fetch_add(tag as u64 & u64::from(u32::MAX), Ordering::Relaxed);
        }
    }

    /// The current thread is about to define a class with so many bytes.
    pub fn note_class_bytes(&self, class: ArrivingClassKey, bytes: u32) {
        self.arriving.lock().add_class(class, bytes);
    }

    /// The bytes of a class that the current thread has defined.
    pub fn take_class_bytes(&self, class: ArrivingClassKey) -> Option<u32> {
        let arrived = self.arriving.lock().bytes.remove(&class);
        arrived.map(|class| class.bytes)
    }

    /// Deletes all tags, when the agent leaves the VM.
    pub fn release_tags(&self) {
        if let Some(Some(tags)) = self.tags.get() {
            tags.dispose_environment();
        }
    }

    fn find_or_add_index(
        &self,
        core: &AgentCore,
        counter: (ContextId, EventTypeId),
    ) -> Option<u32> {
        let mut indices = self.indices.lock();
        if let Some(index) = indices.by_type.get(&counter) {
            return Some(*index);
        }
        let index = indices.by_type.len();
        let (block, _) = locate_counter(index);
        let slot = self.blocks.get(block)?;
        if slot.get().is_none() {
            let added = core
                .log
                .add_event_counters(ThreadId::default(), block_size(block) as u32)
                .ok()?;
            #[allow(unsafe_code, reason = "counters in the log's mapped pages")]
            // SAFETY: the block is kept as long as the agent, and `count_unload` is called only while there is an agent.
            let counters = unsafe { added.as_static() };
            indices.blocks.push(added);
            slot.set(counters).ok()?;
        }
        self.find_counter(index)?.claim(counter.0, counter.1);
        let index = index as u32;
        indices.by_type.insert(counter, index);
        Some(index)
    }

    fn find_counter(&self, index: usize) -> Option<&'static EventCounter> {
        let (block, offset) = locate_counter(index);
        self.blocks.get(block)?.get()?.get(offset)
    }
}

/// The block of a counter, and its place there.
fn locate_counter(index: usize) -> (usize, usize) {
    match (index / FIRST_COUNTERS).checked_ilog2() {
        None => (0, index),
        Some(doublings) => (
            doublings as usize + 1,
            index - (FIRST_COUNTERS << doublings),
        ),
    }
}

fn block_size(block: usize) -> usize {
    FIRST_COUNTERS << block.saturating_sub(1)
}

#[cfg(test)]
mod class_unloads_tests {
    use super::*;

    #[test]
    fn counters_fill_one_block_after_another() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(locate_counter(index), expected, "{index}");
            expected.1 += 1;
            if expected.1 == block_size(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn bytes_are_those_of_the_thread_and_the_class() {
        let unloads = ClassUnloads::default();
        unloads.note_class_bytes((1, 7), 100);
        unloads.note_class_bytes((2, 7), 200);
        // A superclass arrives in between.
        unloads.note_class_bytes((1, 8), 300);
        assert_eq!(unloads.take_class_bytes((1, 8)), Some(300));
        assert_eq!(unloads.take_class_bytes((1, 7)), Some(100));
        assert_eq!(unloads.take_class_bytes((1, 7)), None);
        assert_eq!(unloads.take_class_bytes((2, 7)), Some(200));
    }

    /// Definitions that fail leave their classes behind.
    #[test]
    fn failed_definitions_displace_no_class_of_another_thread() {
        let unloads = ClassUnloads::default();
        let failed = 2 * MAX_ARRIVING as u64;
        for name in 0..failed {
            unloads.note_class_bytes((1, name), 100);
        }
        unloads.note_class_bytes((2, 7), 200);
        unloads.note_class_bytes((1, failed), 300);
        assert_eq!(unloads.arriving.lock().bytes.len(), MAX_ARRIVING);
        assert_eq!(unloads.take_class_bytes((2, 7)), Some(200));
        assert_eq!(unloads.take_class_bytes((1, failed)), Some(300));
        assert_eq!(unloads.take_class_bytes((1, failed - 1)), Some(100));
        assert_eq!(unloads.take_class_bytes((1, 0)), None);
    }
}
