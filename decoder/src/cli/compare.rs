//! Runs side by side: what `diff` and `gate` share.
//!
//! Each side has one run or several. Amounts of one thing in the runs of one side differ by chance (which
//! thread loads a class, when a table grows): the widest spread of a side is its noise. A change stands out
//! if every new run lies beyond every old one, by more than the noise.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use lucce_decoder::{By, Joined, Key, Measure, Profile};
use regex_lite::Regex;

use super::classes::Classes;
use super::progress::Bar;
use super::tagged::Tagged;
use super::{End, Failure, Weigh, about, ending};

/// What changes are told by.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Told {
    /// By stack trace, line by line, and type
    Context,
    /// By type
    Type,
    /// By class, with all that it calls
    Class,
    /// By package, with all that it calls
    Package,
    /// By method, with all that it calls
    Method,
    /// By line, with all that it calls
    Line,
    /// By thread
    Thread,
    /// By tag of the program's own (CallContext.tag)
    Tag,
}

impl Told {
    /// As on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub fn by(self) -> By {
        match self {
            Told::Context => By::Context,
            Told::Type => By::Type,
            Told::Class => By::Class,
            Told::Package => By::Package,
            Told::Method => By::Method,
            Told::Line => By::Line,
            Told::Thread => By::Thread,
            Told::Tag => By::Tag,
        }
    }
}

/// Which events, and what they are compared by.
#[derive(clap::Args)]
pub struct What {
    /// Events of this kind; else allocations, or what there is most of
    #[arg(long, value_name = "KIND")]
    pub event: Option<String>,
    /// Else the sum of values, or how many events there are if they have none
    #[arg(long, value_enum)]
    pub value: Option<Weigh>,
    /// Divided by the number of events of this kind: bytes per request, if the program counts requests by
    /// CallContext.event
    #[arg(long, value_name = "KIND")]
    pub per: Option<String>,
    /// Only stacks with a method that matches, as package.Class.method
    #[arg(long, value_name = "REGEX")]
    pub through: Option<Regex>,
    #[command(flatten)]
    pub tagged: Tagged,
    #[command(flatten)]
    pub classes: Classes,
}

/// All runs, and which of them are old.
pub struct Compared {
    pub joined: Joined,
    /// How many of the runs are old; they come first.
    pub old: usize,
    /// What amounts are in.
    pub unit: String,
    pub kind: String,
    measure: Measure,
    number: u32,
    /// By run: amounts are divided by it.
    per: Vec<f64>,
    /// By node: whether the path has a method that was asked for.
    through: Option<Vec<bool>>,
    pub end: End,
}

/// How much of one thing there is on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub key: Option<Key>,
    /// By run.
    pub old: Vec<f64>,
    pub new: Vec<f64>,
}

impl Compared {
    /// Reads all logs.
    pub fn open(old: &[PathBuf], new: &[PathBuf], what: &What) -> Result<Compared, Failure> {
        let mut joined = Joined::default();
        let mut end = End::Fine;
        let mut main = None;
        for path in old.iter().chain(new) {
            let mut profile = what.classes.open(path)?;
            what.tagged.apply(path, &mut profile)?;
            main = Some(kind(path, &profile, what.event.as_deref(), main)?);
            let bar = Bar::new("decoding", profile.events.by_context().count() as u64);
            joined.add(&profile, &|more| bar.tick(more));
            drop(bar);
            end = ending(path, profile.damage.as_ref(), end);
        }
        let (kind, unit) = main.unwrap_or_default();
        let Some(number) = joined.kind(&kind) else {
            return Err(Failure::Usage(format!(
                "none of the logs has events of kind {kind:?}"
            )));
        };
        let through = what.through.as_ref();
        let mut compared = Compared {
            through: through.map(|regex| joined.through(|method| regex.is_match(method))),
            old: old.len(),
            measure: Measure::Value,
            per: vec![1.0; joined.runs.len()],
            joined,
            unit,
            kind,
            number,
            end,
        };
        compared.weigh(what.value);
        compared.divide(old.iter().chain(new), what.per.as_deref())?;
        Ok(compared)
    }

    fn weigh(&mut self, value: Option<Weigh>) {
        let is_count = match value {
            Some(Weigh::Count) => true,
            Some(Weigh::Sum) => false,
            None => {
                self.unit.is_empty()
                    && (0..self.joined.runs.len()).all(|run| self.total(run) == 0.0)
            }
        };
        if is_count {
            self.measure = Measure::Count;
            self.unit = String::new();
        }
    }

