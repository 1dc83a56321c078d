//! Draws the call tree (`--tree`).
//!
//! ```text
//! 100.0%  43.7 kB  app.Main.main                        calls without a branch share a column
//!                  app.Main.work
//!  93.7%  41.0 kB  ├─ = byte[]                          events in the method itself, by type
//!   6.3%   2.7 kB  └─ app.Text.of  (+12 bytes in 1 smaller)    the exact sum below the threshold
//! ```

use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{CallTreeBranch, CallTreeOptions, FrameDisplay, GroupBy, MergedProfile};
use serde::Serialize;

use crate::amounts::AmountFormat;
use crate::output::{grouped, percent_of};
use crate::style::TerminalStyle;
use crate::threshold::ThresholdArgs;

use super::{ReportArgs, ReportSums};

#[derive(Serialize)]
pub struct ReportTree {
    by: &'static str,
    /// The unit of amounts; empty: numbers of events, or no unit.
    amounts_in: String,
    #[serde(skip)]
    amounts: AmountFormat,
    inverted: bool,
    /// The minimum amount of a branch; smaller ones are summed up.
    least: u64,
    /// Whether only own code has branches.
    #[serde(skip)]
    pub is_folded: bool,
    /// Parents precede their children; the first is the root, with the total.
    branches: Vec<TreeRow>,
}

#[derive(Serialize)]
struct TreeRow {
    /// The index of its parent.
    parent: Option<usize>,
    name: String,
    amount: u64,
    /// Percentage of the total.
    share: f64,
    /// Amounts of its own code by type; inverted: of stacks that begin here.
    own: Vec<OwnAmount>,
    /// The sum of omitted branches and types; the next field: their number.
    rest: u64,
    small: u64,
    /// Whether its callees are below the maximum depth.
    #[serde(skip)]
    is_deepest: bool,
}

#[derive(Serialize)]
struct OwnAmount {
    r#type: Option<String>,
    amount: u64,
}

/// Default of `--min-share` in percent.
const DEFAULT_MIN_SHARE_PERCENT: f64 = 1.0;
/// Default of `--depth`. A drawing has a column for each call, and the inverted tree walks every stack to this depth.
/// Stacks of deep recursions have a hundred thousand frames.
const DEFAULT_MAX_DEPTH: usize = 500;

impl ReportTree {
    pub fn new(summed: &ReportSums<'_>, args: &ReportArgs, by: GroupBy) -> Self {
        let (joined, whole) = (summed.joined, summed.whole);
        let max_frames = match args.frame_args.frames {
            FrameDisplay::AtMost(most) => most,
            FrameDisplay::Focused | FrameDisplay::All => DEFAULT_MAX_DEPTH,
        };
        let drawing = CallTreeOptions {
            measure: summed.value,
            group_by: by,
            own_only: args.is_focused() && joined.names.is_own_code_mixed(),
            inverted: args.inverted,
            min_amount: min_amount(&args.threshold, whole),
            depth: args.depth.map_or(max_frames, |depth| depth as usize),
        };
        let branches = joined.build_call_tree(0, &drawing, |row| summed.is_wanted(row));
        let rows = branches
            .iter()
            .zip(branch_depths(&branches))
            .map(|(branch, depth)| build_row(joined, branch, whole, &drawing, depth));
        ReportTree {
            by: by.name(),
            amounts_in: summed.unit.to_owned(),
            amounts: summed.amounts,
            inverted: args.inverted,
            least: drawing.min_amount,
            is_folded: drawing.own_only,
            branches: rows.collect(),
        }
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let unit = &EscapedText(&self.amounts_in).to_string();
        let pen = TreeWriter {
            rows: &self.branches,
            children: ChildIndex::new(&self.branches),
            inverted: self.inverted,
            unit,
            amounts: self.amounts,
            least: self.least,
            whole: self.branches.first().map_or(0, |all| all.amount),
        };
        pen.write_tree(out)
    }
}

