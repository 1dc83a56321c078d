//! The log as the encoder's journal: before a change is written, everything that it names is.
//!
//! Locks, in the order in which they are taken: the encoder's, the book's, the log's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use lucce_callgraph::{Change, Journal, MethodId, Refused, SiteId};
use lucce_tracelog::{
    Class, ClassId, Counters, Full, LoaderId, Method, Record, Site, SiteKind, SiteSize, ThreadId,
    Writer,
};

use crate::book::{Book, What};

/// The file and what of the book is already in it.
pub struct Log {
    state: Mutex<State>,
}

struct State {
    writer: Writer,
    classes: Bits,
    methods: Bits,
    sites: Bits,
}

impl Log {
    pub fn new(writer: Writer) -> Log {
        let state = State {
            writer,
            classes: Bits::default(),
            methods: Bits::default(),
            sites: Bits::default(),
        };
        Log {
            state: Mutex::new(state),
        }
    }

    /// # Errors
    /// The log is full.
    pub fn append<'r>(&self, record: impl Into<Record<'r>>) -> Result<(), Full> {
        self.lock().writer.append(record)
    }

    /// # Errors
    /// The log is full.
    pub fn counters(&self, thread: ThreadId, cells: u32) -> Result<Counters, Full> {
        self.lock().writer.counters(thread, cells)
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

    /// Ends the log.
    ///
    /// # Errors
    /// The disk's.
    pub fn close(&self) -> std::io::Result<()> {
        self.lock().writer.close()
    }

    pub fn bytes(&self) -> u64 {
        self.lock().writer.bytes_written()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let Some(info) = book.site(id).filter(|_| !self.sites.has(id)) else {
            return Ok(());
        };
        self.method(book, MethodId(info.method))?;
        let what = match info.what {
            What::Call => SiteKind::Call,
            What::New(of) => SiteKind::New(book.text(of).into()),
            What::Array(of) => SiteKind::Array(book.text(of).into()),
            What::Native => SiteKind::Native,
            What::Current => SiteKind::Current,
        };
        self.writer.append(Site {
            id: SiteId(id),
            method: MethodId(info.method),
            bci: info.bci,
            line: info.line,
            what,
        })?;
        self.sites.set(id);
        Ok(())
    }

    fn method(&mut self, book: &Book, id: MethodId) -> Result<(), Full> {
        let Some(info) = book.method(id.0).filter(|_| !self.methods.has(id.0)) else {
            return Ok(());
        };
        self.class(book, info.class)?;
        self.writer.append(Method {
            id,
            class: ClassId(info.class),
            name: book.text(info.name).into(),
            descriptor: book.text(info.descriptor).into(),
            access: info.access,
            lines: book.lines(info).into(),
        })?;
        self.methods.set(id.0);
        Ok(())
    }

    fn class(&mut self, book: &Book, id: u32) -> Result<(), Full> {
        let Some(info) = book.class(id).filter(|_| !self.classes.has(id)) else {
            return Ok(());
        };
        self.writer.append(Class {
            id: ClassId(id),
            loader: LoaderId(info.loader.0),
            name: external(book.text(info.name)).into(),
            source_file: info.source.map(|name| book.text(name).into()),
        })?;
        self.classes.set(id);
        Ok(())
    }
}

/// `a/b/C` as Java prints it.
pub fn external(internal: &str) -> String {
    internal.replace('/', ".")
}

/// What the encoder sees.
pub struct LogJournal {
    pub book: Arc<RwLock<Book>>,
    pub log: Arc<Log>,
}

impl Journal for LogJournal {
    fn append(&mut self, change: Change) -> Result<(), Refused> {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        self.log
            .lock()
            .change(&book, change)
            .map_err(|Full| Refused)
    }
}

/// A set of small numbers.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn has(&self, id: u32) -> bool {
        let word = self.0.get(id as usize / 64).copied().unwrap_or(0);
        word >> (id % 64) & 1 == 1
    }

    fn set(&mut self, id: u32) {
        let at = id as usize / 64;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        if let Some(word) = self.0.get_mut(at) {
            *word |= 1 << (id % 64);
        }
    }
}
