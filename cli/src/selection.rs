//! The options that select events. A command flattens the largest of these that applies to it, and applies it in the same
//! way: [`Selection`] ⊃ [`CountSelection`] ⊃ [`EventPatterns`] and classes.
//!
//! ```text
//! Selection      ─► open_run: classes, interval, times, threads and tags ─► Profile with the selected counters
//!                └► EventFilter: types and methods             ─► contexts, counters, merged rows or single events
//! CountSelection ─► limit_counters: all of it except the kind  ─► Profile of a JVM that runs
//! ```

use std::collections::HashMap;
use std::path::Path;

use lucce_callgraph::MethodId;
use lucce_decoder::escape::{EscapedLine, EscapedText};
use lucce_decoder::{
    ContextCounters, ContextId, EventContext, EventExplanation, FollowedObjects, KindTotal,
    Measure, MergedCounter, MergedProfile, Profile, SiteId, TraceTree, find_idle_contexts,
};
use regex_lite::Regex;

use super::classes::ClassFilterArgs;
use super::run_interval::RunIntervalArgs;
use super::tag_filter::TagFilterArgs;
use super::time_window::TimeWindowArgs;
use super::{CommandError, CommandStatus, SortArg};

/// The selected events of one run or of several. Times and threads need the stream of single events.
#[derive(clap::Args, Default)]
pub struct Selection {
    #[command(flatten)]
    pub counts: CountSelection,
    #[command(flatten)]
    pub times: TimeWindowArgs,
}

/// The selected counters, for commands that read the log alone.
#[derive(clap::Args, Clone, Default)]
pub struct CountSelection {
    /// Select events of this kind [default: allocations, else the most frequent kind; all kinds where they are not summed up]
    #[arg(long, value_name = "KIND")]
    pub event: Option<String>,
    #[command(flatten)]
    pub patterns: EventPatterns,
    #[command(flatten)]
    pub interval: RunIntervalArgs,
    #[command(flatten)]
    pub tagged: TagFilterArgs,
    #[command(flatten)]
    pub classes: ClassFilterArgs,
}

/// The selected types and methods.
#[derive(clap::Args, Clone, Default)]
pub struct EventPatterns {
    /// Select events of matching types of objects
    #[arg(long = "type", value_name = "REGEX")]
    pub type_pattern: Option<Regex>,
    /// Select events with a matching method in their stack (package.Class.method)
    #[arg(long, value_name = "REGEX")]
    pub through: Option<Regex>,
}

/// Whether waits of idle threads are selected.
#[derive(clap::Args, Default)]
pub struct IdleArgs {
    /// Include waits of idle pool threads, instead of one line for them (kinds that count time)
    #[arg(long)]
    pub idle: bool,
}

/// The sort key of commands with rows.
#[derive(clap::Args, Default)]
pub struct SortArgs {
    /// Sort key [default: value; count for events without values]
    #[arg(long, value_name = "KEY", value_enum)]
    pub sort: Option<SortArg>,
}

impl SortArgs {
    /// The amount of the sort key, if one is named.
    pub fn measure(&self) -> Option<Measure> {
        self.sort.and_then(SortArg::to_measure)
    }
}

/// Whether the stream's events are counted.
#[derive(clap::Args, Default)]
pub struct StreamCountArgs {
    /// Count the events of the stream (agent option stream=on); implied by --from, --to and --thread
    #[arg(long)]
    pub stream: bool,
}

/// A run, with the selected counters.
pub struct SelectedRun {
    pub profile: Profile,
    /// Whether its stream is damaged.
    pub status: CommandStatus,
}

impl Selection {
    /// Opens a run's log and applies classes, times, threads and tags. `from_stream`: counts the stream's events even if
    /// no times and threads are selected.
    pub fn open_run(&self, log: &Path, from_stream: bool) -> Result<SelectedRun, CommandError> {
        self.open_run_with(log, from_stream, |_| ())
    }

    /// As [`Selection::open_run`], with open resources among the events of a run that is read whole.
    pub fn open_run_with_resources(&self, log: &Path) -> Result<SelectedRun, CommandError> {
        self.open_run_with(log, false, |profile| {
            if self.times.is_unrestricted() {
                profile.count_open_resources();
            }
        })
    }

    /// `prepare`: changes the profile before tags are applied.
    fn open_run_with(
        &self,
        log: &Path,
        from_stream: bool,
        prepare: impl FnOnce(&mut Profile),
    ) -> Result<SelectedRun, CommandError> {
        // The stream is read before the log: see `read_stream`.
        let stream = self.times.open_stream(log, from_stream)?;
        let mut profile = self.counts.classes.open_log(log)?;
        match &stream {
            Some(_) => self.counts.interval.refuse_marks()?,
            None => self.counts.interval.apply(log, &mut profile)?,
        }
        let status = self.times.apply(log, &mut profile, stream)?;
        prepare(&mut profile);
        self.counts.tagged.apply(log, &mut profile)?;
        if !self.is_whole_kind() {
            // Live objects have no times, threads or tags.
            profile.followed_objects = FollowedObjects::default();
        }
        Ok(SelectedRun { profile, status })
    }

