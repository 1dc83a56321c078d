//! What is shown of a window: head and rows, as text.

use std::collections::{HashMap, HashSet};
use std::fmt;

use clap::ValueEnum;
use lucce_decoder::escape::Text;
use lucce_decoder::{By, ContextId, Counted, Key, Measure, NodeId, Number, StackFrame};

use super::super::human::human;
use super::super::output::{grouped, percent};
use super::sampler::Window;

/// What rows are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum List {
    Context,
    Type,
    Method,
    Thread,
}

impl List {
    pub const ALL: [List; 4] = [List::Context, List::Type, List::Method, List::Thread];

    pub fn name(self) -> &'static str {
        match self {
            List::Context => "contexts",
            List::Type => "types",
            List::Method => "methods",
            List::Thread => "threads",
        }
    }

    fn by(self) -> By {
        match self {
            List::Context => By::Context,
            List::Type => By::Type,
            List::Method => By::Method,
            List::Thread => By::Thread,
        }
    }
}

/// What a person wants to see.
#[derive(Clone, Debug)]
pub struct View {
    /// `None`: the kind that is shown first.
    pub kind: Option<String>,
    pub list: List,
    /// Sorted by the number of events, not by the sum of their values.
    pub by_count: bool,
    /// With threads that wait for work.
    pub with_idle: bool,
}

impl View {
    pub fn new(kind: Option<String>, list: List) -> View {
        View {
            kind,
            list,
            by_count: false,
            with_idle: false,
        }
    }

    pub fn kind<'v>(&'v self, window: &'v Window) -> &'v str {
        self.kind.as_deref().unwrap_or(&window.main_kind)
    }

    /// Whether rows are sorted by the number of events: by choice, or because the kind has no values.
    pub fn sorts_by_count(&self, window: &Window) -> bool {
        let kind = self.kind(window);
        let known = window.totals.iter().find(|of| of.name == kind);
        self.by_count || known.is_none_or(|kind| kind.unit.is_empty())
    }

    fn shows(&self, row: &Counted) -> bool {
        self.with_idle || !row.is_idle
    }

    /// So many lists further.
    pub fn turn(&mut self, steps: usize) {
        let at = List::ALL.iter().position(|list| *list == self.list);
        let next = (at.unwrap_or(0) + steps) % List::ALL.len();
        self.list = List::ALL.get(next).copied().unwrap_or(List::Context);
    }

    /// The next kind of those that were ever counted.
    pub fn next_kind(&mut self, window: &Window) {
        let now = self.kind(window).to_owned();
        let names: Vec<&String> = window.totals.iter().map(|kind| &kind.name).collect();
        let at = names.iter().position(|name| **name == now);
        let next = at.map_or(0, |at| at + 1) % names.len().max(1);
        self.kind = names.get(next).map(|name| (*name).clone());
    }
}

/// One line of the list.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub key: Key,
    /// In percent of the window's.
    pub share: f64,
    /// For a second: in the kind's unit, and events.
    pub value: String,
    pub count: String,
    /// Escaped.
    pub name: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row {
            share,
            value,
            count,
            name,
            ..
        } = self;
        write!(f, "{share:>6.1}%  {value:>14}  {count:>12}  {name}")
    }
}

/// Run, kind and sums.
pub fn head(window: &Window, view: &View) -> Vec<String> {
    let asked = view.kind(window);
    let run = window.run.map_or_else(
        || "run without an id".to_owned(),
        |run| format!("run {run}"),
    );
    let total = window.totals.iter().find(|kind| kind.name == asked);
    let (unit, since_start) = total.map_or(("", 0), |kind| (kind.unit.as_str(), kind.count));
    let sums = |is_wanted: &dyn Fn(&Counted) -> bool| {
        let of_kind = of_kind(window, asked);
        sums(window, |row| of_kind(row) && is_wanted(row))
    };
    let (value, count) = sums(&|row| view.shows(row));
    let (idle, idle_count) = sums(&|row| row.is_idle);
    let values = match unit {
        "" => String::new(),
        unit => format!("{} a second, ", rate(value, window, unit)),
    };
    let mut lines = vec![
        format!("{run}, the last {:.1} s", window.seconds),
        format!(
            "{}: {values}{} events a second, {} since the start",
            Text(asked),
            rate(count, window, ""),
            grouped(since_start)
        ),
    ];
    if idle_count > 0 && !view.with_idle {
        let idle = rate(idle, window, unit);
        lines.push(format!(
            "idle, threads that wait for work (--idle shows them): {idle} a second"
        ));
    }
    lines
}

