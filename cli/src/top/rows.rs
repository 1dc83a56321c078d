//! Formats a window: head and rows, as text.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ALLOC, ContextId, ContextNumber, FrameDisplay, GroupBy, GroupKey, KindTotal, Measure,
    MergedCounter, NodeId, StackFrame,
};

use lucce_options::kinds::{DIED_YOUNG, HEAP_SAMPLES, OLD_OBJECTS};

use super::super::amounts::{AmountFormat, format_amount};
use super::super::fact_tables::format_table;
use super::super::output::percent_of;
use super::sampler::SampleWindow;

/// The title of a list.
pub fn list_title(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Context => "contexts",
        GroupBy::Type => "types",
        GroupBy::Class => "classes",
        GroupBy::Package => "packages",
        GroupBy::Method => "methods",
        GroupBy::Line => "lines",
        GroupBy::Entry => "entries",
        GroupBy::Thread => "threads",
        GroupBy::Tag => "tags",
        GroupBy::Request => "requests",
    }
}

/// The user's selection.
#[derive(Clone, Debug)]
pub struct TopView {
    /// The selected kind; `None`: the main kind.
    pub kind: Option<String>,
    pub list: GroupBy,
    /// Whether rows are sorted by number of events instead of value.
    pub by_count: bool,
    /// Whether rows that include callees are sorted and shown with them.
    pub with_callees: bool,
    /// Whether idle threads are shown.
    pub with_idle: bool,
}

impl TopView {
    pub fn new(kind: Option<String>, list: GroupBy) -> TopView {
        TopView {
            kind,
            list,
            by_count: false,
            with_callees: false,
            with_idle: false,
        }
    }

    pub fn shown_kind<'v>(&'v self, window: &'v SampleWindow) -> &'v str {
        self.kind.as_deref().unwrap_or(&window.main_kind)
    }

    /// Whether rows are sorted by number of events: by choice, or because the kind has no values.
    pub fn sorts_by_count(&self, window: &SampleWindow) -> bool {
        let kind = self.shown_kind(window);
        let total = window.totals.iter().find(|of| of.name == kind);
        self.by_count || total.is_none_or(|kind| kind.unit.is_empty())
    }

    pub fn shows_row(&self, row: &MergedCounter) -> bool {
        self.with_idle || !row.is_idle
    }

    /// Moves on by `steps` lists.
    pub fn advance_list(&mut self, steps: usize) {
        let at = GroupBy::ALL.iter().position(|list| *list == self.list);
        let next = (at.unwrap_or(0) + steps) % GroupBy::ALL.len();
        self.list = GroupBy::ALL.get(next).copied().unwrap_or(GroupBy::Context);
    }

    /// Selects the next kind that was ever counted.
    pub fn next_kind(&mut self, window: &SampleWindow) {
        let now = self.shown_kind(window).to_owned();
        let names: Vec<&String> = window.totals.iter().map(|kind| &kind.name).collect();
        let at = names.iter().position(|name| **name == now);
        let next = at.map_or(0, |at| at + 1) % names.len().max(1);
        self.kind = names.get(next).map(|name| (*name).clone());
    }
}

/// Columns of [`TopRow::survival`].
pub const SURVIVAL_WIDTH: usize = 28;

/// A row of the list.
#[derive(Clone, PartialEq, Debug)]
pub struct TopRow {
    pub key: GroupKey,
    /// Percentage of the window's total.
    pub share: f64,
    /// Value per second in the kind's unit, and events per second.
    pub value: String,
    pub count: String,
    /// How long its sampled objects live; empty: not known.
    pub survival: String,
    /// The name, escaped.
    pub name: String,
}

/// How long sampled objects live, by group, since the start: bytes of samples, of those that died young, and of those that
/// became old. `None`: not known.
pub struct SurvivalSums<K>(Option<[HashMap<K, u64>; 3]>);

