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

use lucce_callgraph::{Change, MethodId, SiteId};
use lucce_formats::Gzip;
use lucce_tracelog::{
    COMMAND, ClassId, Damage, Entry, Item, LogFile, Meta, Record, mask_arguments,
};

use crate::profile::Profile;
use crate::source::Source;

/// The fact that a file of symbols has and a log has not.
const KEY: &str = "symbols";

/// What was written.
pub struct Extract {
    /// Before and after it was packed.
    pub plain: u64,
    pub packed: u64,
    /// Where reading stopped: what follows is not in the symbols.
    pub damage: Option<Damage>,
}

impl Profile {
    /// Whether this is a file of symbols: it decodes numbers, and what happened is not in it.
    #[must_use]
    pub fn is_symbols(&self) -> bool {
        self.meta.contains_key(KEY)
    }
}

impl Source {
    /// Writes the symbols, packed. `arguments`: with the program's arguments as the log has them, and not masked.
    ///
    /// # Errors
    /// The log cannot be read, or the output not be written.
    pub fn write_symbols(&self, out: impl Write, arguments: bool) -> io::Result<Extract> {
        let named = Named::by(&self.log)?;
        let mark = Meta {
            key: KEY.into(),
            value: "without counters".into(),
        };
        let mut first = vec![mark.into()];
        first.extend(named.command.iter().map(|command| {
            let command = match arguments {
                true => command.clone(),
                false => mask_arguments(command),
            };
            Record::from(Meta {
                key: COMMAND.into(),
                value: command.into(),
            })
        }));
        let (plain, damage) = self.log.extract(&first, |entry| named.is_kept(entry))?;
        let mut counted = Counted { out, bytes: 0 };
        let mut gzip = Gzip::new(&mut counted)?;
        gzip.write_all(&plain)?;
        gzip.finish()?;
        Ok(Extract {
            plain: plain.len() as u64,
            packed: counted.bytes,
            damage,
        })
    }
}

/// What the graph names.
#[derive(Default)]
struct Named {
    sites: HashSet<SiteId>,
    methods: HashSet<MethodId>,
    classes: HashSet<ClassId>,
    /// The program and its arguments.
    command: Option<String>,
}

impl Named {
    fn by(log: &LogFile) -> io::Result<Named> {
        let mut named = Named::default();
        each(log, |record| match record {
            Record::Change(change) => named.change(change),
            Record::Meta(meta) if meta.key == COMMAND => {
                named.command = Some(meta.value.trim_end().to_owned());
            }
            _ => {}
        })?;
        each(log, |record| {
            if let Record::Method(method) = record
                && named.methods.contains(&method.id)
            {
                named.classes.insert(method.class);
            }
        })?;
        Ok(named)
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Base(_) => {}
            Change::Node(node) => {
                self.methods.insert(node.method);
            }
            Change::Transition(t) => {
                self.sites.insert(t.site);
                self.methods.extend([t.caller, t.callee]);
            }
            Change::Anchor(anchor) => {
                self.methods.insert(anchor.head);
                if let Some((_, site, caller)) = anchor.parent {
                    self.sites.insert(site);
                    self.methods.insert(caller);
                }
            }
        }
    }

    fn is_kept(&self, entry: &Entry<'_>) -> bool {
        match &entry.record {
            // It may be what a later version wants for decoding.
            None => true,
            Some(Record::Meta(meta)) => meta.key != KEY && meta.key != COMMAND,
            Some(Record::Change(_) | Record::Skipped(_) | Record::End(_)) => true,
            Some(Record::Class(class)) => self.classes.contains(&class.id),
            Some(Record::Method(method)) => self.methods.contains(&method.id),
            Some(Record::Site(site)) => self.sites.contains(&site.id),
            Some(_) => false,
        }
    }
}

/// Up to the first damage.
fn each(log: &LogFile, mut each: impl FnMut(&Record<'_>)) -> io::Result<()> {
    log.each(|item| {
        if let Ok(Item::Record(Entry {
            record: Some(record),
            ..
        })) = item
        {
            each(&record);
        }
        ControlFlow::Continue(())
    })
}

struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
