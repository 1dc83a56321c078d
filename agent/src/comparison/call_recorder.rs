//! `calls=on`: a file beside the log with every method entry and exit.
//!
//! ```text
//! hook: entry, call, event, return ─► shadow stack: frames in between ─► ThreadCallRecord ─► Writer: run.lucce.calls
//! ```
//!
//! The record variant of the helper class reports method entries, frames that are about to call, events, and method returns.
//! Every method with code that programs enter by a call has these hooks, see
//! `lucce_instrument::jdk::roles`.
//!
//! Native frames and frames that the VM entered report nothing. The recorder reads them from the shadow stack, between the
//! frames known so far and the reporting frame. It records their entry when something happens above them. It records their
//! return, unless an exception ended the frames that they called.
//!
//! If a frame should report its return but vanished without a report, an exception ended it.
//!
//! Each thread writes its own part of the file under its own lock. Only the end of the program takes that lock as well.
//! The recorder is not optimized for speed.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};

use lucce_callgraph::{CallEdge, MethodId, SiteId};
use lucce_recording::{RecordingWriter, ThreadWriter};
use lucce_tracelog::FileLoss;

use crate::core::CallsFile;
use crate::memory::address_space::MethodOfSite;
use crate::memory::locks::{WatchedMutex, WatchedRwLock};
use crate::memory::slots::Slot;
use crate::registry::CodeRegistry;
use crate::registry::file_state::FileState;
use crate::registry::written_records::WrittenRecords;
use lucce_layout::lab_layout as layout;

/// The classes whose methods named `start` start threads.
const THREAD_CLASSES: [&str; 2] = ["java/lang/Thread", "java/lang/VirtualThread"];
/// The number of `start` methods in such a class.
const START_METHODS: usize = 2;

/// The recording of all threads.
pub struct CallRecorder {
    writer: RecordingWriter,
    path: PathBuf,
    registry: Arc<WatchedRwLock<CodeRegistry>>,
    written_records: WatchedMutex<WrittenRecords>,
    threads: WatchedMutex<Vec<Arc<WatchedMutex<ThreadCallRecord>>>>,
    /// Ids of the methods that start threads (`this` is the thread). 0: not loaded yet.
    start_methods: [AtomicU32; THREAD_CLASSES.len() * START_METHODS],
    /// Threads that were started and have not run yet.
    unclaimed_threads: WatchedMutex<Vec<Option<Arc<WatchedMutex<ThreadCallRecord>>>>>,
}

/// One thread's part of the recording.
pub struct ThreadCallRecord {
    writer: ThreadWriter,
    /// Outermost first, by address.
    frames: Vec<LiveFrame>,
}

#[derive(Clone, Copy)]
struct LiveFrame {
    slot: Slot,
    method: u32,
    /// The method's hooks report its return.
    reports_return: bool,
}

/// What a hook reports about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
enum FrameNotification {
    /// The frame is about to call.
    Call = layout::STEP_CALL,
    Event = layout::STEP_EVENT,
    /// The frame with this slot returns.
    Returned = layout::STEP_RETURNED,
    /// The frames from this slot on are gone: an exception has ended them.
    Thrown = layout::STEP_THROWN,
    /// A frame with this slot was entered.
    Entered = layout::STEP_ENTERED,
}

impl FrameNotification {
    fn from_code(number: i32) -> Option<FrameNotification> {
        const ALL: [FrameNotification; 5] = [
            FrameNotification::Call,
            FrameNotification::Event,
            FrameNotification::Returned,
            FrameNotification::Thrown,
            FrameNotification::Entered,
        ];
        ALL.into_iter().find(|what| *what as i32 == number)
    }
}

/// A frame that a hook reports.
#[derive(Clone, Copy)]
pub struct RecordedFrame {
    /// The thread's first slot.
    pub first: Slot,
    pub slot: Slot,
    pub site: u32,
}

impl CallRecorder {
    pub fn new(calls: CallsFile, registry: Arc<WatchedRwLock<CodeRegistry>>) -> CallRecorder {
        CallRecorder {
            writer: calls.writer,
            path: calls.path,
            registry,
            written_records: WatchedMutex::default(),
            threads: WatchedMutex::default(),
            start_methods: Default::default(),
            unclaimed_threads: WatchedMutex::default(),
        }
    }

