//! Prints the hot methods and the short paths that lead to them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use lucce_callfeed::EventLeaf;
use lucce_decoder::escape::{CollapsedFrameText, EscapedLine};
use lucce_kcontexts::{ForestNodeId, KContextError};
use serde::Serialize;

use super::input::HotPathsInput;
use super::paths::{HotRoutines, NamedForest, SiteCalls};
use super::{HotPathsArgs, PathsFormat};
use crate::output::{format_plural, grouped, lock_stdout, percent_of, write_json};
use crate::{CommandError, CommandStatus, prefix_path};

pub fn run(args: &HotPathsArgs, input: &HotPathsInput) -> Result<CommandStatus, CommandError> {
    let what = args.measure_and_leaf(input)?;
    let measure = input.measure_name(what.0);
    let mut calls = SiteCalls::default();
    let end = input.feed_calls(what, &mut calls.labels, &mut calls.tree, u64::MAX)?;
    let failed = |e| CommandError::Usage(prefix_path(&input.path, e));
    let hot = HotRoutines::new(&calls, args.hot);
    let shown = match (args.format, args.top) {
        (PathsFormat::Collapsed, _) | (_, 0) => &hot.routines,
        (PathsFormat::Table, top) => hot.routines.get(..top).unwrap_or(&hot.routines),
    };
    let paths = NamedForest::new(&calls, shown, (args.k, args.lines), input.code_symbols())
        .map_err(failed)?;
    drop(calls);
    let mut out = lock_stdout();
    match args.format {
        PathsFormat::Collapsed => write_collapsed(&paths, &mut out)?,
        PathsFormat::Table => {
            let answer =
                HotPathsAnswer::new(args, (measure, what.1), &hot, paths).map_err(failed)?;
            match args.json {
                true => write_json(&mut out, &answer)?,
                false => answer.write(&mut out)?,
            }
        }
    }
    out.flush()?;
    Ok(end)
}

#[derive(Serialize)]
struct HotPathsAnswer {
    /// What counts: `calls`, `events`, or the unit of the events' values (`bytes`, `ns`, …).
    value: String,
    /// What is hot: `method` or `type`.
    thing: &'static str,
    k: u32,
    hot: u32,
    similar: u32,
    total: u64,
    /// Number of routines; the next field: of hot ones.
    things: u64,
    hot_things: u64,
    hottest: Vec<HotCallee>,
}

/// A hot method, or a caller on the way to one.
#[derive(Serialize)]
struct HotCallee {
    name: String,
    count: u64,
    /// Percentage of the total; for a caller, of the hot method's count.
    share: f64,
    callers: Vec<HotCallee>,
}

impl HotPathsAnswer {
    fn new(
        args: &HotPathsArgs,
        (measure, origin): (String, EventLeaf),
        hot: &HotRoutines,
        paths: NamedForest,
    ) -> Result<Self, KContextError> {
        Ok(HotPathsAnswer {
            value: measure,
            thing: match origin {
                EventLeaf::Method => "method",
                EventLeaf::Type => "type",
            },
            k: args.k,
            hot: args.hot,
            similar: args.similar,
            total: hot.total,
            things: hot.routine_count as u64,
            hot_things: hot.routines.len() as u64,
            hottest: callee_trees(&paths.retain_similar(args.similar)?, hot.total),
        })
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let HotPathsAnswer {
            value,
            thing,
            k,
            hot,
            similar,
            ..
        } = self;
        writeln!(
            out,
            "hot: {} of {}, {hot}% of {} {value}; paths of up to {} with at least {similar}% of a \
             {thing}'s",
            grouped(self.hot_things),
            format_plural(self.things, thing),
            grouped(self.total),
            format_plural((*k).into(), "call"),
        )?;
        for (number, callee) in self.hottest.iter().enumerate() {
            let HotCallee { name, share, .. } = callee;
            let (number, count) = (number + 1, grouped(callee.count));
            let name = EscapedLine(name);
            writeln!(out, "\n#{number} {share:.2}%  {count} {value}  {name}")?;
            write_callers(&callee.callers, out)?;
        }
        let more = self.hot_things.saturating_sub(self.hottest.len() as u64);
        if more > 0 {
            let more = format_plural(more, &format!("more hot {thing}"));
            writeln!(out, "\n{more}: --top 0")?;
        }
        Ok(())
    }
}

