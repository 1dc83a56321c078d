//! Prints the hot methods and the short paths that lead to them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use lucce_decoder::escape::{Collapsed, Line};
use lucce_decoder::{Count, Origin};
use lucce_kcontexts::{Error, NodeId};
use serde::Serialize;

use super::super::output::{grouped, json, percent, plural, stdout};
use super::super::{End, Failure, about};
use super::input::Input;
use super::paths::{Calls, Hot, Paths};
use super::{Args, Format};

pub fn run(args: &Args, input: &Input) -> Result<End, Failure> {
    let what = args.count(input)?;
    let mut calls = Calls::default();
    let end = input.tell(what, &mut calls.labels, &mut calls.tree, u64::MAX)?;
    let failed = |e| Failure::Usage(about(&input.path, e));
    let hot = Hot::new(&calls, args.hot);
    let shown = match (args.format, args.top) {
        (Format::Collapsed, _) | (_, 0) => &hot.routines,
        (Format::Table, top) => hot.routines.get(..top).unwrap_or(&hot.routines),
    };
    let paths = Paths::new(&calls, shown, (args.k, args.lines), input.code()).map_err(failed)?;
    drop(calls);
    let mut out = stdout();
    match args.format {
        Format::Collapsed => collapsed(&paths, &mut out)?,
        Format::Table => {
            let answer = Answer::new(args, what, &hot, paths).map_err(failed)?;
            match args.json {
                true => json(&mut out, &answer)?,
                false => answer.write(&mut out)?,
            }
        }
    }
    out.flush()?;
    Ok(end)
}

#[derive(Serialize)]
struct Answer {
    /// What counts: `calls`, `events` or `bytes`.
    value: &'static str,
    /// What is hot: `method` or `type`.
    thing: &'static str,
    k: u32,
    hot: u32,
    similar: u32,
    total: u64,
    /// How many there are, and how many of them are hot.
    things: u64,
    hot_things: u64,
    hottest: Vec<Callee>,
}

/// A hot method, or a caller on the way to one.
#[derive(Serialize)]
struct Callee {
    name: String,
    count: u64,
    /// Percent: of the total, for a caller of the hot method's count.
    share: f64,
    callers: Vec<Callee>,
}

impl Answer {
    fn new(
        args: &Args,
        (count, origin): (Count, Origin),
        hot: &Hot,
        paths: Paths,
    ) -> Result<Self, Error> {
        Ok(Answer {
            value: name(count),
            thing: match origin {
                Origin::Method => "method",
                Origin::Type => "type",
            },
            k: args.k,
            hot: args.hot,
            similar: args.similar,
            total: hot.total,
            things: hot.of as u64,
            hot_things: hot.routines.len() as u64,
            hottest: callees(&paths.similar(args.similar)?, hot.total),
        })
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Answer {
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
            plural(self.things, thing),
            grouped(self.total),
            plural((*k).into(), "call"),
        )?;
        for (number, callee) in self.hottest.iter().enumerate() {
            let Callee { name, share, .. } = callee;
            let (number, count) = (number + 1, grouped(callee.count));
            let name = Line(name);
            writeln!(out, "\n#{number} {share:.2}%  {count} {value}  {name}")?;
            write_callers(&callee.callers, out)?;
        }
        let more = self.hot_things.saturating_sub(self.hottest.len() as u64);
        if more > 0 {
            let more = plural(more, &format!("more hot {thing}"));
            writeln!(out, "\n{more}: --top 0")?;
        }
        Ok(())
    }
}

pub fn name(count: Count) -> &'static str {
    match count {
        Count::Calls => "calls",
        Count::Events => "events",
        Count::Bytes => "bytes",
    }
}

/// One caller a line. Where paths branch, what leads to each is two columns to the right of it.
fn write_callers(callers: &[Callee], out: &mut impl Write) -> io::Result<()> {
    let mut open: Vec<(&Callee, usize, usize)> = Vec::new();
    push(&mut open, callers, 0);
    while let Some((caller, at, above)) = open.pop() {
        let Callee { name, share, .. } = caller;
        let count = grouped(caller.count);
        let name = Line(name);
        writeln!(out, "{share:>7.2}% {count:>15}  {:at$}← {name}", "")?;
        push(&mut open, &caller.callers, above);
    }
    Ok(())
}

/// Lists callers for the column `at`, with the column for theirs; the first is the next to be taken.
fn push<'c>(open: &mut Vec<(&'c Callee, usize, usize)>, callers: &'c [Callee], at: usize) {
    let above = at + 2 * usize::from(callers.len() > 1);
    open.extend(callers.iter().rev().map(|caller| (caller, at, above)));
}

/// The trees of a forest, the hottest first.
fn callees(paths: &Paths, total: u64) -> Vec<Callee> {
    let forest = &paths.forest;
    let roots = roots(paths);
    let mut callers: BTreeMap<Option<NodeId>, Vec<Callee>> = BTreeMap::new();
    // Children come after their parents.
    for (node, root) in forest.nodes().zip(roots).rev() {
        let parent = forest.parent(node);
        let whole = if parent.is_some() { root } else { total };
        let count = forest.count(node);
        let callee = Callee {
            name: paths.name(node).to_owned(),
            count,
            share: percent(count, whole),
            callers: hottest_first(callers.remove(&Some(node))),
        };
        callers.entry(parent).or_default().push(callee);
    }
    hottest_first(callers.remove(&None))
}

/// By node, its root's counter.
fn roots(paths: &Paths) -> Vec<u64> {
    let mut roots: BTreeMap<NodeId, u64> = BTreeMap::new();
    for node in paths.forest.nodes() {
        let parent = paths.forest.parent(node);
        let root = parent.and_then(|parent| roots.get(&parent).copied());
        roots.insert(node, root.unwrap_or_else(|| paths.forest.count(node)));
    }
    roots.into_values().collect()
}

/// Those that were found last come first among equals, for they were found from the end.
fn hottest_first(callees: Option<Vec<Callee>>) -> Vec<Callee> {
    let mut callees = callees.unwrap_or_default();
    callees.reverse();
    callees.sort_by_key(|callee| Reverse(callee.count));
    callees
}

/// Each k-context, the hot method first, with what counts in it and in no longer one.
fn collapsed(paths: &Paths, out: &mut impl Write) -> io::Result<()> {
    let forest = &paths.forest;
    let mut own: BTreeMap<NodeId, u64> = BTreeMap::new();
    for node in forest.nodes() {
        let count = forest.count(node);
        own.insert(node, count);
        let parent = forest.parent(node);
        if let Some(above) = parent.and_then(|parent| own.get_mut(&parent)) {
            *above = above.saturating_sub(count);
        }
    }
    let mut own: Vec<(NodeId, u64)> = own.into_iter().filter(|(_, own)| *own > 0).collect();
    own.sort_by_key(|(node, own)| (Reverse(*own), *node));
    for (node, own) in own {
        let up = std::iter::successors(Some(node), |node| forest.parent(*node));
        let names = up.map(|node| Collapsed(paths.name(node)).to_string());
        let mut path: Vec<String> = names.collect();
        path.reverse();
        writeln!(out, "{} {own}", path.join(";"))?;
    }
    Ok(())
}
