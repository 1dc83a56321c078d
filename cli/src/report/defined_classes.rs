//! Who defines classes: the part of `--event class` before the contexts.

use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{ClassDefinitions, ClassTotals, Profile, StackFrame, sum_classes};
use serde::Serialize;

use crate::amounts::format_amount;
use crate::output::{format_plural, grouped};

/// Classes by the context that defined them and by the class of their loader.
#[derive(Serialize)]
pub(super) struct DefinedClasses {
    #[serde(flatten)]
    totals: ClassNumbers,
    definitions: Vec<ClassDefinitionRow>,
    /// Number of rows, of which the first are listed.
    #[serde(skip)]
    different: usize,
}

#[derive(Serialize)]
struct ClassNumbers {
    defined: u64,
    hidden: u64,
    generated: u64,
    bytes: u64,
    alive: u64,
    alive_bytes: u64,
    unloaded: u64,
    loaders: u64,
    loaders_alive: u64,
}

#[derive(Serialize)]
struct ClassDefinitionRow {
    id: String,
    stack: String,
    /// Null: the boot loader.
    loader: Option<String>,
    #[serde(flatten)]
    totals: ClassNumbers,
    frames: Vec<StackFrame>,
    /// The frame by which people know the context.
    #[serde(skip)]
    place: String,
}

impl DefinedClasses {
    /// `top`: maximum number of rows; 0: all.
    pub(super) fn new(profile: &Profile, rows: &[ClassDefinitions], top: usize) -> DefinedClasses {
        let top = if top == 0 { usize::MAX } else { top };
        let listed = rows.iter().take(top);
        DefinedClasses {
            totals: ClassNumbers::new(sum_classes(rows)),
            definitions: listed
                .map(|row| ClassDefinitionRow::new(profile, row))
                .collect(),
            different: rows.len(),
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        if self.totals.defined == 0 {
            return Ok(());
        }
        writeln!(out, "defined classes: {}", self.totals)?;
        for row in &self.definitions {
            let loader = row.loader.as_deref().unwrap_or("the boot loader");
            let (loader, place) = (EscapedText(loader), &row.place);
            writeln!(out, "  {}: {loader}, at {place}", row.totals)?;
        }
        let left = self.different.saturating_sub(self.definitions.len());
        if left > 0 {
            writeln!(out, "  {} more (--top 0)", grouped(left as u64))?;
        }
        writeln!(out)
    }
}

impl ClassNumbers {
    fn new(totals: ClassTotals) -> ClassNumbers {
        ClassNumbers {
            defined: totals.defined,
            hidden: totals.hidden,
            generated: totals.generated,
            bytes: totals.bytes,
            alive: totals.alive(),
            alive_bytes: totals.alive_bytes(),
            unloaded: totals.unloaded,
            loaders: totals.loaders,
            loaders_alive: totals.loaders_alive(),
        }
    }
}

/// Prints `1,200 (900 hidden), 3.1 MB; 400 alive, 800 unloaded; 12 loaders, 4 alive`.
impl std::fmt::Display for ClassNumbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [defined, alive, unloaded] =
            [self.defined, self.alive, self.unloaded].map(grouped);
        let parts = [(self.hidden, "hidden"), (self.generated, "generated")];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, word)| format!("{} {word}", grouped(count)))
            .collect();
        let of_these = match parts.is_empty() {
            true => String::new(),
            false => format!(" ({})", parts.join(", ")),
        };
        let bytes = format_amount(self.bytes as f64, "bytes");
        write!(
            f,
            "{defined}{of_these}, {bytes}; {alive} alive, {unloaded} unloaded"
        )?;
        match self.loaders {
            0 => Ok(()),
            loaders => {
                let (loaders, alive) = (format_plural(loaders, "loader"), self.loaders_alive);
                write!(f, "; {loaders}, {} alive", grouped(alive))
            }
        }
    }
}

impl ClassDefinitionRow {
    fn new(profile: &Profile, row: &ClassDefinitions) -> ClassDefinitionRow {
        let trace = &row.definition;
        ClassDefinitionRow {
            id: profile.context_number(trace.id).to_string(),
            stack: trace.stack.to_string(),
            loader: row.loader.clone(),
            totals: ClassNumbers::new(row.totals),
            frames: trace.frames.clone(),
            place: trace
                .focus_frame()
                .map_or_else(|| "an unknown place".to_owned(), StackFrame::to_string),
        }
    }
}
