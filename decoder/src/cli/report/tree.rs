//! `--tree`: what calls what, as a person draws it.
//!
//! ```text
//! 100.0%  43.7 kB  app.Main.main                        calls without a branch stand in one column
//!                  app.Main.work
//!  93.7%  41.0 kB  ├─ = byte[]                          what happens in the method itself, by type
//!   6.3%   2.7 kB  └─ app.Text.of  (+12 bytes in 1 smaller)    what is below the threshold, exactly
//! ```

use std::io::{self, Write};

use lucce_decoder::escape::Text;
use lucce_decoder::{Branch, Drawing, Joined};
use serde::Serialize;

use crate::cli::compare::Told;
use crate::cli::human::human;
use crate::cli::output::{grouped, percent};
use crate::cli::style::Style;
use crate::cli::threshold::Threshold;

use super::{Args, Summed};

#[derive(Serialize)]
pub struct Drawn {
    by: String,
    /// What amounts are in; empty: they are numbers of events, or without a unit.
    amounts_in: String,
    inverted: bool,
    /// Branches with less are summed up.
    least: u64,
    /// Parents come before their children; the first is all that was drawn.
    branches: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    /// Its parent's place in the list.
    parent: Option<usize>,
    name: String,
    amount: u64,
    /// Percent of all.
    share: f64,
    /// What happened in its own code, by type; inverted: in stacks that begin here.
    own: Vec<Own>,
    /// What is in branches and types that are not drawn, and how many those are.
    rest: u64,
    small: u64,
    /// What it calls is deeper than what is drawn.
    #[serde(skip)]
    is_deepest: bool,
}

#[derive(Serialize)]
struct Own {
    r#type: Option<String>,
    amount: u64,
}

/// Percent: what is smaller is summed up if nothing else is asked for.
const SMALL: f64 = 1.0;
/// Calls, unless something else is asked for: a drawing has a column for each, and the inverted one looks at every stack
/// as often. Stacks of deep recursions have a hundred thousand.
const DEPTH: usize = 500;

impl Drawn {
    pub fn new(summed: &Summed<'_>, args: &Args, by: Told) -> Self {
        let (joined, whole) = (summed.joined, summed.whole);
        let drawing = Drawing {
            measure: summed.measure(),
            by: by.by(),
            inverted: args.inverted,
            least: least(&args.threshold, whole),
            depth: args.depth.map_or(DEPTH, |depth| depth as usize),
        };
        let branches = joined.branches(0, &drawing, |row| summed.is_wanted(row));
        let rows = branches
            .iter()
            .zip(depths(&branches))
            .map(|(branch, depth)| row(joined, branch, whole, &drawing, depth));
        Drawn {
            by: by.name(),
            amounts_in: summed.unit.to_owned(),
            inverted: args.inverted,
            least: drawing.least,
            branches: rows.collect(),
        }
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let unit = &Text(&self.amounts_in).to_string();
        let pen = Pen {
            rows: &self.branches,
            below: Below::new(&self.branches),
            inverted: self.inverted,
            unit,
            least: self.least,
            whole: self.branches.first().map_or(0, |all| all.amount),
        };
        pen.draw(out)?;
        writeln!(out)
    }
}

fn least(threshold: &Threshold, whole: u64) -> u64 {
    match threshold.is_set() {
        true => threshold.least(whole),
        false => (whole as f64 * SMALL / 100.0).ceil() as u64,
    }
}

/// How many calls lead to each branch.
fn depths(branches: &[Branch]) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(branches.len());
    for branch in branches {
        let parent = branch.parent.and_then(|parent| depths.get(parent));
        depths.push(parent.map_or(0, |depth| depth + 1));
    }
    depths
}

fn row(joined: &Joined, branch: &Branch, whole: u64, drawing: &Drawing, depth: usize) -> Row {
    let (large, small): (Vec<_>, Vec<_>) = branch
        .own
        .iter()
        .partition(|(_, amount)| *amount >= drawing.least.max(1));
    let own = large.into_iter().map(|&(what, amount)| Own {
        r#type: what.and_then(|what| joined.names.types.get(what)).cloned(),
        amount,
    });
    Row {
        parent: branch.parent,
        name: branch
            .key
            .map_or_else(|| "all".to_owned(), |key| joined.name(key)),
        amount: branch.amount,
        share: percent(branch.amount, whole),
        own: own.collect(),
        rest: small
            .iter()
            .fold(branch.rest, |sum, (_, amount)| sum.saturating_add(*amount)),
        small: branch.small.saturating_add(small.len() as u64),
        is_deepest: depth >= drawing.depth,
    }
}

impl Row {
    /// Why what is not drawn below it is not.
    fn why(&self) -> &'static str {
        match self.is_deepest {
            true => "deeper",
            false => "smaller",
        }
    }
}

/// The children of each branch, in their order.
struct Below {
    first: Vec<Option<usize>>,
    beside: Vec<Option<usize>>,
}

impl Below {
    fn new(rows: &[Row]) -> Self {
        let mut below = Below {
            first: vec![None; rows.len()],
            beside: vec![None; rows.len()],
        };
        for (at, row) in rows.iter().enumerate().rev() {
            if let Some(parent) = row.parent
                && let Some(first) = below.first.get_mut(parent)
                && let Some(beside) = below.beside.get_mut(at)
            {
                *beside = first.replace(at);
            }
        }
        below
    }

    fn of(&self, at: usize) -> impl Iterator<Item = usize> {
        let next = |list: &[Option<usize>], at: usize| list.get(at).copied().flatten();
        std::iter::successors(next(&self.first, at), move |at| next(&self.beside, *at))
    }
}

