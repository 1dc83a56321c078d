//! `record=calls`: the stream of enters and exits, beside the log.
//!
//! The recording edition of the helper class tells when a method is entered, when a frame is about to
//! call, when an event happens, and when methods return. Every method with code that programs enter
//! by a call has these hooks, see `hooks::jdk::roles`. What lies between the frames that were told
//! already and the one that speaks is read from the shadow stack: natives, and frames that the VM put
//! there, which tell nothing themselves. They are entered when something happens above them, and have
//! returned unless an exception has ended what they called.
//!
//! A frame whose method tells of its return, and that is gone without having told, was ended by an
//! exception.
//!
//! Each thread writes to its own part, under its own lock, which only the end of the program takes as
//! well. Speed is not the aim here.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};
use std::{io, mem};

use lucce_callgraph::{Edge, MethodId, SiteId};
use lucce_recording::{ThreadWriter, Writer};
use lucce_tracelog::Lost;

use crate::book::Book;
use crate::book::fate::Fate;
use crate::book::names::Told;
use crate::memory::locks::{WatchedMutex, WatchedRwLock};
use crate::memory::map::MethodOfSite;
use crate::memory::shared_layout as layout;
use crate::memory::slots::Slot;

/// In these classes methods named `start` start threads.
const STARTING: [&str; 2] = ["java/lang/Thread", "java/lang/VirtualThread"];
/// How many such methods a class has.
const STARTS: usize = 2;

/// The recording of all threads.
pub struct Recorder {
    writer: Writer,
    path: PathBuf,
    book: Arc<WatchedRwLock<Book>>,
    told: WatchedMutex<Told>,
    threads: WatchedMutex<Vec<Arc<WatchedMutex<Recorded>>>>,
    /// Methods that start threads: `this` is the thread. 0: not loaded yet.
    starting: [AtomicU32; STARTING.len() * STARTS],
    /// Threads that were started and have not run yet.
    started: WatchedMutex<Vec<Option<Arc<WatchedMutex<Recorded>>>>>,
}

/// One thread's part.
pub struct Recorded {
    to: ThreadWriter,
    /// Outermost first, by address.
    frames: Vec<Live>,
}

#[derive(Clone, Copy)]
struct Live {
    slot: Slot,
    method: u32,
    /// Its hooks say when it returns.
    tells: bool,
}

/// What the helper class tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum What {
    /// The frame is about to call.
    Call = layout::TOLD_CALL,
    Event = layout::TOLD_EVENT,
    /// The frame with this slot returns.
    Returned = layout::TOLD_RETURNED,
    /// The frames from this slot on are gone: an exception has ended them.
    Thrown = layout::TOLD_THROWN,
    /// A frame with this slot was entered.
    Entered = layout::TOLD_ENTERED,
}

impl What {
    pub fn of(number: i32) -> Option<What> {
        const ALL: [What; 5] = [
            What::Call,
            What::Event,
            What::Returned,
            What::Thrown,
            What::Entered,
        ];
        ALL.into_iter().find(|what| *what as i32 == number)
    }
}

/// The recording of a run whose log this is: its name and `.calls`.
pub fn path_beside(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(".calls");
    path.into()
}

/// A recording that no thread has written to yet.
pub struct Calls {
    writer: Writer,
    path: PathBuf,
}

impl Calls {
    /// # Errors
    /// The file cannot be made, or something has the name already.
    pub fn create(path: &Path, limit: u64) -> io::Result<Calls> {
        let writer = Writer::create(path, limit)?;
        let path = path.to_owned();
        Ok(Calls { writer, path })
    }
}

impl Recorder {
    pub fn new(calls: Calls, book: Arc<WatchedRwLock<Book>>) -> Recorder {
        Recorder {
            writer: calls.writer,
            path: calls.path,
            book,
            told: WatchedMutex::default(),
            threads: WatchedMutex::default(),
            starting: Default::default(),
            started: WatchedMutex::default(),
        }
    }

