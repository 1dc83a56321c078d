//! The log as the encoder's journal: before a change is written, everything that it names is.
//!
//! Locks, in the order in which they are taken: the encoder's, the book's, the log's.

use std::mem;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use lucce_callgraph::{Change, Journal, MethodId, Refused, SiteId};
use lucce_tracelog::{
    Counters, EventCell, Full, NoRoom, Record, SiteSize, ThreadId, VmCell, Writer,
};

use crate::book::Book;
use crate::book::fate::Fate;
use crate::book::names::Told;
use crate::memory::locks::{WatchedMutex, WatchedRwLock};

/// The file and what of the book is already in it.
pub struct Log {
    state: WatchedMutex<State>,
}

struct State {
    writer: Writer,
    told: Told,
    /// The user knows that the log is full.
    full_told: bool,
}

impl Log {
    pub fn new(writer: Writer) -> Log {
        let state = State {
            writer,
            told: Told::default(),
            full_told: false,
        };
        Log {
            state: WatchedMutex::new(state),
        }
    }

    /// # Errors
    /// The log is full.
    pub fn append<'r>(&self, record: impl Into<Record<'r>>) -> Result<(), Full> {
        self.lock().writer.append(record)
    }

    /// Appends records that no other record may come between.
    ///
    /// # Errors
    /// The log is full.
    pub fn append_all(&self, records: Vec<Record<'_>>) -> Result<(), Full> {
        let mut state = self.lock();
        let mut records = records.into_iter();
        records.try_for_each(|record| state.writer.append(record))
    }

    /// As `append_all`, where another thread may not be waited for. `false`: one writes just now, or the log is full.
    pub fn try_append_all(&self, records: Vec<Record<'_>>) -> bool {
        let Some(mut state) = self.state.try_lock() else {
            return false;
        };
        let mut records = records.into_iter();
        records.all(|record| state.writer.append(record).is_ok())
    }

    /// # Errors
    /// The log is full.
    pub fn counters(&self, thread: ThreadId, cells: u32) -> Result<Counters, Full> {
        self.lock().writer.counters(thread, cells)
    }

    /// # Errors
    /// The log is full.
    pub fn event_counters(
        &self,
        thread: ThreadId,
        cells: u32,
    ) -> Result<Counters<EventCell>, Full> {
        self.lock().writer.event_counters(thread, cells)
    }

    /// # Errors
    /// The log is full.
    pub fn vm_counters(&self, cells: u32) -> Result<Counters<VmCell>, Full> {
        self.lock().writer.vm_counters(cells)
    }

    /// The size of what a `new` site allocates, and the site.
    ///
    /// # Errors
    /// The log is full.
    pub fn site_size(&self, book: &Book, site: u32, bytes: u64) -> Result<(), Full> {
        let mut state = self.lock();
        state.site(book, site)?;
        let site = SiteId(site);
        state.writer.append(SiteSize { site, bytes })
    }

    /// What has become of the file, which was made under this name.
    pub fn fate(&self, path: &Path) -> Fate {
        let (lost, file) = {
            let state = self.lock();
            (state.writer.lost(), state.writer.file())
        };
        file.map_or(Fate::Failed, |file| Fate::of(&file, path, lost))
    }

    /// Ends the log.
    ///
    /// # Errors
    /// The disk's.
    pub fn close(&self) -> std::io::Result<()> {
        self.lock().writer.close()
    }

    /// The file and how many of its bytes are a whole log: see `Writer::checkpoint`.
    ///
    /// # Errors
    /// The system's.
    pub fn checkpoint(&self) -> std::io::Result<(std::fs::File, u64)> {
        let mut state = self.lock();
        Ok((state.writer.file()?, state.writer.checkpoint()))
    }

    /// The file, to be read.
    ///
    /// # Errors
    /// The system's.
    pub fn file(&self) -> std::io::Result<std::fs::File> {
        self.lock().writer.file()
    }

    /// Records for which there was no room.
    pub fn refused(&self) -> u64 {
        self.lock().writer.refused()
    }

    /// Why something did not fit.
    pub fn no_room(&self) -> Option<NoRoom> {
        self.lock().writer.no_room()
    }

    /// True once: the user does not know yet that the log is full.
    pub fn is_to_be_told(&self) -> bool {
        !mem::replace(&mut self.lock().full_told, true)
    }

    pub fn bytes(&self) -> u64 {
        self.lock().writer.bytes_written()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn change(&mut self, book: &Book, change: Change) -> Result<(), Full> {
        match change {
            Change::Base(_) => {}
            Change::Node(node) => self.method(book, node.method)?,
            Change::Transition(transition) => {
                self.site(book, transition.site.0)?;
                self.method(book, transition.callee)?;
            }
            Change::Anchor(anchor) => {
                self.method(book, anchor.head)?;
                if let Some((_, site, _)) = anchor.parent {
                    self.site(book, site.0)?;
                }
            }
        }
        self.writer.append(change)
    }

    fn site(&mut self, book: &Book, id: u32) -> Result<(), Full> {
        let State { writer, told, .. } = self;
        told.site(book, id, &mut |record| writer.append(record))
    }

    fn method(&mut self, book: &Book, id: MethodId) -> Result<(), Full> {
        let State { writer, told, .. } = self;
        told.method(book, id, &mut |record| writer.append(record))
    }
}

/// What the encoder sees. It holds its lock meanwhile, so locks are taken in this order: the encoder's, the book's, the log's. A
/// thread that holds the book asks the encoder for nothing.
pub struct LogJournal {
    pub book: Arc<WatchedRwLock<Book>>,
    pub log: Arc<Log>,
}

impl Journal for LogJournal {
    fn append(&mut self, change: Change) -> Result<(), Refused> {
        let book = self.book.read();
        self.log
            .lock()
            .change(&book, change)
            .map_err(|Full| Refused)
    }
}
