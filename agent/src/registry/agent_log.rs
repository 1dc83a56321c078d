//! The event log as the journal of the context encoder.
//!
//! ```text
//! encoder ─► LogJournal ─► AgentLog ─► WrittenRecords: classes, methods and sites, once each ─► LogWriter: the file
//! ```
//!
//! Before a change of the graph, the log gets the records of everything that the change names.
//! Lock order: the encoder's lock, the code registry's, the log's.

use std::mem;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use lucce_callgraph::{GraphChange, GraphJournal, JournalError, MethodId, SiteId};
use lucce_tracelog::{
    CounterBlock, EventCounter, LogFull, LogFullCause, LogRecord, LogWriter, SiteSize, ThreadId,
    TotalCounter, VmCounter,
};

use crate::memory::locks::{WatchedMutex, WatchedRwLock};
use crate::registry::CodeRegistry;
use crate::registry::file_state::FileState;
use crate::registry::written_records::WrittenRecords;

/// The event log, with the set of registry entries that it already contains.
pub struct AgentLog {
    state: WatchedMutex<AgentLogState>,
}

struct AgentLogState {
    writer: LogWriter,
    written_records: WrittenRecords,
    /// The agent has reported that the log is full.
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

    /// Appends one record.
    ///
    /// # Errors
    /// The log is full.
    pub fn append_record<'r>(&self, record: impl Into<LogRecord<'r>>) -> Result<(), LogFull> {
        self.lock_state().writer.append(record)
    }

    /// Appends records without any other record between them.
    ///
    /// # Errors
    /// The log is full.
    pub fn append_records(&self, records: Vec<LogRecord<'_>>) -> Result<(), LogFull> {
        let mut state = self.lock_state();
        let mut records = records.into_iter();
        records.try_for_each(|record| state.writer.append(record))
    }

    /// Like `append_records`, but never waits for another thread. `false`: another thread is writing, or the log is full.
    pub fn try_append_records(&self, records: Vec<LogRecord<'_>>) -> bool {
        let Some(mut state) = self.state.try_lock() else {
            return false;
        };
        let mut records = records.into_iter();
        records.all(|record| state.writer.append(record).is_ok())
    }

    /// Adds a block of allocation counters for a thread.
    ///
    /// # Errors
    /// The log is full.
    pub fn add_counters(&self, thread: ThreadId, cells: u32) -> Result<CounterBlock, LogFull> {
        self.lock_state().writer.add_counters(thread, cells)
    }

    /// Adds a block of event counters for a thread.
    ///
    /// # Errors
    /// The log is full.
    pub fn add_event_counters(
        &self,
        thread: ThreadId,
        cells: u32,
    ) -> Result<CounterBlock<EventCounter>, LogFull> {
        self.lock_state().writer.add_event_counters(thread, cells)
    }

    /// Adds totals with these names.
    ///
    /// # Errors
    /// The log is full.
    pub fn add_totals(&self, keys: &[&str]) -> Result<CounterBlock<TotalCounter>, LogFull> {
        self.lock_state().writer.add_totals(keys)
    }

    /// Adds a block of counters for the VM's events.
    ///
    /// # Errors
    /// The log is full.
    pub fn add_vm_counters(&self, cells: u32) -> Result<CounterBlock<VmCounter>, LogFull> {
        self.lock_state().writer.add_vm_counters(cells)
    }

    /// Writes a `new` site and the size of its objects in bytes.
    ///
    /// # Errors
    /// The log is full.
    pub fn append_site_size(
        &self,
        registry: &CodeRegistry,
        site: u32,
        bytes: u64,
    ) -> Result<(), LogFull> {
        let mut state = self.lock_state();
        state.append_site(registry, site)?;
        let site = SiteId(site);
        state.writer.append(SiteSize { site, bytes })
    }

    /// The state of the log file, which was created as `path`.
    pub fn file_state(&self, path: &Path) -> FileState {
        let (lost, file) = {
            let state = self.lock_state();
            (state.writer.check_loss(), state.writer.clone_file())
        };
        file.map_or(FileState::Failed, |file| {
            FileState::from_file(&file, path, lost)
        })
    }

    /// Closes the log.
    ///
    /// # Errors
    /// The disk's error.
    pub fn close(&self) -> std::io::Result<()> {
        self.lock_state().writer.close()
    }

    /// The file, and the number of its bytes that form a complete log; see `LogWriter::checkpoint`.
    ///
    /// # Errors
    /// The system's error.
    pub fn checkpoint(&self) -> std::io::Result<(std::fs::File, u64)> {
        let mut state = self.lock_state();
        Ok((state.writer.clone_file()?, state.writer.checkpoint()))
    }

    /// A handle of the file, for reading.
    ///
    /// # Errors
    /// The system's error.
    pub fn file(&self) -> std::io::Result<std::fs::File> {
        self.lock_state().writer.clone_file()
    }

    /// The number of records that found no room.
    pub fn refused_records(&self) -> u64 {
        self.lock_state().writer.refused()
    }

    /// Why a record or block did not fit.
    pub fn no_room(&self) -> Option<LogFullCause> {
        self.lock_state().writer.full_cause()
    }

    /// Marks the full log as reported. True only for the first call.
    pub fn mark_full_reported(&self) -> bool {
        !mem::replace(&mut self.lock_state().full_reported, true)
    }

    /// The size of the log in bytes.
    pub fn written_bytes(&self) -> u64 {
        self.lock_state().writer.bytes_written()
    }

    fn lock_state(&self) -> MutexGuard<'_, AgentLogState> {
        self.state.lock()
    }
}

impl AgentLogState {
    fn append_change(
        &mut self,
        registry: &CodeRegistry,
        change: GraphChange,
    ) -> Result<(), LogFull> {
        match change {
            GraphChange::Base(_) => {}
            GraphChange::Node(node) => self.append_method(registry, node.method)?,
            GraphChange::Transition(transition) => {
                self.append_site(registry, transition.site.0)?;
                self.append_method(registry, transition.callee)?;
            }
            GraphChange::Anchor(anchor) => {
                self.append_method(registry, anchor.head)?;
                if let Some((_, site, _)) = anchor.parent {
                    self.append_site(registry, site.0)?;
                }
            }
        }
        self.writer.append(change)
    }

    fn append_site(&mut self, registry: &CodeRegistry, id: u32) -> Result<(), LogFull> {
        let AgentLogState {
            writer,
            written_records: written,
            ..
        } = self;
        written.write_site(registry, id, &mut |record| writer.append(record))
    }

    fn append_method(&mut self, registry: &CodeRegistry, id: MethodId) -> Result<(), LogFull> {
        let AgentLogState {
            writer,
            written_records: written,
            ..
        } = self;
        written.write_method(registry, id, &mut |record| writer.append(record))
    }
}

/// The journal that the encoder writes to, under the encoder's lock.
///
/// Lock order: the encoder's lock, the code registry's, the log's. A thread that holds the registry never calls the encoder.
pub struct LogJournal {
    pub registry: Arc<WatchedRwLock<CodeRegistry>>,
    pub log: Arc<AgentLog>,
}

impl GraphJournal for LogJournal {
    fn append_change(&mut self, change: GraphChange) -> Result<(), JournalError> {
        let registry = self.registry.read();
        self.log
            .lock_state()
            .append_change(&registry, change)
            .map_err(|LogFull| JournalError)
    }
}
