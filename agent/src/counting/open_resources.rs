//! Resources that are open, each with the context that opened it.
//!
//! The number of a resource is kept in a tag of its object (JVMTI `SetTag`), in an environment of its own. A tag keeps nothing
//! alive: the VM reports the tags of objects that it has collected.
//!
//! ```text
//! add_resource ─► open ─┬─ remove_resource: something closes it
//!                       └─ collect_resource: its object is collected, or a cleaner does the work
//! ```
//!
//! Each open resource has a counter in the log (`thread::alive_counters`), with its time and thread.

use std::collections::HashMap;
use std::sync::OnceLock;

use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_jvmti::Jvmti;
use lucce_options::kinds::open_resource_value;
use lucce_tracelog::{EventCounter, EventTypeId, ThreadId};

use crate::core::AgentCore;
use crate::memory::locks::WatchedMutex;
use crate::thread::alive_counters::{AliveCounter, AliveCounters, AliveKey, milliseconds_now};

/// Maximum number of counters: of open resources, and of contexts whose resources were collected.
const MAX_COUNTERS: usize = 1 << 20;

/// The number of a resource, which is the tag of its object; never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResourceNumber(pub i64);

/// The event types of resources of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourceTypes {
    pub open: EventTypeId,
    pub collected: EventTypeId,
    /// Only a cleaner knows the object: what the cleaner closes was never closed by the program.
    pub is_cleanable: bool,
}

/// Where a resource was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourceOrigin {
    pub context: ContextId,
    pub types: ResourceTypes,
    pub thread: ThreadId,
}

/// All resources that are open.
#[derive(Default)]
pub struct OpenResources {
    /// The environment with the tags.
    tags: OnceLock<Jvmti>,
    table: WatchedMutex<ResourceTable>,
}

struct ResourceTable {
    open: HashMap<ResourceNumber, FollowedResource>,
    last: i64,
    counters: AliveCounters,
    collected: HashMap<AliveKey, &'static EventCounter>,
    /// By the type of their openings.
    types: HashMap<EventTypeId, ResourceTypes>,
    clock: Option<EventTypeId>,
}

struct FollowedResource {
    counter: AliveCounter,
    types: ResourceTypes,
}

impl Default for ResourceTable {
    fn default() -> Self {
        ResourceTable {
            open: HashMap::new(),
            last: 0,
            counters: AliveCounters::with_capacity(MAX_COUNTERS),
            collected: HashMap::new(),
            types: HashMap::new(),
            clock: None,
        }
    }
}

impl OpenResources {
    /// Records resources from now on. `clock`: the event type of the counter with the time.
    pub fn start_recording(&self, tags: Jvmti, clock: EventTypeId) {
        self.table.lock().clock = Some(clock);
        let _ = self.tags.set(tags);
    }

    /// The VM does not report collected objects any more.
    pub fn stop_recording(&self) {
        if let Some(tags) = self.tags() {
            // Fails only if it was never enabled.
            let _ = tags.disable_event(ti::JVMTI_EVENT_OBJECT_FREE);
        }
    }

    /// The environment with the tags; `None`: resources are not recorded.
    pub fn tags(&self) -> Option<Jvmti> {
        self.tags.get().copied()
    }

    /// The number of resources that are open. `None`: resources are not recorded.
    pub fn count_open(&self) -> Option<usize> {
        self.tags().map(|_| self.table.lock().open.len())
    }

    pub fn is_open(&self, number: ResourceNumber) -> bool {
        self.table.lock().open.contains_key(&number)
    }

    /// The types of resources of a class, by the type of their openings.
    pub fn find_types(&self, opening: EventTypeId) -> Option<ResourceTypes> {
        self.table.lock().types.get(&opening).copied()
    }

    pub fn add_types(&self, opening: EventTypeId, types: ResourceTypes) {
        self.table.lock().types.insert(opening, types);
    }

    /// A resource is opened. `None`: there is no room.
    pub fn add_resource(&self, core: &AgentCore, origin: ResourceOrigin) -> Option<ResourceNumber> {
        let now = milliseconds_now();
        let value = open_resource_value(now, origin.thread.0);
        let mut table = self.table.lock();
        let table = &mut *table;
        let key = (origin.context, origin.types.open);
        let counter = table.counters.add_counter(core, key, value)?;
        table.set_clock(core, origin.context, now);
        table.last += 1;
        let number = ResourceNumber(table.last);
        let types = origin.types;
        table
            .open
            .insert(number, FollowedResource { counter, types });
        Some(number)
    }

    /// A resource is closed. Returns its types; `None`: it is not open.
    pub fn remove_resource(
        &self,
        core: &AgentCore,
        number: ResourceNumber,
    ) -> Option<ResourceTypes> {
        let mut table = self.table.lock();
        let resource = table.open.remove(&number)?;
        table.counters.remove_counter(resource.counter);
        table.set_clock(core, resource.counter.context(), milliseconds_now());
        Some(resource.types)
    }

    /// The types of an open resource.
    pub fn types_of(&self, number: ResourceNumber) -> Option<ResourceTypes> {
        let table = self.table.lock();
        table.open.get(&number).map(|resource| resource.types)
    }

    /// A resource that nothing has closed is collected. Calls no function of the VM.
    pub fn collect_resource(&self, core: &AgentCore, number: ResourceNumber) {
        let mut table = self.table.lock();
        let table = &mut *table;
        let Some(resource) = table.open.remove(&number) else {
            return;
        };
        let context = resource.counter.context();
        table.counters.remove_counter(resource.counter);
        let key = (context, resource.types.collected);
        let counter = match table.collected.get(&key) {
            Some(known) => Some(*known),
            None => table.counters.new_counter(core, key),
        };
        if let Some(counter) = counter {
            counter.count_event(0);
            table.collected.insert(key, counter);
        }
        table.set_clock(core, context, milliseconds_now());
    }
}

impl ResourceTable {
    fn set_clock(&mut self, core: &AgentCore, context: ContextId, now: u64) {
        if let Some(clock) = self.clock {
            self.counters.set_clock(core, (context, clock), now);
        }
    }
}