/// Writes one caller a line. At a branch, callers are indented by two columns.
fn write_callers(callers: &[HotCallee], out: &mut impl Write) -> io::Result<()> {
    let mut open: Vec<(&HotCallee, usize, usize)> = Vec::new();
    push_callers(&mut open, callers, 0);
    while let Some((caller, at, above)) = open.pop() {
        let HotCallee { name, share, .. } = caller;
        let count = grouped(caller.count);
        let name = EscapedLine(name);
        writeln!(out, "{share:>7.2}% {count:>15}  {:at$}← {name}", "")?;
        push_callers(&mut open, &caller.callers, above);
    }
    Ok(())
}

/// Pushes callers with the column `at`, so that the first is popped next.
fn push_callers<'c>(
    open: &mut Vec<(&'c HotCallee, usize, usize)>,
    callers: &'c [HotCallee],
    at: usize,
) {
    let above = at + 2 * usize::from(callers.len() > 1);
    open.extend(callers.iter().rev().map(|caller| (caller, at, above)));
}

/// The trees of a forest, hottest first.
fn callee_trees(paths: &NamedForest, total: u64) -> Vec<HotCallee> {
    let forest = &paths.forest;
    let roots = root_counts(paths);
    let mut callers: BTreeMap<Option<ForestNodeId>, Vec<HotCallee>> = BTreeMap::new();
    // Children follow their parents.
    for (node, root) in forest.nodes().zip(roots).rev() {
        let parent = forest.parent(node);
        let whole = if parent.is_some() { root } else { total };
        let count = forest.count(node);
        let callee = HotCallee {
            name: paths.node_name(node).to_owned(),
            count,
            share: percent_of(count, whole),
            callers: sort_hottest_first(callers.remove(&Some(node))),
        };
        callers.entry(parent).or_default().push(callee);
    }
    sort_hottest_first(callers.remove(&None))
}

/// The count of each node's root.
fn root_counts(paths: &NamedForest) -> Vec<u64> {
    let mut roots: BTreeMap<ForestNodeId, u64> = BTreeMap::new();
    for node in paths.forest.nodes() {
        let parent = paths.forest.parent(node);
        let root = parent.and_then(|parent| roots.get(&parent).copied());
        roots.insert(node, root.unwrap_or_else(|| paths.forest.count(node)));
    }
    roots.into_values().collect()
}

/// Sorts by count. Callees were found in reverse, so equal ones are reversed.
fn sort_hottest_first(callees: Option<Vec<HotCallee>>) -> Vec<HotCallee> {
    let mut callees = callees.unwrap_or_default();
    callees.reverse();
    callees.sort_by_key(|callee| Reverse(callee.count));
    callees
}

/// Writes each k-calling context, hot method first, with the count that no longer context has.
fn write_collapsed(paths: &NamedForest, out: &mut impl Write) -> io::Result<()> {
    let forest = &paths.forest;
    let mut own: BTreeMap<ForestNodeId, u64> = BTreeMap::new();
    for node in forest.nodes() {
        let count = forest.count(node);
        own.insert(node, count);
        let parent = forest.parent(node);
        if let Some(above) = parent.and_then(|parent| own.get_mut(&parent)) {
            *above = above.saturating_sub(count);
        }
    }
    let mut own: Vec<(ForestNodeId, u64)> = own.into_iter().filter(|(_, own)| *own > 0).collect();
    own.sort_by_key(|(node, own)| (Reverse(*own), *node));
    for (node, own) in own {
        let up = std::iter::successors(Some(node), |node| forest.parent(*node));
        let names = up.map(|node| CollapsedFrameText(paths.node_name(node)).to_string());
        let mut path: Vec<String> = names.collect();
        path.reverse();
        writeln!(out, "{} {own}", path.join(";"))?;
    }
    Ok(())
}
