//! Who defines classes: the part of `--event class` before the contexts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{ClassDefinitions, ClassTotals, Profile, StackFrame, sum_classes};
use serde::Serialize;

use crate::amounts::{format_amount, format_estimated_bytes};
use crate::output::{format_plural, grouped};

/// Classes by the context that defined them and by the class of their loader.
#[derive(Serialize)]
pub(super) struct DefinedClasses {
    #[serde(flatten)]
    totals: ClassNumbers,
    definitions: Vec<ClassDefinitionRow>,
    /// In text, contexts of one place and loader are one row.
    #[serde(skip)]
    places: Vec<ClassPlace>,
    /// Number of rows in text, of which the first are listed.
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
    /// An estimate, of living classes with known bytes.
    metaspace_bytes: u64,
    /// The part of `alive` that `metaspace_bytes` covers.
    metaspace_classes: u64,
    unloaded: u64,
    loaders: u64,
    loaders_alive: u64,
}

#[derive(Serialize)]
struct ClassDefinitionRow {
    id: String,
    stack: String,
    loader: String,
    #[serde(flatten)]
    totals: ClassNumbers,
    frames: Vec<StackFrame>,
}

/// Classes of one place in own code, as text.
struct ClassPlace {
    loader: String,
    place: String,
    totals: ClassTotals,
}

impl DefinedClasses {
    /// `top`: maximum number of rows; 0: all.
    pub(super) fn new(profile: &Profile, rows: &[ClassDefinitions], top: usize) -> DefinedClasses {
        let top = if top == 0 { usize::MAX } else { top };
        let listed = rows.iter().take(top);
        let mut places = sum_places(rows);
        let different = places.len();
        places.truncate(top);
        DefinedClasses {
            totals: ClassNumbers::new(sum_classes(rows)),
            definitions: listed
                .map(|row| ClassDefinitionRow::new(profile, row))
                .collect(),
            places,
            different,
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        if self.totals.defined == 0 {
            return Ok(());
        }
        writeln!(out, "defined classes: {}", self.totals)?;
        for row in &self.places {
            let (loader, place) = (EscapedText(&row.loader), &row.place);
            let totals = ClassNumbers::new(row.totals);
            writeln!(out, "  {totals}: {loader}, at {place}")?;
        }
        let left = self.different.saturating_sub(self.places.len());
        if left > 0 {
            writeln!(out, "  {} more (--top 0)", grouped(left as u64))?;
        }
        writeln!(out)
    }
}

/// Sums classes by the frame by which people know a context, and by the class of the loader. Most classes come first.
fn sum_places(rows: &[ClassDefinitions]) -> Vec<ClassPlace> {
    let mut places: BTreeMap<(String, &str), ClassTotals> = BTreeMap::new();
    for row in rows {
        let place = row.definition.place_text();
        let totals = places.entry((place, &row.loader)).or_default();
        totals.add(row.totals);
    }
    let places = places.into_iter();
    let mut places: Vec<_> = places
        .map(|((place, loader), totals)| ClassPlace {
            loader: loader.to_owned(),
            place,
            totals,
        })
        .collect();
    places.sort_by_key(|row| Reverse((row.totals.defined, row.totals.bytes)));
    places
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
            metaspace_bytes: totals.estimate_metaspace(),
            metaspace_classes: totals.alive_sized(),
            unloaded: totals.unloaded,
            loaders: totals.loaders,
            loaders_alive: totals.loaders_alive(),
        }
    }
}

/// Prints `1,200 (900 hidden), 3.1 MB; 400 alive, about 1.2 MB of metaspace of 90 of them, 800 unloaded; 12 loaders, 4 alive`.
impl std::fmt::Display for ClassNumbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [defined, alive, unloaded] = [self.defined, self.alive, self.unloaded].map(grouped);
        let parts = [(self.hidden, "hidden"), (self.generated, "generated")];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, word)| format!("{} {word}", grouped(count)))
            .collect();
        let of_these = match parts.is_empty() {
            true => String::new(),
            false => format!(" ({})", parts.join(", ")),
        };
        let bytes = match self.bytes {
            0 => String::new(),
            bytes => ", ".to_owned() + &format_amount(bytes as f64, "bytes"),
        };
        let covered = match self.metaspace_classes {
            classes if classes < self.alive => format!(" of {} of them", grouped(classes)),
            _ => String::new(),
        };
        let metaspace = match self.metaspace_bytes {
            0 => String::new(),
            bytes => {
                let bytes = format_estimated_bytes(bytes);
                format!(", about {bytes} of metaspace{covered}")
            }
        };
        write!(
            f,
            "{defined}{of_these}{bytes}; {alive} alive{metaspace}, {unloaded} unloaded"
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
        }
    }
}

#[cfg(test)]
mod defined_classes_tests {
    use super::*;

    fn print_totals(sized: u64) -> String {
        let totals = ClassTotals {
            defined: 50,
            hidden: 20,
            bytes: 10_000,
            sized,
            unloaded: 10,
            unloaded_bytes: 2_000,
            unloaded_sized: 5,
            ..ClassTotals::default()
        };
        ClassNumbers::new(totals).to_string()
    }

    /// 8,000 bytes, and 1,130 for each class that counts.
    #[test]
    fn metaspace_names_the_classes_that_it_covers() {
        assert_eq!(
            print_totals(40),
            "50 (20 hidden), 10.0 kB; 40 alive, about 47.6 kB of metaspace of 35 of them, 10 unloaded"
        );
        assert_eq!(
            print_totals(45),
            "50 (20 hidden), 10.0 kB; 40 alive, about 53.2 kB of metaspace, 10 unloaded"
        );
    }
}