impl<K: Eq + Hash> SurvivalSums<K> {
    /// Sums the samples of the window for a list of allocations. `sum`: bytes by group of the wanted rows of a run.
    pub fn new(
        window: &SampleWindow,
        kind: &str,
        sum: impl Fn(usize, &dyn Fn(&MergedCounter) -> bool) -> HashMap<K, u64>,
    ) -> SurvivalSums<K> {
        if window.joined.runs.len() < 2 || !ALLOC.is_kind(kind) {
            return SurvivalSums(None);
        }
        let kinds = [&HEAP_SAMPLES, &DIED_YOUNG, &OLD_OBJECTS];
        SurvivalSums(Some(kinds.map(|kind| {
            let of_kind = kind_filter(window, kind.name);
            sum(1, &of_kind)
        })))
    }

    /// `97% died young, 1.20 MB old`; empty: it is not known how long samples live.
    pub fn format_group(&self, key: &K) -> String {
        let Some(sums) = &self.0 else {
            return String::new();
        };
        let [sampled, died, old] = sums
            .each_ref()
            .map(|sums| sums.get(key).copied().unwrap_or(0));
        match sampled {
            0 => "no sample".to_owned(),
            _ => format!(
                "{:.0}% died young, {} old",
                percent_of(died, sampled),
                format_amount(old as f64, "bytes")
            ),
        }
    }
}

impl fmt::Display for TopRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TopRow {
            share,
            value,
            count,
            survival,
            name,
            ..
        } = self;
        write!(f, "{share:>6.1}%  {value:>14}  {count:>12}  ")?;
        if !survival.is_empty() {
            write!(f, "{survival:>SURVIVAL_WIDTH$}  ")?;
        }
        write!(f, "{name}")
    }
}

/// Formats the head: run, kind and sums.
pub fn format_head(window: &SampleWindow, view: &TopView) -> Vec<String> {
    let shown_kind = view.shown_kind(window);
    let run = window.run.map_or_else(
        || "run without an id".to_owned(),
        |run| format!("run {run}"),
    );
    let total = &window.kind_total(shown_kind);
    let (unit, since_start) = (total.unit.as_str(), total.count);
    let sums = |is_wanted: &dyn Fn(&MergedCounter) -> bool| {
        let of_kind = kind_filter(window, shown_kind);
        sum_rows(window, |row| of_kind(row) && is_wanted(row))
    };
    let (value, count) = sums(&|row| view.shows_row(row));
    let (idle, idle_count) = sums(&|row| row.is_idle);
    let values = match unit {
        "" => String::new(),
        unit => format!("{} a second, ", format_rate(value, window, (total, unit))),
    };
    let mut lines = vec![
        match &window.interval {
            Some(interval) => format!("{run}, {interval}: {:.1} s", window.seconds),
            None => format!("{run}, the last {:.1} s", window.seconds),
        },
        format!(
            "{}: {values}{} events a second, {} {}",
            EscapedText(shown_kind),
            format_rate(count, window, (total, "")),
            total_amounts(window, total).format_count(since_start),
            match window.interval {
                Some(_) => "events",
                None => "since the start",
            }
        ),
    ];
    if idle_count > 0 && !view.with_idle {
        let idle = format_rate(idle, window, (total, unit));
        lines.push(format!(
            "idle, threads that wait for work (--idle shows them): {idle} a second"
        ));
    }
    lines
}

fn kind_filter(window: &SampleWindow, kind: &str) -> impl Fn(&MergedCounter) -> bool + use<> {
    let kind = window.joined.find_kind(kind);
    move |row| Some(row.kind) == kind
}

fn sum_rows(window: &SampleWindow, is_wanted: impl Fn(&MergedCounter) -> bool) -> (u64, u64) {
    let rows = window.joined.filter_counters(0, is_wanted);
    rows.fold((0, 0), |(value, count), row| {
        (
            value.saturating_add(row.value),
            count.saturating_add(row.count),
        )
    })
}

/// Formats a rate. Durations are shown as nanoseconds per second.
pub fn format_rate(sum: u64, window: &SampleWindow, (kind, unit): (&KindTotal, &str)) -> String {
    let seconds = window.seconds.max(1e-3);
    let a_second = sum as f64 / seconds;
    let amounts = total_amounts(window, kind);
    match a_second {
        few if few > 0.0 && few < 10.0 && unit.is_empty() => format!("{few:.1}"),
        many => amounts.format_amount(many.round() as u64, unit),
    }
}