    fn divide<'a>(
        &mut self,
        files: impl Iterator<Item = &'a PathBuf>,
        per: Option<&str>,
    ) -> Result<(), Failure> {
        let Some(per) = per else { return Ok(()) };
        let kind = self.joined.kind(per);
        for (run, path) in files.enumerate() {
            let own = self.joined.counted(run, |row| Some(row.kind) == kind);
            let count = own.map(|row| row.count).fold(0, u64::saturating_add);
            if count == 0 {
                return Err(Failure::Usage(about(
                    path,
                    format_args!("no events of kind {per:?} to divide by"),
                )));
            }
            if let Some(divisor) = self.per.get_mut(run) {
                *divisor = count as f64;
            }
        }
        Ok(())
    }

    fn sums(&self, run: usize, told: Told) -> HashMap<Key, u64> {
        let through = self.through.as_deref();
        let is_through = |node: lucce_decoder::NodeId| {
            through.is_none_or(|through| through.get(node.0 as usize).copied().unwrap_or_default())
        };
        self.joined.sums(run, self.measure, told.by(), |row| {
            row.kind == self.number && is_through(row.node)
        })
    }

    fn total(&self, run: usize) -> f64 {
        let sum = self
            .sums(run, Told::Type)
            .values()
            .fold(0, |sum: u64, one| sum.saturating_add(*one));
        sum as f64 / self.per.get(run).copied().unwrap_or(1.0)
    }

    /// All events.
    pub fn whole(&self) -> Change {
        let totals: Vec<f64> = (0..self.joined.runs.len())
            .map(|run| self.total(run))
            .collect();
        Change::new(None, totals, self.old)
    }

    /// What differs, the largest change first.
    pub fn changes(&self, told: Told) -> Vec<Change> {
        let runs = self.joined.runs.len();
        let mut rows: HashMap<Key, Vec<f64>> = HashMap::new();
        for (run, per) in self.per.iter().enumerate() {
            for (key, amount) in self.sums(run, told) {
                let row = rows.entry(key).or_insert_with(|| vec![0.0; runs]);
                if let Some(cell) = row.get_mut(run) {
                    *cell = amount as f64 / per;
                }
            }
        }
        let rows = rows
            .into_iter()
            .map(|(key, row)| Change::new(Some(key), row, self.old));
        let mut changes: Vec<_> = rows.filter(|change| change.by() != 0.0).collect();
        changes.sort_by(|a, b| larger(b, a).then(a.key.cmp(&b.key)));
        changes
    }
}

fn larger(a: &Change, b: &Change) -> Ordering {
    a.by().abs().total_cmp(&b.by().abs())
}

/// The kind that is compared, and its unit: what is asked for, else what the first log has most of.
fn kind(
    path: &Path,
    profile: &Profile,
    asked: Option<&str>,
    known: Option<(String, String)>,
) -> Result<(String, String), Failure> {
    let has = |name: &str| profile.kinds().into_iter().find(|kind| kind.name == name);
    match (known, asked) {
        (Some(known), _) if !known.1.is_empty() => Ok(known),
        (Some((name, _)), _) => Ok((
            name.clone(),
            has(&name).map_or_else(String::new, |kind| kind.unit),
        )),
        (None, Some(asked)) => Ok((
            asked.to_owned(),
            has(asked).map_or_else(String::new, |kind| kind.unit),
        )),
        (None, None) => {
            super::kind(path, profile, None, End::Fine).map(|kind| (kind.name, kind.unit))
        }
    }
}

impl Change {
    fn new(key: Option<Key>, mut amounts: Vec<f64>, old: usize) -> Change {
        let new = amounts.split_off(old.min(amounts.len()));
        Change {
            key,
            old: amounts,
            new,
        }
    }

    pub fn means(&self) -> (f64, f64) {
        (mean(&self.old), mean(&self.new))
    }

    /// From the mean of the old runs to that of the new ones.
    pub fn by(&self) -> f64 {
        let (old, new) = self.means();
        new - old
    }

    /// How far runs of one side lie apart.
    pub fn noise(&self) -> f64 {
        spread(&self.old).max(spread(&self.new))
    }

    /// How many of a side's runs are fewest.
    fn is_noise_known(&self) -> bool {
        self.old.len() > 1 || self.new.len() > 1
    }

    /// None: there is one run on each side, so it is not known.
    pub fn stands_out(&self) -> Option<bool> {
        let gap = (least(&self.new) - most(&self.old)).max(least(&self.old) - most(&self.new));
        self.is_noise_known().then(|| gap > self.noise())
    }
}

fn mean(amounts: &[f64]) -> f64 {
    match amounts.len() {
        0 => 0.0,
        runs => amounts.iter().sum::<f64>() / runs as f64,
    }
}

fn least(amounts: &[f64]) -> f64 {
    amounts.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(amounts: &[f64]) -> f64 {
    amounts.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn spread(amounts: &[f64]) -> f64 {
    match amounts.len() {
        0 => 0.0,
        _ => most(amounts) - least(amounts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: &[f64], new: &[f64]) -> Change {
        Change::new(None, [old, new].concat(), old.len())
    }

    #[test]
    fn what_lies_beyond_the_noise_stands_out() {
        assert_eq!(change(&[100.0], &[200.0]).stands_out(), None);
        assert_eq!(
            change(&[100.0, 101.0], &[110.0, 111.0]).stands_out(),
            Some(true)
        );
        assert_eq!(change(&[100.0, 101.0], &[90.0]).stands_out(), Some(true));
        assert_eq!(
            change(&[100.0, 104.0], &[106.0, 107.0]).stands_out(),
            Some(false)
        );
        assert_eq!(
            change(&[100.0, 104.0], &[103.0, 120.0]).stands_out(),
            Some(false)
        );
        assert_eq!(change(&[0.0, 0.0], &[1.0, 1.0]).stands_out(), Some(true));
        assert_eq!(change(&[5.0, 5.0], &[5.0, 5.0]).stands_out(), Some(false));
    }

    #[test]
    fn changes_are_those_of_the_means() {
        let change = change(&[1.0, 3.0], &[5.0]);
        assert_eq!(
            (change.means(), change.by(), change.noise()),
            ((2.0, 5.0), 3.0, 2.0)
        );
    }
}
