//! A run's symbols: the part of a log that numbers need to be turned back into traces, and nothing else.
//!
//! ```text
//! run.lucce  ──►  "symbols" ("without counters"), the run's facts, classes, methods, sites, graph  ──►  gzip  ──►  run.lsym
//! ```
//! It is a log of the run with the run's id, so each number decodes in it as in the log. Classes, methods and sites that no
//! call of the graph names are left out: no number leads to them. Left out, too, are counters, types of events, threads, statistics,
//! warnings and what was followed. The program's arguments are masked.

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

/// The fact that a file of symbols has and a log has not.
const SYMBOLS_KEY: &str = "symbols";

/// What was written.
pub struct SymbolsExtract {
    /// Before and after it was packed.
    pub plain: u64,
    pub packed: u64,
    /// Where reading stopped: what follows is not in the symbols.
    pub damage: Option<LogDamage>,
}

impl Profile {
    /// Whether this is a file of symbols: it decodes numbers, and what happened is not in it.
    #[must_use]
    pub fn is_symbols(&self) -> bool {
        self.meta.contains_key(SYMBOLS_KEY)
    }
}

impl LogSource {
    /// Writes the symbols, packed. `arguments`: with the program's arguments as the log has them, and not masked.
    ///
    /// # Errors
    /// The log cannot be read, or the output not be written.
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

/// What the graph names.
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
            // It may be what a later version wants for decoding.
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

/// Up to the first damage.
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