fn total_amounts(window: &SampleWindow, kind: &KindTotal) -> AmountFormat {
    AmountFormat::for_estimates(window.is_sampled && ALLOC.is_kind(&kind.name))
}

/// Builds the rows, largest first.
pub fn build_rows(window: &SampleWindow, view: &TopView) -> Vec<TopRow> {
    let (kind, by) = (view.shown_kind(window), view.list);
    let of_kind = kind_filter(window, kind);
    let is_shown = |row: &MergedCounter| of_kind(row) && view.shows_row(row);
    let sum = |measure| match view.with_callees {
        true => window.joined.sum_by_group(0, measure, by, is_shown),
        false => window.joined.own_sums_by_group(0, measure, by, is_shown),
    };
    let (values, counts) = (sum(Measure::Value), sum(Measure::Count));
    let total = &window.kind_total(kind);
    let unit = total.unit.as_str();
    let weighed = match view.sorts_by_count(window) {
        true => &counts,
        false => &values,
    };
    let of = |sums: &HashMap<GroupKey, u64>, key: &GroupKey| sums.get(key).copied().unwrap_or(0);
    // With callees, groups overlap: shares are of all events.
    let (value, count) = sum_rows(window, is_shown);
    let whole = match view.sorts_by_count(window) {
        true => count,
        false => value,
    };
    let keys: HashSet<GroupKey> = counts.keys().chain(values.keys()).copied().collect();
    let mut keys: Vec<GroupKey> = keys.into_iter().collect();
    keys.sort_unstable_by_key(|key| (std::cmp::Reverse(of(weighed, key)), *key));
    let survival = SurvivalSums::new(window, kind, |run, is_wanted| match view.with_callees {
        true => window
            .joined
            .sum_by_group(run, Measure::Value, by, is_wanted),
        false => window
            .joined
            .own_sums_by_group(run, Measure::Value, by, is_wanted),
    });
    let row = |key: GroupKey| TopRow {
        key,
        share: percent_of(of(weighed, &key), whole),
        value: match unit {
            "" => String::new(),
            unit => format!(
                "{}/s",
                format_rate(of(&values, &key), window, (total, unit))
            ),
        },
        count: format!("{}/s", format_rate(of(&counts, &key), window, (total, ""))),
        survival: survival.format_group(&key),
        name: format_key_name(window, key),
    };
    keys.into_iter().map(row).collect()
}

/// Formats a group's name. A context has its type, its innermost application frame, and the JDK method that this called.
fn format_key_name(window: &SampleWindow, key: GroupKey) -> String {
    let called = window.joined.group_name(key);
    let called = EscapedText(&called);
    let GroupKey::Context(node, _) = key else {
        return called.to_string();
    };
    let trace = window.joined.path_frames(node);
    match (
        StackFrame::innermost_application_frame(&trace),
        trace.first(),
    ) {
        (Some(frame), Some(first)) if frame != first => {
            format!(
                "{called}  {frame} … {}",
                EscapedText(&first.qualified_method())
            )
        }
        (Some(frame), _) => format!("{called}  {frame}"),
        (None, _) => called.to_string(),
    }
}

/// The sums of tables of the whole run, of the shown kind: `Open resources: 12 by 3 contexts, …`
pub fn format_summaries(window: &SampleWindow, view: &TopView) -> Vec<String> {
    let kind = view.shown_kind(window);
    let tables = window.facts.iter();
    let tables = tables.filter(|table| table.has_summary && table.kind == kind);
    tables
        .map(|table| format!("{}: {}", table.title, table.says))
        .collect()
}

/// Tables of the whole run: of the selected kind, or of all kinds if none is selected.
pub fn format_facts(window: &SampleWindow, view: &TopView, most: usize) -> Vec<String> {
    let selected = view.kind.as_deref();
    let tables = window.facts.iter();
    let tables = tables.filter(|table| selected.is_none_or(|kind| kind == table.kind));
    tables.flat_map(|table| format_table(table, most)).collect()
}

