//! Extracts a run's symbols: the part of a log that decodes its context ids.
//!
//! ```text
//! run.lucce  ──►  "symbols" ("without counters"), the run's facts, classes, methods, sites, graph  ──►  gzip  ──►  run.lsym
//! ```
//! Symbols are a log with the run's id, so each context id decodes in them as in the log. They leave out classes, methods
//! and sites that no call of the graph names, because no context id leads to them. They also leave out counters, event
//! types, threads, statistics, warnings and sampled objects. The program's arguments are masked.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::ControlFlow;

use lucce_callgraph::{GraphChange, MethodId, SiteId};
use lucce_export::GzipWriter;
use lucce_tracelog::{
    COMMAND, ClassId, LogDamage, LogEntry, LogFile, LogItem, LogRecord, MetaRecord, mask_arguments,
};

use crate::profile::Profile;
use crate::source::LogSource;

/// The key of a fact that only symbols have.
const SYMBOLS_KEY: &str = "symbols";

/// The result of writing symbols.
pub struct SymbolsExtract {
    /// Bytes before packing.
    pub plain: u64,
    /// Bytes after packing.
    pub packed: u64,
    /// The damage at which reading stopped; the symbols lack what follows it.
    pub damage: Option<LogDamage>,
}

/// Whether this is a file of symbols: it decodes context ids and has no events.
#[must_use]
pub fn is_symbols(profile: &Profile) -> bool {
    profile.meta.contains_key(SYMBOLS_KEY)
}

impl LogSource {
    /// Writes the symbols, packed. `arguments`: whether the program's arguments stay unmasked.
    ///
    /// # Errors
    /// The log cannot be read, or the output cannot be written.
    pub fn write_symbols(&self, out: impl Write, arguments: bool) -> io::Result<SymbolsExtract> {
        let named = GraphReferences::from_log(&self.log)?;
        let mark = MetaRecord {
            key: SYMBOLS_KEY.into(),
            value: "without counters".into(),
        };
        let mut first = vec![mark.into()];
        first.extend(named.command.iter().map(|command| {
            let command = match arguments {
                true => command.clone(),
                false => mask_arguments(command),
            };
            LogRecord::from(MetaRecord {
                key: COMMAND.into(),
                value: command.into(),
            })
        }));
        let (plain, damage) = self
            .log
            .extract_records(&first, |entry| named.is_kept(entry))?;
        let mut counted = CountingWriter { out, bytes: 0 };
        let mut gzip = GzipWriter::new(&mut counted)?;
        gzip.write_all(&plain)?;
        gzip.finish()?;
        Ok(SymbolsExtract {
            plain: plain.len() as u64,
            packed: counted.bytes,
            damage,
        })
    }
}

/// The code that the graph refers to.
#[derive(Default)]
struct GraphReferences {
    sites: HashSet<SiteId>,
    methods: HashSet<MethodId>,
    classes: HashSet<ClassId>,
    /// The program and its arguments.
    command: Option<String>,
}

impl GraphReferences {
    fn from_log(log: &LogFile) -> io::Result<GraphReferences> {
        let mut named = GraphReferences::default();
        for_each_record(log, |record| match record {
            LogRecord::Change(change) => named.add_change(change),
            LogRecord::Meta(meta) if meta.key == COMMAND => {
                named.command = Some(meta.value.trim_end().to_owned());
            }
            _ => {}
        })?;
        for_each_record(log, |record| {
            if let LogRecord::Method(method) = record
                && named.methods.contains(&method.id)
            {
                named.classes.insert(method.class);
            }
        })?;
        Ok(named)
    }

    fn add_change(&mut self, change: &GraphChange) {
        match change {
            GraphChange::Base(_) => {}
            GraphChange::Node(node) => {
                self.methods.insert(node.method);
            }
            GraphChange::Transition(t) => {
                self.sites.insert(t.site);
                self.methods.extend([t.caller, t.callee]);
            }
            GraphChange::Anchor(anchor) => {
                self.methods.insert(anchor.head);
                if let Some((_, site, caller)) = anchor.parent {
                    self.sites.insert(site);
                    self.methods.insert(caller);
                }
            }
        }
    }

    fn is_kept(&self, entry: &LogEntry<'_>) -> bool {
        match &entry.record {
            // A later version of lucce may need it for decoding.
            None => true,
            Some(LogRecord::Meta(meta)) => meta.key != SYMBOLS_KEY && meta.key != COMMAND,
            Some(LogRecord::Change(_) | LogRecord::Skipped(_) | LogRecord::End(_)) => true,
            Some(LogRecord::Class(class)) => self.classes.contains(&class.id),
            Some(LogRecord::Method(method)) => self.methods.contains(&method.id),
            Some(LogRecord::Site(site)) => self.sites.contains(&site.id),
            Some(_) => false,
        }
    }
}

/// Calls `each` with each record before the first damage.
fn for_each_record(log: &LogFile, mut each: impl FnMut(&LogRecord<'_>)) -> io::Result<()> {
    log.for_each_item(|item| {
        if let Ok(LogItem::Record(LogEntry {
            record: Some(record),
            ..
        })) = item
        {
            each(&record);
        }
        ControlFlow::Continue(())
    })
}

struct CountingWriter<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