    /// Whether all events of a kind are selected, except those without a frame of the selected classes.
    pub fn is_whole_kind(&self) -> bool {
        self.times.is_unrestricted() && self.counts.tagged.is_unrestricted()
    }

    /// The kind of `--event`.
    pub fn event(&self) -> Option<&str> {
        self.counts.event.as_deref()
    }

    /// The filter by types and methods.
    pub fn event_filter(&self) -> EventFilter<'_> {
        self.counts.patterns.event_filter()
    }

    /// The message that no event is selected.
    pub fn nothing_matches(&self, kind: &str) -> String {
        self.counts.patterns.nothing_matches(kind)
    }
}

impl CountSelection {
    /// Limits the profile of a run, which may go on, to the selected counters of all kinds. A tag may still come.
    pub fn limit_counters(&self, profile: &mut Profile) {
        self.classes.apply(profile);
        self.limit_events(profile);
    }

    fn limit_events(&self, profile: &mut Profile) {
        if let Some(threads) = self.tagged.thread_ids(profile) {
            profile.events = profile
                .events
                .filter_counters(|counter| threads.contains(&counter.thread));
            // Live objects have no tags.
            profile.followed_objects = FollowedObjects::default();
        }
        self.patterns.limit_counters(profile);
    }

    /// Whether tags, types or methods are selected.
    pub fn has_filters(&self) -> bool {
        !self.tagged.is_unrestricted() || self.patterns.event_filter().has_patterns()
    }

    /// Opens the log of a run, which may go on, with the selected counters of the selected kind or of all kinds.
    pub fn open_log(&self, log: &Path) -> Result<Profile, CommandError> {
        let mut profile = self.classes.open_log(log)?;
        self.interval.apply(log, &mut profile)?;
        profile.count_open_resources();
        if let Some(kind) = &self.event {
            profile.events = profile.events_of_kind(kind);
        }
        self.limit_events(&mut profile);
        Ok(profile)
    }

    /// Whether all events are selected, except those without a frame of the selected classes.
    pub fn is_whole(&self) -> bool {
        self.event.is_none() && !self.has_filters()
    }

    /// The note that a page shows selected events only.
    pub fn page_note(&self) -> String {
        match self.tagged.is_unrestricted() {
            true => "Only selected events are shown.".to_owned(),
            false => self.tagged.to_string(),
        }
    }
}

impl EventPatterns {
    /// The filter by types and methods.
    pub fn event_filter(&self) -> EventFilter<'_> {
        EventFilter {
            type_pattern: self.type_pattern.as_ref(),
            through: self.through.as_ref(),
            without_idle: false,
        }
    }

    /// Limits the profile to matching counters and live objects.
    pub fn limit_counters(&self, profile: &mut Profile) {
        let filter = self.event_filter();
        if filter.has_patterns() {
            profile.events = filter.select_counters(profile, &profile.events);
            profile.followed_objects = filter.select_live_objects(profile);
        }
    }

    /// The message that no event is selected: a pattern may be mistyped.
    pub fn nothing_matches(&self, kind: &str) -> String {
        let patterns = [("--type", &self.type_pattern), ("--through", &self.through)];
        let patterns = patterns.iter().filter_map(|(option, pattern)| {
            // The pattern as typed: its backslashes are not escapes of a name.
            let pattern = EscapedLine(pattern.as_ref()?.as_str()).to_string();
            Some(format!("{option} '{pattern}'"))
        });
        let patterns: Vec<_> = patterns.collect();
        let kind = EscapedText(kind);
        match patterns.is_empty() {
            true => format!("no event of kind {kind}"),
            false => format!("no event of kind {kind} matches {}", patterns.join(" and ")),
        }
    }
}

/// Selects events by type, by method, and without idle threads.
pub struct EventFilter<'a> {
    type_pattern: Option<&'a Regex>,
    through: Option<&'a Regex>,
    /// Whether idle threads are left out.
    without_idle: bool,
}