    pub fn fate(&self) -> Fate {
        let Ok(file) = self.writer.file() else {
            return Fate::Failed;
        };
        let size = file.metadata().map_or(0, |found| found.len());
        let lost = (size < self.writer.bytes()).then_some(Lost::Truncated);
        Fate::of(&file, &self.path, lost)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A method is loaded.
    pub fn loaded(&self, class: &str, name: &str, method: u32) {
        if STARTING.contains(&class) && name == "start" {
            let free = |known: &&AtomicU32| known.load(Ordering::Relaxed) == 0;
            if let Some(place) = self.starting.iter().find(free) {
                // Relaxed: a method that is not known yet starts no thread yet.
                place.store(method, Ordering::Relaxed);
            }
        }
    }

    /// Whether the method starts a thread.
    pub fn starts(&self, method: u32) -> bool {
        let known = self
            .starting
            .iter()
            .map(|known| known.load(Ordering::Relaxed));
        method != 0 && known.into_iter().any(|known| known == method)
    }

    /// A thread's part, whichever thread started it.
    pub fn thread(&self, name: &str) -> Arc<WatchedMutex<Recorded>> {
        self.add(self.writer.start(name, None))
    }

    /// `parent` starts a thread: a ticket by which that thread finds its part.
    pub fn start(&self, name: &str, parent: &WatchedMutex<Recorded>) -> usize {
        let child = self.writer.start(name, Some(&mut lock(parent).to));
        let child = self.add(child);
        let mut started = lock(&self.started);
        started.push(Some(child));
        started.len()
    }

    /// The part that [`start`](Self::start) gave the ticket for.
    pub fn claim(&self, ticket: usize) -> Option<Arc<WatchedMutex<Recorded>>> {
        lock(&self.started).get_mut(ticket.wrapping_sub(1))?.take()
    }

    fn add(&self, to: ThreadWriter) -> Arc<WatchedMutex<Recorded>> {
        let frames = Vec::new();
        let thread = Arc::new(WatchedMutex::new(Recorded { to, frames }));
        lock(&self.threads).push(Arc::clone(&thread));
        thread
    }

    /// `site` is in the frame with slot `slot`; the thread's first slot is `first`.
    pub fn at(
        &self,
        thread: &WatchedMutex<Recorded>,
        methods: &MethodOfSite,
        (first, slot, site): (Slot, Slot, u32),
        is_event: bool,
    ) {
        let mut thread = lock(thread);
        let method = methods.get(site);
        if method == 0 || slot < first {
            return;
        }
        thread.end(self, slot.above());
        if thread
            .top()
            .is_some_and(|top| top.slot == slot && top.method != method)
        {
            thread.end(self, slot);
        }
        if thread.top().is_none_or(|top| top.slot != slot) {
            thread.reach(self, methods, (first, slot));
            thread.enter(self, slot, method, true);
        }
        if is_event {
            let edge = Edge {
                site: SiteId(site),
                caller: MethodId(method),
                callee: MethodId::EVENT,
            };
            self.tell(&thread.to, edge);
            thread.to.event(&self.writer, edge);
        }
    }

    /// Whether frames that are older than the hooks, whose slots hold no site, lie between those that
    /// are known and `slot`.
    pub fn meets_bare(&self, thread: &WatchedMutex<Recorded>, (first, slot): (Slot, Slot)) -> bool {
        let top = lock(thread).frames.last().map(|live| live.slot.above());
        let mut between = top.unwrap_or(first).until(slot);
        slot >= first && between.any(|at| at.site() == SiteId(0))
    }

    /// The method that `site` lies in was entered, its slot is `slot`; the thread's first one is `first`.
    pub fn entered(
        &self,
        thread: &WatchedMutex<Recorded>,
        methods: &MethodOfSite,
        (first, slot, site): (Slot, Slot, u32),
    ) {
        let method = methods.get(site);
        if method == 0 || slot < first {
            return;
        }
        let mut thread = lock(thread);
        thread.end(self, slot.above());
        if thread.was_met(slot, method) {
            return;
        }
        thread.end(self, slot);
        thread.reach(self, methods, (first, slot));
        thread.enter(self, slot, method, true);
    }

    /// The frame with slot `slot` returns.
    pub fn returned(&self, thread: &WatchedMutex<Recorded>, slot: Slot) {
        let mut thread = lock(thread);
        thread.end(self, slot.above());
        if thread.top().is_some_and(|top| top.slot == slot) {
            thread.frames.pop();
            thread.to.exit(&self.writer);
        }
    }

    /// The frames with slots from `slot` on are gone, and have not said that they return.
    pub fn ended(&self, thread: &WatchedMutex<Recorded>, slot: Slot) {
        lock(thread).end(self, slot);
    }

    /// The thread has ended.
    pub fn left(&self, thread: &Arc<WatchedMutex<Recorded>>) {
        let mut ended = lock(thread);
        ended.end(self, Slot::at(0));
        ended.to.flush(&self.writer);
        drop(ended);
        lock(&self.threads).retain(|known| !Arc::ptr_eq(known, thread));
    }

    /// The program has ended: its size, and whether all of it is there.
    pub fn finish(&self) -> (u64, bool) {
        let threads = mem::take(&mut *lock(&self.threads));
        for thread in threads {
            lock(&thread).to.flush(&self.writer);
        }
        let whole = self.writer.finish();
        (self.writer.bytes(), whole)
    }

    /// Names what an edge is made of.
    fn tell(&self, thread: &ThreadWriter, edge: Edge) {
        if thread.knows(edge) {
            return;
        }
        let mut told = lock(&self.told);
        let book = self.book.read();
        let to = &mut |record: lucce_tracelog::Record<'_>| {
            self.writer.name(&record);
            Ok(())
        };
        // The sink never refuses.
        let _ = told.site(&book, edge.site.0, to);
        let _ = told.method(&book, edge.callee, to);
    }
}