fn min_amount(threshold: &ThresholdArgs, whole: u64) -> u64 {
    match threshold.is_set() {
        true => threshold.min_amount(whole),
        false => (whole as f64 * DEFAULT_MIN_SHARE_PERCENT / 100.0).ceil() as u64,
    }
}

/// The depth of each branch.
fn branch_depths(branches: &[CallTreeBranch]) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(branches.len());
    for branch in branches {
        let parent = branch.parent.and_then(|parent| depths.get(parent));
        depths.push(parent.map_or(0, |depth| depth + 1));
    }
    depths
}

fn build_row(
    joined: &MergedProfile,
    branch: &CallTreeBranch,
    whole: u64,
    drawing: &CallTreeOptions,
    depth: usize,
) -> TreeRow {
    let (large, small): (Vec<_>, Vec<_>) = branch
        .own
        .iter()
        .partition(|(_, amount)| *amount >= drawing.min_amount.max(1));
    let own = large.into_iter().map(|&(what, amount)| OwnAmount {
        r#type: what.and_then(|what| joined.names.types.get(what)).cloned(),
        amount,
    });
    TreeRow {
        parent: branch.parent,
        name: branch
            .key
            .map_or_else(|| "all".to_owned(), |key| joined.group_name(key)),
        amount: branch.amount,
        share: percent_of(branch.amount, whole),
        own: own.collect(),
        rest: small
            .iter()
            .fold(branch.rest, |sum, (_, amount)| sum.saturating_add(*amount)),
        small: branch.small.saturating_add(small.len() as u64),
        is_deepest: depth >= drawing.depth,
    }
}

impl TreeRow {
    /// Why branches below it are omitted.
    fn why_omitted(&self) -> &'static str {
        match self.is_deepest {
            true => "deeper",
            false => "smaller",
        }
    }
}

/// The children of each branch, in order.
struct ChildIndex {
    first_child: Vec<Option<usize>>,
    next_sibling: Vec<Option<usize>>,
}

impl ChildIndex {
    fn new(rows: &[TreeRow]) -> Self {
        let mut below = ChildIndex {
            first_child: vec![None; rows.len()],
            next_sibling: vec![None; rows.len()],
        };
        for (at, row) in rows.iter().enumerate().rev() {
            if let Some(parent) = row.parent
                && let Some(first) = below.first_child.get_mut(parent)
                && let Some(beside) = below.next_sibling.get_mut(at)
            {
                *beside = first.replace(at);
            }
        }
        below
    }

    fn child_rows(&self, at: usize) -> impl Iterator<Item = usize> {
        let next = |list: &[Option<usize>], at: usize| list.get(at).copied().flatten();
        std::iter::successors(next(&self.first_child, at), move |at| {
            next(&self.next_sibling, *at)
        })
    }
}

/// A line of the drawing besides branches.
enum TreeLine {
    Branch(usize),
    Own(Option<String>, u64),
    Rest(u64, u64, &'static str),
}

struct TreeWriter<'d> {
    rows: &'d [TreeRow],
    children: ChildIndex,
    inverted: bool,
    amounts: AmountFormat,
    unit: &'d str,
    least: u64,
    whole: u64,
}