impl EventFilter<'_> {
    /// Leaves out threads that wait for work, if the kind counts time.
    #[must_use]
    pub fn without_idle(mut self, kind: &KindTotal) -> Self {
        self.without_idle = kind.is_time() && self.through.is_none();
        self
    }

    /// Whether types are selected.
    pub fn has_type_pattern(&self) -> bool {
        self.type_pattern.is_some()
    }

    /// Whether types or methods are selected.
    pub fn has_patterns(&self) -> bool {
        self.type_pattern.is_some() || self.through.is_some()
    }

    fn admits_type(&self, name: &str) -> bool {
        self.type_pattern
            .is_none_or(|pattern| pattern.is_match(name))
    }

    /// Splits events into listed ones, and waits of idle threads.
    pub fn split_idle(
        &self,
        profile: &Profile,
        events: ContextCounters,
    ) -> (ContextCounters, ContextCounters) {
        if !self.without_idle {
            return (events, ContextCounters::default());
        }
        let idle = find_idle_contexts(profile, &events);
        events.partition_counters(|share| !idle.is_idle(share.id, share.event))
    }

    /// Keeps matching contexts.
    pub fn retain_contexts(&self, profile: &Profile, list: &mut Vec<EventContext>) {
        let is_type = |context: &EventContext| {
            context.count > 0
                && self.admits_type(profile.context_detail(context).unwrap_or_default())
        };
        list.retain(is_type);
        if let Some(through) = self.through {
            let ids = list.iter().map(|context| context.id);
            let matches = match_traces(profile, through, ids);
            list.retain(|context| matches.get(&context.id) == Some(&true));
        }
    }

    /// The matching counters, and those whose context ids the log does not explain.
    pub fn select_counters(&self, profile: &Profile, events: &ContextCounters) -> ContextCounters {
        let ids = events.context_ids();
        let sites: HashMap<ContextId, SiteId> = ids
            .iter()
            .filter_map(|id| {
                let (_, leaf) = profile.graph.find_caller(*id, MethodId::EVENT).ok()??;
                Some((*id, leaf.site))
            })
            .collect();
        let matches = match self.through {
            Some(through) => match_traces(profile, through, ids.into_iter()),
            None => HashMap::new(),
        };
        events.filter_counters(|counter| {
            let Some(site) = sites.get(&counter.id) else {
                return true;
            };
            let detail = profile.event_detail(counter.event, *site);
            self.admits_type(detail.unwrap_or_default())
                && (self.through.is_none() || matches.get(&counter.id) != Some(&false))
        })
    }

    /// The matching live objects.
    pub fn select_live_objects(&self, profile: &Profile) -> FollowedObjects {
        let objects = &profile.followed_objects;
        let matches = match self.through {
            Some(through) => match_traces(profile, through, objects.context_ids()),
            None => HashMap::new(),
        };
        objects.filter_objects(|id, name| {
            self.admits_type(name) && (self.through.is_none() || matches.get(&id) != Some(&false))
        })
    }

    /// Whether a single event is selected.
    pub fn admits_event(&self, traces: &TraceTree<'_>, event: &EventExplanation) -> bool {
        self.admits_type(event.detail.as_deref().unwrap_or_default())
            && self.through.is_none_or(|through| {
                let mut frames = traces.stack_frames(event.trace);
                frames.any(|frame| through.is_match(&frame.qualified_method()))
            })
    }

    /// A filter of merged runs' events, by nodes of the tree.
    pub fn build_row_filter(&self, merged: &MergedProfile) -> RowFilter {
        let through = |regex: &Regex| merged.mark_paths_through(|method| regex.is_match(method));
        let types = |pattern: &Regex| {
            let types = merged.names.types.as_slice().iter();
            types.map(|name| pattern.is_match(name)).collect()
        };
        RowFilter {
            types: self.type_pattern.map(types),
            admits_untyped: self.admits_type(""),
            through: self.through.map(through),
            without_idle: self.without_idle,
        }
    }
}

/// For each context id that decodes, whether a method of its trace matches.
fn match_traces(
    profile: &Profile,
    through: &Regex,
    ids: impl Iterator<Item = ContextId>,
) -> HashMap<ContextId, bool> {
    let mut traces = TraceTree::new(profile);
    let ids = ids.filter_map(|id| Some((id, traces.insert_trace(id).ok()?)));
    let ids: Vec<_> = ids.collect();
    let matches =
        traces.sum_frames(|_, frame| u64::from(through.is_match(&frame.qualified_method())));
    ids.into_iter()
        .map(|(id, trace)| (id, matches.trace_sum(trace) > 0))
        .collect()
}

/// The filter of merged runs' events.
pub struct RowFilter {
    /// Matching types, by number; `None`: all match.
    types: Option<Vec<bool>>,
    admits_untyped: bool,
    /// Matching paths, by node; `None`: all match.
    through: Option<Vec<bool>>,
    without_idle: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowClass {
    Wanted,
    /// It matches, but its thread is idle.
    Idle,
    Other,
}

impl RowFilter {
    pub fn classify_row(&self, row: &MergedCounter) -> RowClass {
        match row.count > 0 && self.matches_row(row) {
            false => RowClass::Other,
            true if self.without_idle && row.is_idle => RowClass::Idle,
            true => RowClass::Wanted,
        }
    }

    /// Whether type and path of an event match.
    pub fn matches_row(&self, row: &MergedCounter) -> bool {
        let is_marked = |marks: &Vec<bool>, at: u32| marks.get(at as usize) == Some(&true);
        let is_type = match (&self.types, row.what) {
            (None, _) => true,
            (Some(_), None) => self.admits_untyped,
            (Some(types), Some(what)) => is_marked(types, what),
        };
        is_type
            && self
                .through
                .as_ref()
                .is_none_or(|through| is_marked(through, row.node.0))
    }
}