impl Recorded {
    fn top(&self) -> Option<Live> {
        self.frames.last().copied()
    }

    /// Frames below `slot` whose slots hold another method's site have ended without telling: the
    /// innermost ones, if any.
    fn check(&mut self, recorder: &Recorder, methods: &MethodOfSite, slot: Slot) {
        while let Some(live) = self.top()
            && live.slot < slot
            && methods.get(live.slot.site().0) != live.method
        {
            self.end(recorder, live.slot);
        }
    }

    /// Whether the innermost frame is the one that was entered: the VM called a class loader before its
    /// hook could run, which met the frame on the stack.
    fn was_met(&mut self, slot: Slot, method: u32) -> bool {
        let met = |live: &&mut Live| live.slot == slot && live.method == method && !live.tells;
        match self.frames.last_mut().filter(met) {
            Some(live) => {
                live.tells = true;
                true
            }
            None => false,
        }
    }

    /// Enters what lies between the frames that are known and `slot`.
    fn reach(&mut self, recorder: &Recorder, methods: &MethodOfSite, (first, slot): (Slot, Slot)) {
        self.check(recorder, methods, slot);
        let mut between = self.top().map_or(first, |top| top.slot.above());
        while between < slot {
            let method = methods.get(between.site().0);
            if method != 0 {
                self.enter(recorder, between, method, false);
            }
            between = between.above();
        }
    }

    fn enter(&mut self, recorder: &Recorder, slot: Slot, method: u32, tells: bool) {
        let callee = MethodId(method);
        let edge = match self.top() {
            None => Edge::entry(callee),
            Some(caller) => {
                // check() saw to it that the site is one of the caller's.
                Edge {
                    site: caller.slot.site(),
                    caller: MethodId(caller.method),
                    callee,
                }
            }
        };
        recorder.tell(&self.to, edge);
        self.to.enter(&recorder.writer, edge);
        self.frames.push(Live {
            slot,
            method,
            tells,
        });
    }

    /// The frames with slots from `slot` on are gone: those that tell nothing have returned, unless an
    /// exception came out of what they called.
    fn end(&mut self, recorder: &Recorder, slot: Slot) {
        let mut thrown = 0;
        while let Some(live) = self.frames.pop_if(|live| live.slot >= slot) {
            if live.tells || thrown > 0 {
                thrown += 1;
            } else {
                self.to.exit(&recorder.writer);
            }
        }
        self.to.unwind(&recorder.writer, thrown);
    }
}

fn lock<T>(mutex: &WatchedMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
