//! What a thread waits for: kept from the begin of the wait to its end.

use std::ptr;

use lucce_callgraph::ContextId;
use lucce_tracelog::EventTypeId;

use crate::events::lock::ENTER;
use crate::thread::event_kind::EventKind;

/// The object that a thread waits for, and since when.
#[derive(Clone, Copy)]
pub struct HooklessWait {
    pub number: ContextId,
    pub event: EventTypeId,
    pub since: u64,
}

/// The waits of one thread. A wait for a notification may end while the thread enters the monitor again.
#[derive(Default)]
pub struct HooklessWaits {
    enter: Option<HooklessWait>,
    wait: Option<HooklessWait>,
}

impl HooklessWaits {
    pub fn is_empty(&self) -> bool {
        self.enter.is_none() && self.wait.is_none()
    }

    /// The thread's wait of this kind: [`ENTER`], or for a notification.
    pub fn wait_of_kind(&mut self, kind: &EventKind) -> &mut Option<HooklessWait> {
        match ptr::eq(kind, &ENTER) {
            true => &mut self.enter,
            false => &mut self.wait,
        }
    }
}
