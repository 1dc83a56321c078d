//! Contexts one by one, each with its trace.

use std::collections::HashMap;
use std::io::{self, Write};

use lucce_contentid::StackId;
use lucce_decoder::escape::Text;
use lucce_decoder::{
    Context, ContextId, KindTotal, Listed, Profile, Submissions, Trace, Traces, Value,
};
use serde::{Serialize, Serializer};

use crate::cli::human::human;
use crate::cli::output::{grouped, percent, plural};
use crate::cli::started::StartedBy;
use crate::cli::style::Style;
use crate::cli::threshold::written;

use super::{Args, Totals, amount, bytes, value_of};

/// How long the operations of each context took whose bytes are shown: of another kind in the log, whose
/// numbers are the same.
fn times(profile: &Profile, kind: &KindTotal) -> HashMap<(StackId, Option<String>), u64> {
    let Some(times) = kind.known().times else {
        return HashMap::new();
    };
    let contexts = profile.contexts_of(&profile.events_of(times), &|_| ());
    let times = contexts.list.iter().map(|context| {
        let what = profile.detail(context).map(str::to_owned);
        ((context.stack, what), context.value)
    });
    times.collect()
}

/// The contexts that are listed: the first so many, as long as each is large enough.
pub fn shown<'c>(list: &'c [Context], args: &Args, sorted_by: Value, whole: u64) -> &'c [Context] {
    let top = if args.top == 0 { usize::MAX } else { args.top };
    let is_large = |context: &&Context| args.threshold.admits(sorted_by.of(context), whole);
    let number = list.iter().take(top).take_while(is_large).count();
    list.get(..number).unwrap_or_default()
}

#[derive(Serialize)]
pub struct Row<'r> {
    id: String,
    aliases: Vec<String>,
    /// The content id of its trace.
    stack: String,
    class: Option<&'r str>,
    count: u64,
    value: u64,
    /// The value, if it is in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// How long they took in all, if that is known beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    nanos: Option<u64>,
    /// Percent of what was sorted by.
    share: f64,
    frames: Listed<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<StartedBy>,
}

/// What is listed, made row by row while it is written: together the traces may be far longer than the log.
pub struct Rows<'r> {
    profile: &'r Profile,
    traces: Traces<'r>,
    pub list: Vec<(&'r Context, Trace, StackId)>,
    kind: &'r KindTotal,
    sorted_by: Value,
    whole: u64,
    times: HashMap<(StackId, Option<String>), u64>,
    /// With `--across-threads`.
    submissions: Option<Submissions>,
}

impl<'r> Rows<'r> {
    pub fn new(
        profile: &'r Profile,
        kind: &'r KindTotal,
        (totals, sorted_by): (&Totals, Value),
        contexts: &'r [Context],
        across_threads: bool,
    ) -> Self {
        let mut traces = Traces::new(profile);
        let list = contexts.iter().map(|context| {
            let trace = traces.of(context.id).unwrap_or(Trace::EMPTY);
            (context, trace, traces.stack(trace))
        });
        Rows {
            list: list.collect(),
            profile,
            traces,
            kind,
            sorted_by,
            whole: value_of(sorted_by, totals),
            times: times(profile, kind),
            submissions: across_threads.then(|| profile.submissions()),
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let number = |id: &ContextId| self.profile.number(*id).to_string();
        self.list.iter().map(move |(context, trace, stack)| {
            let class = self.profile.detail(context);
            let started = self.submissions.as_ref();
            let key = (context.stack, class.map(str::to_owned));
            Row {
                id: number(&context.id),
                aliases: context.aliases.iter().map(number).collect(),
                stack: stack.to_string(),
                class,
                count: context.count,
                value: context.value,
                bytes: bytes(self.kind, context.value),
                nanos: self.times.get(&key).copied(),
                share: percent(self.sorted_by.of(context), self.whole),
                frames: self.traces.listed(*trace, usize::MAX),
                started_by: started.map(|of| StartedBy::new(self.profile, of, context.id)),
            }
        })
    }

    /// About how much will be written, without traces of other threads.
    pub fn bytes(&self, as_json: bool) -> u64 {
        const ROW: u64 = 130;
        let sums = self.traces.sums(|_, frame| written(frame, as_json));
        let rows = self
            .list
            .iter()
            .map(|(_, trace, _)| sums.of(*trace).saturating_add(ROW));
        rows.fold(0, u64::saturating_add)
    }
}

impl Rows<'_> {
    pub fn write(&self, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let mut rows = self.rows().enumerate();
        rows.try_for_each(|(number, row)| row.write(number + 1, unit, out))
    }
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows())
    }
}

impl Row<'_> {
    fn write(&self, number: usize, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let count = grouped(self.count);
        let events = match (self.class, unit) {
            (Some(class), _) => format!("{count} × {}", Text(class)),
            (None, "bytes") => format!("{count} × events without a type"),
            (None, _) => plural(self.count, "event"),
        };
        let nanos = self
            .nanos
            .map_or_else(String::new, |nanos| human(nanos as f64, "ns") + "  ");
        let value = amount(self.value, unit).map_or_else(String::new, |text| text + "  ") + &nanos;
        let style = Style::of_output();
        let share = style.strong(format!("#{number} {:.2}%", self.share));
        let ids = style.faint(format!("{}  {}", self.id, self.stack));
        writeln!(out, "{share}  {value}{events}  {ids}")?;
        self.frames
            .iter()
            .try_for_each(|frame| writeln!(out, "\tat {}", style.frame(frame)))?;
        if let Some(started_by) = &self.started_by {
            started_by.write(out)?;
        }
        writeln!(out)
    }
}