/// A line of the drawing that is not a branch.
enum Line {
    Branch(usize),
    Own(Option<String>, u64),
    Rest(u64, u64, &'static str),
}

struct Pen<'d> {
    rows: &'d [Row],
    below: Below,
    inverted: bool,
    unit: &'d str,
    least: u64,
    whole: u64,
}

impl Pen<'_> {
    fn draw(&self, out: &mut impl Write) -> io::Result<()> {
        // What is to be drawn, with the lines to its left.
        let mut open: Vec<(Line, String, &str)> = Vec::new();
        self.open_below(0, "", &mut open);
        while let Some((line, left, mark)) = open.pop() {
            match line {
                Line::Branch(at) => self.chain(at, &left, mark, &mut open, out)?,
                Line::Own(what, amount) => {
                    let what = what.map(|what| format!("= {}", Text(&what)));
                    let what = what.unwrap_or_else(|| match self.inverted {
                        true => "(stacks begin here)".to_owned(),
                        false => "(here)".to_owned(),
                    });
                    self.line(amount, &left, mark, (&what, ""), out)?;
                }
                Line::Rest(small, amount, why) => {
                    let text = format!("({} {why})", grouped(small));
                    self.line(amount, &left, mark, (&text, ""), out)?;
                }
            }
        }
        Ok(())
    }

    /// A branch, and below it in the same column what it alone calls.
    fn chain<'s>(
        &self,
        at: usize,
        left: &str,
        mark: &'s str,
        open: &mut Vec<(Line, String, &'s str)>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let Some(row) = self.rows.get(at) else {
            return Ok(());
        };
        self.line(
            row.amount,
            left,
            mark,
            (&self.called(at, row), &row.name),
            out,
        )?;
        let left = format!(
            "{left}{}",
            match mark {
                "├─ " => "│  ",
                "└─ " => "   ",
                _ => "",
            }
        );
        let style = Style::of_output();
        let (mut at, mut amount) = (at, row.amount);
        while let Some((only, row)) = self.only(at).and_then(|at| Some((at, self.rows.get(at)?))) {
            let name = self.called(only, row);
            match row.amount == amount {
                true => writeln!(out, "{:>18}  {left}{}", "", style.by_name(&row.name, name))?,
                false => self.line(row.amount, &left, "", (&name, &row.name), out)?,
            }
            (at, amount) = (only, row.amount);
        }
        self.open_below(at, &left, open);
        Ok(())
    }

    /// Its name, and what is small below it if that has no line of its own.
    fn called(&self, at: usize, row: &Row) -> String {
        let name = Text(&row.name);
        let small = grouped(row.small);
        match (row.small, self.has_branches(at)) {
            (0, _) => name.to_string(),
            (_, false) => format!("{name}  ({small} {})", row.why()),
            _ if self.only(at).is_some() => {
                let rest = human(row.rest as f64, self.unit);
                format!("{name}  (+{rest} in {small} smaller)")
            }
            _ => name.to_string(),
        }
    }

    fn has_branches(&self, at: usize) -> bool {
        let has_own = self.rows.get(at).is_some_and(|row| !row.own.is_empty());
        has_own || self.below.of(at).next().is_some()
    }

    /// The only thing below a branch, if that is another one with nearly all that it has.
    fn only(&self, at: usize) -> Option<usize> {
        let row = self.rows.get(at)?;
        let mut children = self.below.of(at);
        let first = children.next()?;
        let is_alone =
            children.next().is_none() && row.own.is_empty() && row.rest < self.least.max(1);
        is_alone.then_some(first)
    }

    fn open_below(&self, at: usize, left: &str, open: &mut Vec<(Line, String, &str)>) {
        let Some(row) = self.rows.get(at) else { return };
        let mut lines: Vec<(u64, Line)> = self
            .below
            .of(at)
            .map(|child| {
                let amount = self.rows.get(child).map_or(0, |row| row.amount);
                (amount, Line::Branch(child))
            })
            .collect();
        match self.inverted {
            true => {
                let ended = row.own.iter().map(|own| own.amount);
                let ended = ended.fold(0, u64::saturating_add);
                if ended > 0 && !lines.is_empty() {
                    lines.push((ended, Line::Own(None, ended)));
                }
            }
            false => lines.extend(
                row.own
                    .iter()
                    .map(|own| (own.amount, Line::Own(own.r#type.clone(), own.amount))),
            ),
        }
        lines.sort_by_key(|(amount, _)| std::cmp::Reverse(*amount));
        if row.small > 0 && self.has_branches(at) {
            lines.push((row.rest, Line::Rest(row.small, row.rest, row.why())));
        }
        let last = lines.len().saturating_sub(1);
        // The threads' first frames have nothing to their left.
        let is_root = at == 0;
        for (number, (_, line)) in lines.into_iter().enumerate().rev() {
            let mark = match (is_root, number == last) {
                (true, _) => "",
                (false, true) => "└─ ",
                (false, false) => "├─ ",
            };
            open.push((line, left.to_owned(), mark));
        }
    }

    fn line(
        &self,
        amount: u64,
        left: &str,
        mark: &str,
        (text, name): (&str, &str),
        out: &mut impl Write,
    ) -> io::Result<()> {
        let style = Style::of_output();
        let share = format!("{:>5.1}%", percent(amount, self.whole));
        writeln!(
            out,
            "{}  {:>10}  {left}{mark}{}",
            style.strong(share),
            human(amount as f64, self.unit),
            style.by_name(name, text)
        )
    }
}