    /// The state of the recording's file.
    pub fn file_state(&self) -> FileState {
        let Ok(file) = self.writer.clone_file() else {
            return FileState::Failed;
        };
        let size = file.metadata().map_or(0, |found| found.len());
        let lost = (size < self.writer.bytes()).then_some(FileLoss::Truncated);
        FileState::from_file(&file, &self.path, lost)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Remembers the method if it starts threads.
    pub fn on_method_loaded(&self, class: &str, name: &str, method: u32) {
        if THREAD_CLASSES.contains(&class) && name == "start" {
            let free = |slot: &&AtomicU32| slot.load(Ordering::Relaxed) == 0;
            if let Some(place) = self.start_methods.iter().find(free) {
                // Relaxed: a method that is not in the registry yet starts no thread yet.
                place.store(method, Ordering::Relaxed);
            }
        }
    }

    /// Whether the method starts a thread.
    fn is_thread_start(&self, method: u32) -> bool {
        let start_methods = self
            .start_methods
            .iter()
            .map(|start_methods| start_methods.load(Ordering::Relaxed));
        method != 0
            && start_methods
                .into_iter()
                .any(|start_methods| start_methods == method)
    }

    /// Begins the part of a thread whose starter is unknown.
    pub fn record_thread(&self, name: &str) -> Arc<WatchedMutex<ThreadCallRecord>> {
        self.add_thread(self.writer.start(name, None))
    }

    /// Begins the part of a thread that `parent` starts. The new thread claims the part by the returned ticket.
    pub fn record_started_thread(
        &self,
        name: &str,
        parent: &WatchedMutex<ThreadCallRecord>,
    ) -> usize {
        let child = self.writer.start(name, Some(&mut lock(parent).writer));
        let child = self.add_thread(child);
        let mut started = lock(&self.unclaimed_threads);
        started.push(Some(child));
        started.len()
    }

    /// The part that `record_started_thread` returned this ticket for.
    pub fn claim_started_thread(
        &self,
        ticket: usize,
    ) -> Option<Arc<WatchedMutex<ThreadCallRecord>>> {
        lock(&self.unclaimed_threads)
            .get_mut(ticket.wrapping_sub(1))?
            .take()
    }

    fn add_thread(&self, to: ThreadWriter) -> Arc<WatchedMutex<ThreadCallRecord>> {
        let frames = Vec::new();
        let thread = Arc::new(WatchedMutex::new(ThreadCallRecord { writer: to, frames }));
        lock(&self.threads).push(Arc::clone(&thread));
        thread
    }

    /// Records one step of a frame. `what` is the code that the helper class passes: see [`FrameNotification`]. Returns whether the
    /// frame is about to start a thread.
    pub fn record_call_step(
        &self,
        thread: &WatchedMutex<ThreadCallRecord>,
        methods: &MethodOfSite,
        what: i32,
        frame: RecordedFrame,
    ) -> bool {
        match FrameNotification::from_code(what) {
            Some(FrameNotification::Entered) => self.record_entry(thread, methods, frame),
            Some(what @ (FrameNotification::Call | FrameNotification::Event)) => {
                self.record_site(thread, methods, frame, what == FrameNotification::Event);
                return self.is_thread_start(methods.get(frame.site));
            }
            Some(FrameNotification::Returned) => self.record_return(thread, frame.slot),
            Some(FrameNotification::Thrown) => self.record_unwind(thread, frame.slot),
            None => {}
        }
        false
    }

    /// Records a call or an event at the frame's site.
    fn record_site(
        &self,
        thread: &WatchedMutex<ThreadCallRecord>,
        methods: &MethodOfSite,
        frame: RecordedFrame,
        is_event: bool,
    ) {
        let RecordedFrame { first, slot, site } = frame;
        let mut thread = lock(thread);
        let method = methods.get(site);
        if method == 0 || slot < first {
            return;
        }
        thread.end_frames_from(self, slot.above());
        if thread
            .top_frame()
            .is_some_and(|top| top.slot == slot && top.method != method)
        {
            thread.end_frames_from(self, slot);
        }
        if thread.top_frame().is_none_or(|top| top.slot != slot) {
            thread.enter_frames_below(self, methods, (first, slot));
            thread.enter_frame(self, slot, method, true);
        }
        if is_event {
            let edge = CallEdge {
                site: SiteId(site),
                caller: MethodId(method),
                callee: MethodId::EVENT,
            };
            self.write_edge_names(&thread.writer, edge);
            thread.writer.event(&self.writer, edge);
        }
    }

    /// Whether frames that are older than the hooks lie between the known frames and `slot`. Their slots hold no site.
    pub fn has_unhooked_frames(
        &self,
        thread: &WatchedMutex<ThreadCallRecord>,
        (first, slot): (Slot, Slot),
    ) -> bool {
        let top = lock(thread).frames.last().map(|live| live.slot.above());
        let mut between = top.unwrap_or(first).slots_until(slot);
        slot >= first && between.any(|at| at.site() == SiteId(0))
    }

    /// Records the entry of the method that contains the frame's site.
    fn record_entry(
        &self,
        thread: &WatchedMutex<ThreadCallRecord>,
        methods: &MethodOfSite,
        frame: RecordedFrame,
    ) {
        let RecordedFrame { first, slot, site } = frame;
        let method = methods.get(site);
        if method == 0 || slot < first {
            return;
        }
        let mut thread = lock(thread);
        thread.end_frames_from(self, slot.above());
        if thread.confirm_top_frame(slot, method) {
            return;
        }
        thread.end_frames_from(self, slot);
        thread.enter_frames_below(self, methods, (first, slot));
        thread.enter_frame(self, slot, method, true);
    }

    /// Records the return of the frame with slot `slot`.
    fn record_return(&self, thread: &WatchedMutex<ThreadCallRecord>, slot: Slot) {
        let mut thread = lock(thread);
        thread.end_frames_from(self, slot.above());
        if thread.top_frame().is_some_and(|top| top.slot == slot) {
            thread.frames.pop();
            thread.writer.exit(&self.writer);
        }
    }

    /// Ends the frames from `slot` on, which vanished without reporting their return.
    fn record_unwind(&self, thread: &WatchedMutex<ThreadCallRecord>, slot: Slot) {
        lock(thread).end_frames_from(self, slot);
    }

    /// Ends the thread's frames and flushes its part.
    pub fn end_thread(&self, thread: &Arc<WatchedMutex<ThreadCallRecord>>) {
        let mut ended = lock(thread);
        ended.end_frames_from(self, Slot::from_pointer(0));
        ended.writer.flush(&self.writer);
        drop(ended);
        lock(&self.threads).retain(|other| !Arc::ptr_eq(other, thread));
    }

    /// Ends the file with the program. Returns its size in bytes, and whether it is complete.
    pub fn finish_file(&self) -> (u64, bool) {
        let threads = mem::take(&mut *lock(&self.threads));
        for thread in threads {
            lock(&thread).writer.flush(&self.writer);
        }
        let whole = self.writer.finish();
        (self.writer.bytes(), whole)
    }

    /// Writes the site and the callee of an edge that the thread has not used yet.
    fn write_edge_names(&self, thread: &ThreadWriter, edge: CallEdge) {
        if thread.has_used_edge(edge) {
            return;
        }
        let mut written = lock(&self.written_records);
        let registry = self.registry.read();
        let to = &mut |record: lucce_tracelog::LogRecord<'_>| {
            self.writer.name(&record);
            Ok(())
        };
        // The sink never refuses.
        let _ = written.write_site(&registry, edge.site.0, to);
        let _ = written.write_method(&registry, edge.callee, to);
    }
}