fn of_kind(window: &Window, kind: &str) -> impl Fn(&Counted) -> bool + use<> {
    let kind = window.joined.kind(kind);
    move |row| Some(row.kind) == kind
}

fn sums(window: &Window, is_wanted: impl Fn(&Counted) -> bool) -> (u64, u64) {
    let rows = window.joined.counted(0, is_wanted);
    rows.fold((0, 0), |(value, count), row| {
        (
            value.saturating_add(row.value),
            count.saturating_add(row.count),
        )
    })
}

/// Times that threads waited are a part of that time: nanoseconds in a second.
fn rate(sum: u64, window: &Window, unit: &str) -> String {
    let seconds = window.seconds.max(1e-3);
    let a_second = sum as f64 / seconds;
    match a_second {
        few if few > 0.0 && few < 10.0 && unit.is_empty() => format!("{few:.1}"),
        many => human(many.round(), unit),
    }
}

/// The largest first.
pub fn rows(window: &Window, view: &View) -> Vec<Row> {
    let (kind, by) = (view.kind(window), view.list.by());
    let of_kind = of_kind(window, kind);
    let is_shown = |row: &Counted| of_kind(row) && view.shows(row);
    let sum = |measure| window.joined.own_sums(0, measure, by, is_shown);
    let (values, counts) = (sum(Measure::Value), sum(Measure::Count));
    let known = window.totals.iter().find(|of| of.name == kind);
    let unit = known.map_or("", |kind| kind.unit.as_str());
    let weighed = match view.sorts_by_count(window) {
        true => &counts,
        false => &values,
    };
    let of = |sums: &HashMap<Key, u64>, key: &Key| sums.get(key).copied().unwrap_or(0);
    let whole = weighed
        .values()
        .fold(0, |sum: u64, value| sum.saturating_add(*value));
    let keys: HashSet<Key> = counts.keys().chain(values.keys()).copied().collect();
    let mut keys: Vec<Key> = keys.into_iter().collect();
    keys.sort_unstable_by_key(|key| (std::cmp::Reverse(of(weighed, key)), *key));
    let row = |key: Key| Row {
        key,
        share: percent(of(weighed, &key), whole),
        value: match unit {
            "" => String::new(),
            unit => format!("{}/s", rate(of(&values, &key), window, unit)),
        },
        count: format!("{}/s", rate(of(&counts, &key), window, "")),
        name: name(window, key),
    };
    keys.into_iter().map(row).collect()
}

/// Of a context its type, the innermost frame of the program, and where in the JDK that has led to.
fn name(window: &Window, key: Key) -> String {
    let called = window.joined.name(key);
    let called = Text(&called);
    let Key::Context(node, _) = key else {
        return called.to_string();
    };
    let trace = window.joined.trace(node);
    match (StackFrame::of_the_application(&trace), trace.first()) {
        (Some(frame), Some(first)) if frame != first => {
            format!("{called}  {frame} … {}", Text(&first.called()))
        }
        (Some(frame), _) => format!("{called}  {frame}"),
        (None, _) => called.to_string(),
    }
}

/// The context's number, its content id and its trace.
pub fn trace(window: &Window, key: Key) -> Vec<String> {
    let Key::Context(node, what) = key else {
        return Vec::new();
    };
    let number = Number {
        run: window.run,
        id: number(window, node, what).unwrap_or(ContextId::UNKNOWN),
    };
    let frames = window.joined.trace(node);
    let frames = frames.iter().map(|frame| format!("    at {frame}"));
    let ids = format!("{number}  {}", window.joined.stack(node));
    std::iter::once(ids).chain(frames).collect()
}

fn number(window: &Window, node: NodeId, what: Option<u32>) -> Option<ContextId> {
    let is_it = |row: &Counted| row.node == node && row.what == what;
    window.joined.counted(0, is_it).map(|row| row.id).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_turn_in_both_directions() {
        let mut view = View::new(None, List::Context);
        view.turn(1);
        assert_eq!(view.list, List::Type);
        view.turn(List::ALL.len() - 1);
        view.turn(List::ALL.len() - 1);
        assert_eq!(view.list, List::Thread);
    }
}
