//! The log as the encoder's journal: before a change is written, everything that it names is.
//!
//! Locks, in the order in which they are taken: the encoder's, the book's, the log's.

use std::mem;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use lucce_callgraph::{GraphChange, GraphJournal, JournalError, MethodId, SiteId};
use lucce_tracelog::{
    CounterBlock, EventCounter, LogFull, LogFullCause, LogRecord, LogWriter, SiteSize, ThreadId,
    VmCounter,
};

use crate::memory::locks::{WatchedMutex, WatchedRwLock};
use crate::registry::CodeRegistry;
use crate::registry::file_state::FileState;
use crate::registry::written_records::WrittenRecords;

/// The file and what of the book is already in it.
pub struct AgentLog {
    state: WatchedMutex<AgentLogState>,
}

struct AgentLogState {
    writer: LogWriter,
    written_records: WrittenRecords,
    /// The user knows that the log is full.
    full_reported: bool,
}

impl AgentLog {
    pub fn new(writer: LogWriter) -> AgentLog {
        let state = AgentLogState {
            writer,
            written_records: WrittenRecords::default(),
            full_reported: false,
        };
        AgentLog {
            state: WatchedMutex::new(state),
        }
    }

    /// # Errors
    /// The log is full.
    pub fn append_record<'r>(&self, record: impl Into<LogRecord<'r>>) -> Result<(), LogFull> {
        self.lock_state().writer.append(record)
    }

    /// Appends records that no other record may come between.
    ///
    /// # Errors
    /// The log is full.
    pub fn append_records(&self, records: Vec<LogRecord<'_>>) -> Result<(), LogFull> {
        let mut state = self.lock_state();
        let mut records = records.into_iter();
        records.try_for_each(|record| state.writer.append(record))
    }

    /// As `append_all`, where another thread may not be waited for. `false`: one writes just now, or the log is full.
    pub fn try_append_records(&self, records: Vec<LogRecord<'_>>) -> bool {
        let Some(mut state) = self.state.try_lock() else {
            return false;
        };
        let mut records = records.into_iter();
        records.all(|record| state.writer.append(record).is_ok())
    }

    /// # Errors
    /// The log is full.
    pub fn add_counters(&self, thread: ThreadId, cells: u32) -> Result<CounterBlock, LogFull> {
        self.lock_state().writer.add_counters(thread, cells)
    }

    /// # Errors
    /// The log is full.
    pub fn add_event_counters(
        &self,
        thread: ThreadId,
        cells: u32,
    ) -> Result<CounterBlock<EventCounter>, LogFull> {
        self.lock_state().writer.add_event_counters(thread, cells)
    }

    /// # Errors
    /// The log is full.
    pub fn add_vm_counters(&self, cells: u32) -> Result<CounterBlock<VmCounter>, LogFull> {
        self.lock_state().writer.add_vm_counters(cells)
    }

    /// The size of what a `new` site allocates, and the site.
    ///
    /// # Errors
    /// The log is full.
    pub fn append_site_size(
        &self,
        book: &CodeRegistry,
        site: u32,
        bytes: u64,
    ) -> Result<(), LogFull> {
        let mut state = self.lock_state();
        state.append_site(book, site)?;
        let site = SiteId(site);
        state.writer.append(SiteSize { site, bytes })
    }

    /// What has become of the file, which was made under this name.
    pub fn file_state(&self, path: &Path) -> FileState {
        let (lost, file) = {
            let state = self.lock_state();
            (state.writer.check_loss(), state.writer.clone_file())
        };
        file.map_or(FileState::Failed, |file| {
            FileState::from_file(&file, path, lost)
        })
    }

    /// Ends the log.
    ///
    /// # Errors
    /// The disk's.
    pub fn close(&self) -> std::io::Result<()> {
        self.lock_state().writer.close()
    }

    /// The file and how many of its bytes are a whole log: see `Writer::checkpoint`.
    ///
    /// # Errors
    /// The system's.
    pub fn checkpoint(&self) -> std::io::Result<(std::fs::File, u64)> {
        let mut state = self.lock_state();
        Ok((state.writer.clone_file()?, state.writer.checkpoint()))
    }

    /// The file, to be read.
    ///
    /// # Errors
    /// The system's.
    pub fn file(&self) -> std::io::Result<std::fs::File> {
        self.lock_state().writer.clone_file()
    }

    /// Records for which there was no room.
    pub fn refused_records(&self) -> u64 {
        self.lock_state().writer.refused()
    }

    /// Why something did not fit.
    pub fn no_room(&self) -> Option<LogFullCause> {
        self.lock_state().writer.full_cause()
    }

    /// True once: the user does not know yet that the log is full.
    pub fn mark_full_reported(&self) -> bool {
        !mem::replace(&mut self.lock_state().full_reported, true)
    }

    pub fn written_bytes(&self) -> u64 {
        self.lock_state().writer.bytes_written()
    }

    fn lock_state(&self) -> MutexGuard<'_, AgentLogState> {
        self.state.lock()
    }
}

impl AgentLogState {
    fn append_change(&mut self, book: &CodeRegistry, change: GraphChange) -> Result<(), LogFull> {
        match change {
            GraphChange::Base(_) => {}
            GraphChange::Node(node) => self.append_method(book, node.method)?,
            GraphChange::Transition(transition) => {
                self.append_site(book, transition.site.0)?;
                self.append_method(book, transition.callee)?;
            }
            GraphChange::Anchor(anchor) => {
                self.append_method(book, anchor.head)?;
                if let Some((_, site, _)) = anchor.parent {
                    self.append_site(book, site.0)?;
                }
            }
        }
        self.writer.append(change)
    }

    fn append_site(&mut self, book: &CodeRegistry, id: u32) -> Result<(), LogFull> {
        let AgentLogState {
            writer,
            written_records: told,
            ..
        } = self;
        told.write_site(book, id, &mut |record| writer.append(record))
    }

    fn append_method(&mut self, book: &CodeRegistry, id: MethodId) -> Result<(), LogFull> {
        let AgentLogState {
            writer,
            written_records: told,
            ..
        } = self;
        told.write_method(book, id, &mut |record| writer.append(record))
    }
}

/// What the encoder sees. It holds its lock meanwhile, so locks are taken in this order: the encoder's, the book's, the log's. A
/// thread that holds the book asks the encoder for nothing.
pub struct LogJournal {
    pub registry: Arc<WatchedRwLock<CodeRegistry>>,
    pub log: Arc<AgentLog>,
}

impl GraphJournal for LogJournal {
    fn append_change(&mut self, change: GraphChange) -> Result<(), JournalError> {
        let book = self.registry.read();
        self.log
            .lock_state()
            .append_change(&book, change)
            .map_err(|LogFull| JournalError)
    }
}