impl ThreadCallRecord {
    fn top_frame(&self) -> Option<LiveFrame> {
        self.frames.last().copied()
    }

    /// Ends the innermost frames below `slot` whose slots hold a site of another method: they vanished without a report.
    fn end_stale_frames(&mut self, recorder: &CallRecorder, methods: &MethodOfSite, slot: Slot) {
        while let Some(live) = self.top_frame()
            && live.slot < slot
            && methods.get(live.slot.site().0) != live.method
        {
            self.end_frames_from(recorder, live.slot);
        }
    }

    /// Whether the innermost frame is the entered one, found on the stack earlier: before the hook at its entry could run, the VM
    /// called a class loader, whose hooks met the frame.
    fn confirm_top_frame(&mut self, slot: Slot, method: u32) -> bool {
        let met = |live: &&mut LiveFrame| {
            live.slot == slot && live.method == method && !live.reports_return
        };
        match self.frames.last_mut().filter(met) {
            Some(live) => {
                live.reports_return = true;
                true
            }
            None => false,
        }
    }

    /// Enters the frames that lie between the known frames and `slot`.
    fn enter_frames_below(
        &mut self,
        recorder: &CallRecorder,
        methods: &MethodOfSite,
        (first, slot): (Slot, Slot),
    ) {
        self.end_stale_frames(recorder, methods, slot);
        let mut between = self.top_frame().map_or(first, |top| top.slot.above());
        while between < slot {
            let method = methods.get(between.site().0);
            if method != 0 {
                self.enter_frame(recorder, between, method, false);
            }
            between = between.above();
        }
    }

    fn enter_frame(&mut self, recorder: &CallRecorder, slot: Slot, method: u32, tells: bool) {
        let callee = MethodId(method);
        let edge = match self.top_frame() {
            None => CallEdge::from_thread_entry(callee),
            Some(caller) => {
                // end_stale_frames() has made sure that the site lies in the caller.
                CallEdge {
                    site: caller.slot.site(),
                    caller: MethodId(caller.method),
                    callee,
                }
            }
        };
        recorder.write_edge_names(&self.writer, edge);
        self.writer.enter(&recorder.writer, edge);
        self.frames.push(LiveFrame {
            slot,
            method,
            reports_return: tells,
        });
    }

    /// Ends the frames from `slot` on. Frames without reports have returned, unless an exception ended what they called.
    fn end_frames_from(&mut self, recorder: &CallRecorder, slot: Slot) {
        let mut thrown = 0;
        while let Some(live) = self.frames.pop_if(|live| live.slot >= slot) {
            if live.reports_return || thrown > 0 {
                thrown += 1;
            } else {
                self.writer.exit(&recorder.writer);
            }
        }
        self.writer.unwind(&recorder.writer, thrown);
    }
}

fn lock<T>(mutex: &WatchedMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