/// Formats a context: its id, its content id and its trace.
pub fn format_trace(window: &SampleWindow, key: GroupKey) -> Vec<String> {
    let GroupKey::Context(node, what) = key else {
        return Vec::new();
    };
    let number = ContextNumber {
        run: window.run,
        id: find_number(window, node, what).unwrap_or(ContextId::UNKNOWN),
    };
    let frames = window.joined.path_frames(node);
    let display = match window.joined.names.is_own_code_mixed() {
        true => FrameDisplay::Focused,
        false => FrameDisplay::All,
    };
    let lines = display.fold_frames(&frames).into_iter();
    let frames = lines.map(|line| format!("    {line}"));
    let ids = format!("{number}  {}", window.joined.stack_id(node));
    std::iter::once(ids).chain(frames).collect()
}

fn find_number(window: &SampleWindow, node: NodeId, what: Option<u32>) -> Option<ContextId> {
    let is_it = |row: &MergedCounter| row.node == node && row.what == what;
    window
        .joined
        .filter_counters(0, is_it)
        .map(|row| row.id)
        .next()
}

#[cfg(test)]
mod rows_tests {
    use std::time::Duration;

    use clap::Parser;
    use lucce_tracelog::{ThreadId, ThreadTag};

    use super::super::TopArgs;
    use super::super::sampler::LogSampler;
    use super::*;

    #[derive(clap::Parser)]
    struct TopCommand {
        #[command(flatten)]
        args: TopArgs,
    }

    /// The names of rows with their shares, after five allocations of 24 bytes in `Main.work`, called by `Main.main`.
    fn names_of_rows(options: &[&str]) -> Vec<(String, f64)> {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("live.log");
        let (mut writer, counters, _) = lucce_testkit::live(&log);
        let tag = ThreadTag {
            thread: ThreadId(1),
            key: "request".into(),
            value: "GET /orders/{id}".into(),
        };
        writer.append(tag).unwrap();
        let words = ["top", "1234"].iter().chain(options);
        let TopCommand { args } = TopCommand::try_parse_from(words).unwrap();
        let sampler = LogSampler::new(&log, Duration::ZERO, args.selection.clone());
        let mut sampler = sampler.ok().unwrap();
        let cell = counters.iter().next().unwrap();
        (0..5).for_each(|_| cell.count_event(0));
        let window = sampler.read_window().unwrap();
        let rows = build_rows(&window, &TopView::new(None, args.first_grouping()));
        rows.into_iter().map(|row| (row.name, row.share)).collect()
    }

    #[test]
    fn entries_requests_and_classes_are_those_of_the_options() {
        let one = |name: &str| vec![(name.to_owned(), 100.0)];
        assert_eq!(
            names_of_rows(&["--by", "entry", "--app", "app.Main"]),
            one("app.Main.main")
        );
        assert_eq!(names_of_rows(&["--by", "request"]), one("GET /orders/{id}"));
        let tagged = ["--by", "type", "--tag", "request=GET /orders/{id}"];
        assert_eq!(names_of_rows(&tagged), one("java.lang.String"));
        let line = "java.lang.String  app.Main.work(Main.java:21)";
        assert_eq!(names_of_rows(&["--include", "app.*"]), one(line));
        for other in [["--include", "app.Gen"], ["--tag", "request=GET /other"]] {
            assert_eq!(names_of_rows(&other), [], "{other:?}");
        }
    }

    #[test]
    fn requests_come_by_their_names() {
        let first = |words: &[&str]| {
            let words = ["top", "1234"].iter().chain(words);
            TopCommand::try_parse_from(words)
                .unwrap()
                .args
                .first_grouping()
        };
        assert_eq!(first(&[]), GroupBy::Context);
        assert_eq!(first(&["--event", "request"]), GroupBy::Request);
        let by_context = ["--event", "request", "--by", "context"];
        assert_eq!(first(&by_context), GroupBy::Context);
    }

    #[test]
    fn lists_turn_in_both_directions() {
        let mut view = TopView::new(None, GroupBy::Context);
        view.advance_list(1);
        assert_eq!(view.list, GroupBy::Type);
        view.advance_list(GroupBy::ALL.len() - 1);
        view.advance_list(GroupBy::ALL.len() - 1);
        assert_eq!(view.list, GroupBy::Request);
    }
}