impl TreeWriter<'_> {
    fn write_tree(&self, out: &mut impl Write) -> io::Result<()> {
        // Lines to be drawn, each with the vertical lines to its left.
        let mut open: Vec<(TreeLine, String, &str)> = Vec::new();
        self.push_children(0, "", &mut open);
        while let Some((line, left, mark)) = open.pop() {
            match line {
                TreeLine::Branch(at) => self.write_chain(at, &left, mark, &mut open, out)?,
                TreeLine::Own(what, amount) => {
                    let what = what.map(|what| format!("= {}", EscapedText(&what)));
                    let what = what.unwrap_or_else(|| match self.inverted {
                        true => "(stacks begin here)".to_owned(),
                        false => "(here)".to_owned(),
                    });
                    self.write_line(amount, &left, mark, (&what, ""), out)?;
                }
                TreeLine::Rest(small, amount, why) => {
                    let text = format!("({} {why})", grouped(small));
                    self.write_line(amount, &left, mark, (&text, ""), out)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a branch, and below it in the same column its only callees.
    fn write_chain<'s>(
        &self,
        at: usize,
        left: &str,
        mark: &'s str,
        open: &mut Vec<(TreeLine, String, &'s str)>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let Some(row) = self.rows.get(at) else {
            return Ok(());
        };
        self.write_line(
            row.amount,
            left,
            mark,
            (&self.format_name(at, row), &row.name),
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
        let style = TerminalStyle::for_stdout();
        let (mut at, mut amount) = (at, row.amount);
        while let Some((only, row)) = self
            .only_child(at)
            .and_then(|at| Some((at, self.rows.get(at)?)))
        {
            let name = self.format_name(only, row);
            match row.amount == amount {
                true => writeln!(
                    out,
                    "{:>18}  {left}{}",
                    "",
                    style.style_by_name(&row.name, name)
                )?,
                false => self.write_line(row.amount, &left, "", (&name, &row.name), out)?,
            }
            (at, amount) = (only, row.amount);
        }
        self.push_children(at, &left, open);
        Ok(())
    }

    /// Formats a branch's name, with the omitted sum if that has no line of its own.
    fn format_name(&self, at: usize, row: &TreeRow) -> String {
        let name = EscapedText(&row.name);
        let small = grouped(row.small);
        match (row.small, self.has_branches(at)) {
            (0, _) => name.to_string(),
            (_, false) => format!("{name}  ({small} {})", row.why_omitted()),
            _ if self.only_child(at).is_some() => {
                let rest = self.amounts.format_amount(row.rest, self.unit);
                format!("{name}  (+{rest} in {small} smaller)")
            }
            _ => name.to_string(),
        }
    }

    fn has_branches(&self, at: usize) -> bool {
        let has_own = self.rows.get(at).is_some_and(|row| !row.own.is_empty());
        has_own || self.children.child_rows(at).next().is_some()
    }

    /// The only child of a branch, if it has nearly all of the branch's amount.
    fn only_child(&self, at: usize) -> Option<usize> {
        let row = self.rows.get(at)?;
        let mut children = self.children.child_rows(at);
        let first = children.next()?;
        let is_alone =
            children.next().is_none() && row.own.is_empty() && row.rest < self.least.max(1);
        is_alone.then_some(first)
    }

    fn push_children(&self, at: usize, left: &str, open: &mut Vec<(TreeLine, String, &str)>) {
        let Some(row) = self.rows.get(at) else { return };
        let mut lines: Vec<(u64, TreeLine)> = self
            .children
            .child_rows(at)
            .map(|child| {
                let amount = self.rows.get(child).map_or(0, |row| row.amount);
                (amount, TreeLine::Branch(child))
            })
            .collect();
        match self.inverted {
            true => {
                let ended = row.own.iter().map(|own| own.amount);
                let ended = ended.fold(0, u64::saturating_add);
                if ended > 0 && !lines.is_empty() {
                    lines.push((ended, TreeLine::Own(None, ended)));
                }
            }
            false => lines.extend(
                row.own
                    .iter()
                    .map(|own| (own.amount, TreeLine::Own(own.r#type.clone(), own.amount))),
            ),
        }
        lines.sort_by_key(|(amount, _)| std::cmp::Reverse(*amount));
        if row.small > 0 && self.has_branches(at) {
            lines.push((
                row.rest,
                TreeLine::Rest(row.small, row.rest, row.why_omitted()),
            ));
        }
        let last = lines.len().saturating_sub(1);
        // The threads' first frames have no lines to their left.
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

    fn write_line(
        &self,
        amount: u64,
        left: &str,
        mark: &str,
        (text, name): (&str, &str),
        out: &mut impl Write,
    ) -> io::Result<()> {
        let style = TerminalStyle::for_stdout();
        let share = format!("{:>5.1}%", percent_of(amount, self.whole));
        writeln!(
            out,
            "{}  {:>10}  {left}{mark}{}",
            style.strong(share),
            self.amounts.format_amount(amount, self.unit),
            style.style_by_name(name, text)
        )
    }
}
