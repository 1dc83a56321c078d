//! `lucce ctl PID holders`: finds the GC root paths of sampled live objects.
//!
//! ```text
//! context ids ──► request to the agent ──► HoldersAnswer ──► TypeHolders by type ──► RootPathGroup: equal paths, counted
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use lucce_control::{ControlCommand, HolderSearchOptions, send_command};
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{ContextNumber, Profile, type_name};
use lucce_options::units::parse_duration_within;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::amounts::format_amount;
use super::output::{format_plural, lock_stdout, write_json};
use super::{CommandError, CommandStatus, ctl, open_profile, print_diagnostic};

#[derive(clap::Args)]
pub struct HoldersArgs {
    /// Number of the context, as `lucce leaks` prints it; all numbers, if it has several
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Find only objects of this type, named as in `lucce leaks` [default: some of each type of the context]
    #[arg(long = "type", value_name = "NAME", allow_hyphen_values = true)]
    of: Option<String>,
    /// Collect the whole heap to check objects without a path; the JVM stands still meanwhile
    #[arg(long)]
    gc: bool,
    #[command(flatten)]
    limits: SearchLimits,
}

/// How long a search may go on.
#[derive(clap::Args, Clone, Copy)]
pub struct SearchLimits {
    /// Maximum pause of the JVM by all walks together; the search then ends and prints what it found [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = parse_pause_budget)]
    pause_budget: Option<Duration>,
    /// Without --pause-budget: set no limit to the pauses
    #[arg(long)]
    yes: bool,
    /// Maximum number of walks; each finds the referrers of what the walk before found
    #[arg(long, value_name = "N", default_value_t = DEFAULT_WALKS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    walks: u32,
}

/// Default budget for the JVM's pauses.
const DEFAULT_BUDGET: Duration = Duration::from_secs(2);
/// Default number of walks of a search.
const DEFAULT_WALKS: u32 = 48;
const MAX_BUDGET: Duration = Duration::from_secs(86_400);

/// Parses a budget of at least a millisecond and at most a day.
///
/// # Errors
/// The text is not a duration, or outside of these bounds.
pub fn parse_pause_budget(text: &str) -> Result<Duration, String> {
    parse_duration_within(
        text,
        Duration::from_millis(1)..=MAX_BUDGET,
        "from 1ms to 1d",
    )
}

impl SearchLimits {
    /// The options for the next search. `spent`: the used part of the budget. An older agent has no budgets.
    fn remaining_walks(self, spent: Duration, has_budgets: bool) -> HolderSearchOptions {
        let left = self
            .effective_budget()
            .map(|budget| budget.saturating_sub(spent));
        HolderSearchOptions {
            max_walks: self.walks,
            budget: left.or(Some(NO_BOUND)).filter(|_| has_budgets),
            collect: false,
            type_descriptor: None,
        }
    }

    /// Default limits with this budget; `None`: the default budget.
    pub fn with_budget(pause_budget: Option<Duration>) -> SearchLimits {
        SearchLimits {
            pause_budget,
            yes: false,
            walks: DEFAULT_WALKS,
        }
    }

    /// The budget; `None`: unlimited.
    fn effective_budget(self) -> Option<Duration> {
        match self.pause_budget {
            None if self.yes => None,
            budget => Some(budget.unwrap_or(DEFAULT_BUDGET)),
        }
    }
}

/// Maximum number of types that a line lists.
const MAX_LISTED_TYPES: usize = 5;

/// The expected cost of a search.
#[derive(Deserialize)]
struct HoldersSearchCost {
    followed: u64,
    alive: u64,
    of: Option<String>,
    heap_bytes: Option<u64>,
    /// Absent in answers of older agents.
    types: Option<Vec<TypeAliveCount>>,
    /// Whether the agent can limit the VM's pauses; older ones cannot.
    #[serde(default)]
    budget: bool,
}

/// Number of objects of one type.
#[derive(Deserialize)]
struct TypeAliveCount {
    /// The type's descriptor.
    of: String,
    alive: u64,
}

/// The agent's answer.
#[derive(Deserialize)]
struct HoldersAnswer {
    followed: u64,
    alive: u64,
    looked_for: u64,
    pauses_us: Vec<u64>,
    cut: bool,
    over: bool,
    changed: u64,
    /// Paths in the order of their types.
    paths: Vec<Vec<RootPathLink>>,
    /// Paths that do not reach a root, in the order of their types. Older agents have none.
    #[serde(default)]
    unfinished: Vec<Vec<RootPathLink>>,
    #[serde(default)]
    out_of_budget: bool,
    #[serde(default)]
    collection_us: Option<u64>,
    /// Counts by type; absent in answers of older agents, which are of all types together.
    types: Option<Vec<TypeSearchCounts>>,
}

#[derive(Deserialize)]
struct TypeSearchCounts {
    /// The type's descriptor.
    of: Option<String>,
    followed: u64,
    alive: u64,
    looked_for: u64,
    changed: u64,
    /// Number of paths of this type.
    paths: usize,
    #[serde(default)]
    unfinished: usize,
    #[serde(default)]
    collected: u64,
    #[serde(default)]
    unreported: u64,
}

#[derive(Serialize, Deserialize, Clone)]
struct RootPathLink {
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    soft: bool,
    /// Whether the object waits for its finalizer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    finalizer: bool,
    /// Number of equal references in sequence.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    times: u64,
    /// The type of the referenced object.
    of: String,
    /// If that is a `java.lang.Class`: the class that it represents.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<String>,
}

fn once() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_once(times: &u64) -> bool {
    *times == 1
}

/// The result for one type. Pauses and the end of the search are of all types of the context id.
#[derive(Serialize)]
struct TypeHolders {
    schema: &'static str,
    version: u32,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<String>,
    class: Option<String>,
    followed: u64,
    alive: u64,
    looked_for: u64,
    /// Number of searched objects without a reported path.
    not_held: u64,
    /// Of these, the number that a collection has taken meanwhile.
    collected: u64,
    /// Of these, the number that survived a collection of the whole heap.
    unreported: u64,
    /// Number of objects that changed meanwhile, or whose path changed.
    changed: u64,
    /// Pauses in milliseconds.
    pauses: Vec<f64>,
    /// Whether there may be a shorter path.
    cut: bool,
    /// Whether the walks ended before all objects were found.
    over: bool,
    /// Whether they ended because the pause budget was used up.
    out_of_budget: bool,
    /// Duration of the requested collection in milliseconds.
    collection: Option<f64>,
    paths: Vec<RootPathGroup>,
    /// Paths that the walks did not follow to a root.
    unfinished: Vec<RootPathGroup>,
}

/// Objects with equal GC root paths.
#[derive(Serialize)]
struct RootPathGroup {
    objects: u64,
    /// The path of one of them, from the root to the object.
    links: Vec<RootPathLink>,
    /// Whether indexes in arrays or chains differ between the paths.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    elsewhere: bool,
}

/// Searches each context id separately: objects are followed by the id of their allocation.
pub fn run(pid: u32, args: &HoldersArgs, as_json: bool) -> Result<CommandStatus, CommandError> {
    let numbers = args.ids.iter().map(|id| parse_number(id));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let status: Value = parse_answer(&send_command(pid, &ControlCommand::Status)?)?;
    for (number, text) in numbers.iter().zip(&args.ids) {
        check_recorded_run(pid, &status, (*number, text))?;
    }
    // The log is optional: paths are printed without it also.
    let log = ctl::log_path_in(&status);
    let profile = log.and_then(|log| open_profile(&log).ok());
    let mut out = lock_stdout();
    let mut spent = Duration::ZERO;
    for (at, number) in numbers.into_iter().enumerate() {
        if at > 0 && !as_json {
            writeln!(out)?;
        }
        let context = SearchContext::new(number, profile.as_ref());
        let holders = match search_context(pid, (args, spent), &context)? {
            SearchAnswer::Nothing(why) => {
                report_no_holders(args, number, &why)?;
                continue;
            }
            SearchAnswer::Holders(holders) => holders,
        };
        let pauses = holders
            .first()
            .map_or(0.0, |of_type| of_type.pauses.iter().sum());
        spent += Duration::from_secs_f64(pauses / 1e3);
        if as_json {
            holders
                .iter()
                .try_for_each(|of_type| write_json(&mut out, of_type))?;
        } else {
            context.write(&mut out)?;
            write_types(&holders, &args.limits, &mut out)?;
        }
        out.flush()?;
    }
    out.flush()?;
    Ok(CommandStatus::Fine)
}

/// The context whose objects are searched.
struct SearchContext {
    number: ContextNumber,
    /// The content id of its trace, if the log can be read.
    stack: Option<String>,
}

impl SearchContext {
    fn new(number: ContextNumber, profile: Option<&Profile>) -> SearchContext {
        let trace = profile.and_then(|profile| profile.decode_trace(number.id).ok());
        let stack = trace.map(|trace| trace.stack.to_string());
        SearchContext { number, stack }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "context {}", self.number)?;
        match &self.stack {
            Some(stack) => writeln!(out, "  {stack}"),
            None => writeln!(out),
        }
    }
}

/// The result of a search for one context id.
enum SearchAnswer {
    /// There was no search, and why.
    Nothing(String),
    /// The result for each type.
    Holders(Vec<TypeHolders>),
}

/// Searches several context ids in turn; `spent`: the pauses of earlier walks.
fn search_context(
    pid: u32,
    (args, spent): (&HoldersArgs, Duration),
    context: &SearchContext,
) -> Result<SearchAnswer, CommandError> {
    let number = context.number;
    let ahead: HoldersSearchCost = parse_answer(&send_command(
        pid,
        &ControlCommand::Holders(vec![number.id.0], None),
    )?)?;
    if ahead.followed == 0 {
        let none = "no object of this number is followed now";
        return Ok(SearchAnswer::Nothing(format!(
            "{none}; `lucce leaks {pid}` lists contexts"
        )));
    }
    let wanted = match (&args.of, &ahead.types) {
        (Some(name), Some(types)) => match types.iter().find(|of_type| of_type.has_name(name)) {
            Some(of_type) => Some(of_type),
            None => return Ok(SearchAnswer::Nothing(other_types(name, types))),
        },
        (Some(_), None) => {
            print_diagnostic(
                "the agent is older than this command and tells no types apart: this is of all of them",
            );
            None
        }
        (None, _) => None,
    };
    if wanted.map_or(ahead.alive, |of_type| of_type.alive) > 0 && spent.is_zero() {
        announce_walks(pid, args.limits, &ahead)?;
    }
    let walks = HolderSearchOptions {
        collect: args.gc && ahead.budget,
        type_descriptor: wanted.map(|of_type| of_type.of.clone()),
        ..args.limits.remaining_walks(spent, ahead.budget)
    };
    let of = walks.type_descriptor.clone().or(ahead.of);
    let answer = ControlCommand::Holders(vec![number.id.0], Some(walks));
    let answer: HoldersAnswer = parse_answer(&send_command(pid, &answer)?)?;
    Ok(SearchAnswer::Holders(TypeHolders::from_answer(
        context, of, answer,
    )))
}

/// The addition of `lucce leaks PID --holders`: the root paths of one leak's objects.
#[derive(Serialize)]
#[serde(transparent)]
pub struct LeakHolders {
    holders: Vec<TypeHolders>,
    #[serde(skip)]
    limits: SearchLimits,
}

/// Searches the root paths of objects of one type, with all context ids of their context in one request.
///
/// # Errors
/// The agent does not answer, or is too old.
pub fn find_holders(
    pid: u32,
    (ids, class): (&[String], &str),
    limits: SearchLimits,
    profile: &Profile,
) -> Result<LeakHolders, CommandError> {
    let numbers = ids.iter().take(MOST_NUMBERS).map(|id| parse_number(id));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let mut holders = Vec::new();
    let (mut wanted, mut found) = (None, Vec::new());
    for number in &numbers {
        let ahead: HoldersSearchCost = parse_answer(&send_command(
            pid,
            &ControlCommand::Holders(vec![number.id.0], None),
        )?)?;
        let types = ahead.types.iter().flatten();
        let name = EscapedText(class).to_string();
        let mut alive = types.filter(|of_type| of_type.alive > 0);
        if let Some(of_type) = alive.find(|of_type| of_type.has_name(&name)) {
            wanted = Some((of_type.of.clone(), ahead));
            found.push(number);
        }
    }
    if let (Some((of, ahead)), Some(first)) = (wanted, found.first()) {
        announce_walks(pid, limits, &ahead)?;
        let walks = HolderSearchOptions {
            type_descriptor: Some(of.clone()),
            ..limits.remaining_walks(Duration::ZERO, ahead.budget)
        };
        let numbers = found.iter().map(|number| number.id.0);
        // An older agent takes only one context id.
        let numbers = match ahead.budget {
            true => numbers.collect(),
            false => numbers.take(1).collect(),
        };
        let answer: HoldersAnswer = parse_answer(&send_command(
            pid,
            &ControlCommand::Holders(numbers, Some(walks)),
        )?)?;
        let context = SearchContext::new(**first, Some(profile));
        holders = TypeHolders::from_answer(&context, Some(of), answer);
    }
    Ok(LeakHolders { holders, limits })
}

impl LeakHolders {
    /// Writes the paths as text.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "what holds such objects:")?;
        match self.holders.is_empty() {
            true => writeln!(out, "none of them is alive any more")?,
            false => write_types(&self.holders, &self.limits, out)?,
        }
        writeln!(out)
    }
}

/// Maximum number of context ids in one request.
const MOST_NUMBERS: usize = 256;

/// The budget for `--yes`, practically unlimited.
const NO_BOUND: Duration = Duration::from_secs(86_400);

/// Reports that nothing was found; with several context ids, this is no error.
fn report_no_holders(
    args: &HoldersArgs,
    number: ContextNumber,
    why: &str,
) -> Result<(), CommandError> {
    let text = format!("{number}: {why}");
    if args.ids.len() == 1 {
        return Err(CommandError::Usage(text));
    }
    print_diagnostic(text);
    Ok(())
}

fn other_types(name: &str, types: &[TypeAliveCount]) -> String {
    let others = join_first_names(types.iter().map(|of_type| type_name(&of_type.of)));
    format!(
        "no {} that was made there is followed now; there are {others}",
        EscapedText(name)
    )
}

/// Joins the first names, and the number of others.
fn join_first_names(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED_TYPES);
    let named: Vec<_> = names
        .take(MAX_LISTED_TYPES)
        .map(|name| EscapedText(&name).to_string())
        .collect();
    match more {
        0 => named.join(", "),
        _ => format!(
            "{} and {}",
            named.join(", "),
            format_plural(more as u64, "more type")
        ),
    }
}

/// The option for a printed type, quoted for a shell.
pub fn type_option(class: &str) -> String {
    let class = EscapedText(class).to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_/".contains(c);
    match class.chars().all(is_plain) {
        true => format!("--type {class}"),
        false => format!("--type '{}'", class.replace('\'', r"'\''")),
    }
}

impl TypeAliveCount {
    fn has_name(&self, name: &str) -> bool {
        EscapedText(&type_name(&self.of)).to_string() == name
    }
}

fn parse_number(text: &str) -> Result<ContextNumber, CommandError> {
    match ContextNumber::parse_all(text).as_slice() {
        [number] => Ok(*number),
        _ => Err(CommandError::Usage(format!(
            "{text:?} is no number: lucce:RUN:0x…, as `lucce leaks` prints it"
        ))),
    }
}

/// Checks that a context id belongs to the JVM's current run.
fn check_recorded_run(
    pid: u32,
    status: &Value,
    (number, text): (ContextNumber, &str),
) -> Result<(), CommandError> {
    let run = number.run.map(|run| run.to_string());
    match run.is_none_or(|run| status["run"] == run) {
        true => Ok(()),
        false => Err(CommandError::Usage(format!(
            "{text} is a number of another run: process {pid} records {}",
            EscapedText(status["run"].as_str().unwrap_or("none"))
        ))),
    }
}

fn parse_answer<T: for<'a> Deserialize<'a>>(answer: &str) -> Result<T, CommandError> {
    serde_json::from_str(answer)
        .map_err(|_| CommandError::Refused("the answer is foreign".into(), CommandStatus::Damaged))
}

/// Announces the expected cost of the walks.
fn announce_walks(
    pid: u32,
    limits: SearchLimits,
    ahead: &HoldersSearchCost,
) -> Result<(), CommandError> {
    if !ahead.budget {
        return match limits.yes {
            true => Ok(()),
            false => Err(CommandError::Usage(format!(
                "the agent in JVM {pid} is older than this command and does not bound how long walks stop the JVM: say --yes to walk through its heap"
            ))),
        };
    }
    let heap = ahead.heap_bytes.map_or_else(String::new, |bytes| {
        format!("{} in the heap; ", format_amount(bytes as f64, "bytes"))
    });
    let bound = match limits.effective_budget() {
        Some(budget) => format!(
            "{} together (--pause-budget)",
            format_amount(budget.as_nanos() as f64, "ns")
        ),
        None => "as long as they take".to_owned(),
    };
    print_diagnostic(format_args!(
        "{heap}walks may stop JVM {pid} for {bound}; a path of n steps takes about n walks, at most {}",
        limits.walks
    ));
    Ok(())
}

impl TypeHolders {
    /// `of`: the type, if the agent's answer has none.
    fn from_answer(
        context: &SearchContext,
        of: Option<String>,
        answer: HoldersAnswer,
    ) -> Vec<TypeHolders> {
        let all = TypeSearchCounts {
            of,
            followed: answer.followed,
            alive: answer.alive,
            looked_for: answer.looked_for,
            changed: answer.changed,
            paths: answer.paths.len(),
            unfinished: answer.unfinished.len(),
            collected: 0,
            unreported: 0,
        };
        let pauses: Vec<_> = answer.pauses_us.iter().map(|us| *us as f64 / 1e3).collect();
        let mut paths = answer.paths.into_iter();
        let mut unfinished = answer.unfinished.into_iter();
        let of_type = |of_type: TypeSearchCounts| {
            let paths: Vec<_> = paths.by_ref().take(of_type.paths).collect();
            let unfinished: Vec<_> = unfinished.by_ref().take(of_type.unfinished).collect();
            let found = (paths.len() + unfinished.len()) as u64 + of_type.changed;
            TypeHolders {
                schema: "lucce-holders",
                version: 1,
                id: context.number.to_string(),
                stack: context.stack.clone(),
                class: of_type.of.as_deref().map(type_name),
                followed: of_type.followed,
                alive: of_type.alive,
                looked_for: of_type.looked_for,
                not_held: of_type.looked_for.saturating_sub(found),
                collected: of_type.collected,
                unreported: of_type.unreported,
                changed: of_type.changed,
                pauses: pauses.clone(),
                cut: answer.cut,
                over: answer.over,
                out_of_budget: answer.out_of_budget,
                collection: answer.collection_us.map(|us| us as f64 / 1e3),
                paths: group_paths(paths),
                unfinished: group_paths(unfinished),
            }
        };
        let types = answer.types.filter(|types| !types.is_empty());
        let types = types.unwrap_or_else(|| vec![all]);
        types.into_iter().map(of_type).collect()
    }

    fn class_or_default(&self) -> &str {
        self.class.as_deref().unwrap_or("objects")
    }

    fn write(&self, limits: &SearchLimits, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{}: {} followed, {} alive, {} of them looked for",
            EscapedText(self.class_or_default()),
            super::output::grouped(self.followed),
            super::output::grouped(self.alive),
            self.looked_for
        )?;
        for held in &self.paths {
            held.write_head(self.looked_for, "held by", out)?;
            held.write_links(out)?;
        }
        for held in &self.unfinished {
            held.write_head(self.looked_for, "held by what was not found", out)?;
            match held.links.is_empty() {
                true => writeln!(out, "\tno reference was found yet")?,
                false => {
                    writeln!(out, "\t…")?;
                    held.write_links(out)?;
                }
            }
        }
        writeln!(out)?;
        self.write_unexplained(limits, out)
    }

    fn has_unexplained(&self) -> bool {
        self.not_held > 0 || self.changed > 0 || !self.unfinished.is_empty()
    }

    /// Writes which objects were not found, and why.
    fn write_unexplained(&self, limits: &SearchLimits, out: &mut impl Write) -> io::Result<()> {
        let objects = |number: u64| format_plural(number, "object");
        if !self.unfinished.is_empty() {
            writeln!(out, "{}", self.describe_search_end(limits))?;
        }
        if self.collected > 0 {
            writeln!(
                out,
                "nothing held {}: a collection has taken {} meanwhile",
                objects(self.collected),
                if self.collected == 1 { "it" } else { "them" }
            )?;
        }
        if self.unreported > 0 {
            writeln!(
                out,
                "something holds {} that the JVM's heap walk does not report, such as a call site or a field of java.lang.Class: a collection has left {0} alive. `jcmd PID GC.heap_dump FILE` shows more",
                objects(self.unreported)
            )?;
        }
        let unknown = self
            .not_held
            .saturating_sub(self.collected + self.unreported);
        if unknown > 0 {
            writeln!(
                out,
                "no reference to {} was found, and no collection has taken {} yet: --gc collects the heap and tells whether anything holds {1}",
                objects(unknown),
                if unknown == 1 { "it" } else { "them" }
            )?;
        }
        if self.changed > 0 {
            writeln!(
                out,
                "what held {} changed meanwhile: ask again",
                objects(self.changed)
            )?;
        }
        Ok(())
    }

    /// Why the search ended early, and how to continue it.
    fn describe_search_end(&self, limits: &SearchLimits) -> String {
        let walks = self.pauses.len() as u64;
        let budget = limits.effective_budget().unwrap_or(NO_BOUND);
        if self.out_of_budget {
            return format!(
                "the search ended because its walks had stopped the JVM for {}: --pause-budget {}s goes further",
                format_amount(budget.as_nanos() as f64, "ns"),
                format_seconds(budget * 8)
            );
        }
        match walks < u64::from(limits.walks) {
            true => "the search ended after a minute: `jcmd PID GC.heap_dump FILE` shows more"
                .to_owned(),
            false => format!(
                "the search ended after {}: --walks {} goes further, or ask for the number of what the chain is made of",
                format_plural(walks, "walk"),
                limits.walks.saturating_mul(4).min(1000)
            ),
        }
    }

    /// Writes facts of the search.
    fn write_search(&self, out: &mut impl Write) -> io::Result<()> {
        if self.cut {
            writeln!(
                out,
                "more objects refer to some on these paths than were looked at: there may be a shorter path"
            )?;
        }
        let most = self.pauses.iter().copied().fold(0.0, f64::max);
        let sum: f64 = self.pauses.iter().sum();
        if let Some(collection) = self.collection {
            writeln!(
                out,
                "the collection that was asked for took {}",
                format_amount(collection * 1e6, "ns")
            )?;
        }
        writeln!(
            out,
            "{}: the JVM stood still for {} at most, {} together",
            format_plural(self.pauses.len() as u64, "walk"),
            format_amount(most * 1e6, "ns"),
            format_amount(sum * 1e6, "ns")
        )
    }
}

/// Writes the results of one search for all types of a context id.
fn write_types(
    types: &[TypeHolders],
    limits: &SearchLimits,
    out: &mut impl Write,
) -> io::Result<()> {
    let (looked_for, others): (Vec<_>, Vec<_>) =
        types.iter().partition(|of_type| of_type.looked_for > 0);
    let Some(any) = looked_for.first() else {
        for of_type in types.iter().take(MAX_LISTED_TYPES) {
            of_type.write(limits, out)?;
        }
        return writeln!(out, "nothing was walked: none of them is alive any more");
    };
    let mut before: Option<&TypeHolders> = None;
    for of_type in &looked_for {
        if before.is_some_and(TypeHolders::has_unexplained) {
            writeln!(out)?;
        }
        of_type.write(limits, out)?;
        before = Some(of_type);
    }
    let others = others.iter().filter(|of_type| of_type.alive > 0);
    let others: Vec<_> = others
        .map(|of_type| of_type.class_or_default().to_owned())
        .collect();
    if !others.is_empty() {
        let others = join_first_names(others.into_iter());
        writeln!(
            out,
            "not looked for, as types are many (--type NAME): {others}"
        )?;
    }
    any.write_search(out)
}

/// Formats a duration for `--pause-budget`.
fn format_seconds(time: Duration) -> String {
    format!("{}", time.as_millis() as f64 / 1e3)
}

/// Groups paths that differ only in indexes of arrays and chains, the most frequent first.
fn group_paths(paths: Vec<Vec<RootPathLink>>) -> Vec<RootPathGroup> {
    let mut by_shape: BTreeMap<Vec<String>, RootPathGroup> = BTreeMap::new();
    for path in paths {
        let links: Vec<RootPathLink> = path
            .into_iter()
            .map(RootPathLink::with_java_names)
            .collect();
        let shape = links.iter().map(|link| link.to_text(false)).collect();
        match by_shape.get_mut(&shape) {
            None => {
                let held = RootPathGroup {
                    objects: 1,
                    links,
                    elsewhere: false,
                };
                by_shape.insert(shape, held);
            }
            Some(held) => {
                held.objects += 1;
                let place = |link: &RootPathLink| (link.index, link.times);
                held.elsewhere |= held.links.iter().map(place).ne(links.iter().map(place));
            }
        }
    }
    let mut all: Vec<RootPathGroup> = by_shape.into_values().collect();
    all.sort_by_key(|held| std::cmp::Reverse(held.objects));
    all
}

impl RootPathGroup {
    fn write_head(&self, of: u64, how: &str, out: &mut impl Write) -> io::Result<()> {
        let elsewhere = match self.elsewhere {
            true if self.links.iter().any(|link| link.times > 1) => {
                " (one of them; the others are elsewhere in the chain)"
            }
            true => " (one of them; the others are elsewhere in the arrays)",
            false => "",
        };
        let are = if self.objects == 1 { "is" } else { "are" };
        writeln!(out, "\n{} of {of} {are} {how}{elsewhere}:", self.objects)
    }

    fn write_links(&self, out: &mut impl Write) -> io::Result<()> {
        self.links
            .iter()
            .try_for_each(|link| writeln!(out, "\t{}", link.to_text(true)))
    }
}

impl RootPathLink {
    /// Replaces descriptors by Java type names.
    fn with_java_names(mut self) -> RootPathLink {
        self.of = type_name(&self.of);
        self.class = self.class.as_deref().map(type_name);
        self.names = self.names.as_deref().map(type_name);
        self
    }

    /// Formats a link; `exactly`: with the index in an array.
    fn to_text(&self, exactly: bool) -> String {
        let member = || {
            let (class, name) = (self.class.as_deref(), self.name.as_deref());
            format!(
                "{}.{}",
                EscapedText(class.unwrap_or("?")),
                EscapedText(name.unwrap_or("?"))
            )
        };
        let thread = || format!("\"{}\"", EscapedText(self.thread.as_deref().unwrap_or("?")));
        let line = self
            .line
            .map_or_else(String::new, |line| format!(":{line}"));
        let until = match (self.soft, self.finalizer) {
            (true, _) => "soft reference, ",
            (_, true) => "waits for its finalizer, ",
            _ => "",
        };
        let times = match self.times {
            0 | 1 => String::new(),
            _ if !exactly => "… × ".to_owned(),
            times => format!("… {} × ", super::output::grouped(times)),
        };
        let class = || EscapedText(self.class.as_deref().unwrap_or("?")).to_string();
        let by = match self.by.as_str() {
            "static" => format!("static field {}", member()),
            "field" => format!("field {}", member()),
            "element" if exactly => format!("element [{}]", self.index.unwrap_or(-1)),
            "element" => "element".to_owned(),
            "thread" => format!("thread {}", thread()),
            "local" => format!("variable in {}{line} of thread {}", member(), thread()),
            "jni_local" if self.name.is_some() => {
                format!(
                    "native code's reference in {} of thread {}",
                    member(),
                    thread()
                )
            }
            "jni_local" => format!("native code's reference in thread {}", thread()),
            "jni_global" => "global reference of native code".to_owned(),
            "monitor" => "monitor that is held".to_owned(),
            "system_class" => "class of the JVM's own loaders".to_owned(),
            "vm" => "the JVM itself".to_owned(),
            "class" => "its class".to_owned(),
            "loaded_class" => "class that it has loaded".to_owned(),
            "class_loader" if self.class.is_some() => format!("class loader of {}", class()),
            "superclass" if self.class.is_some() => format!("superclass of {}", class()),
            "interface" if self.class.is_some() => format!("interface of {}", class()),
            "constant_pool" if self.class.is_some() => format!("constant pool of {}", class()),
            "protection_domain" if self.class.is_some() => {
                format!("protection domain of {}", class())
            }
            other => EscapedText(&other.replace('_', " ")).to_string(),
        };
        let names = self.names.as_deref();
        let names = names.map_or_else(String::new, |names| format!(" of {}", EscapedText(names)));
        format!("{times}{until}{by}: {}{names}", EscapedText(&self.of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(by: &str, of: &str, index: Option<i64>) -> RootPathLink {
        RootPathLink {
            by: by.into(),
            class: Some("La/B;".into()),
            name: Some("all".into()),
            index,
            line: None,
            thread: None,
            soft: false,
            finalizer: false,
            times: 1,
            of: of.into(),
            names: None,
        }
    }

    #[test]
    fn paths_that_differ_in_the_length_of_a_chain_only_are_one() {
        let path = |times| {
            vec![RootPathLink {
                times,
                ..link("field", "La/B;", None)
            }]
        };
        let held = group_paths(vec![path(9), path(5_000), path(1)]);
        let objects: Vec<_> = held.iter().map(|held| held.objects).collect();
        assert_eq!(objects, [2, 1]);
        let mut text = Vec::new();
        held[0].write_head(3, "held by", &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("the others are elsewhere in the chain"),
            "{text}"
        );
    }

    const LIMITS: SearchLimits = SearchLimits {
        pause_budget: None,
        yes: false,
        walks: 48,
    };

    #[test]
    fn paths_that_differ_in_places_only_are_one() {
        let path = |at| {
            vec![
                link("static", "[Ljava/lang/Object;", None),
                link("element", "La/C;", Some(at)),
            ]
        };
        let held = group_paths(vec![
            vec![link("thread", "La/C;", None)],
            path(1),
            path(2),
            path(1),
        ]);
        assert_eq!(
            held.iter().map(|held| held.objects).collect::<Vec<_>>(),
            [3, 1]
        );
        let mut text = Vec::new();
        held[0].write_head(4, "held by", &mut text).unwrap();
        held[0].write_links(&mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "\n3 of 4 are held by (one of them; the others are elsewhere in the arrays):\n\tstatic field a.B.all: java.lang.Object[]\n\telement [1]: a.C\n"
        );
    }

    fn told(answer: HoldersAnswer) -> String {
        let number = ContextNumber {
            run: None,
            id: lucce_decoder::ContextId(1),
        };
        let context = SearchContext::new(number, None);
        let holders = TypeHolders::from_answer(&context, Some("La/C;".into()), answer);
        let mut text = Vec::new();
        write_types(&holders, &LIMITS, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn answer(looked_for: u64, walks: usize) -> HoldersAnswer {
        HoldersAnswer {
            followed: looked_for,
            alive: looked_for,
            looked_for,
            pauses_us: vec![1_000; walks],
            cut: false,
            over: false,
            changed: 0,
            paths: Vec::new(),
            unfinished: Vec::new(),
            out_of_budget: false,
            collection_us: None,
            types: None,
        }
    }

    #[test]
    fn a_path_without_a_beginning_says_why_and_how_to_go_on() {
        let chain = RootPathLink {
            times: 4_096,
            ..link("field", "La/B;", None)
        };
        let text = |walks: usize, out_of_budget| {
            told(HoldersAnswer {
                over: true,
                out_of_budget,
                unfinished: vec![vec![chain.clone()], vec![chain.clone()]],
                ..answer(2, walks)
            })
        };
        let walks = text(48, false);
        assert!(
            walks.contains(
                "\n2 of 2 are held by what was not found:\n\t…\n\t… 4,096 × field a.B.all: a.B\n"
            ) && walks.contains("after 48 walks: --walks 192 goes further")
                && !walks.contains("held by nothing"),
            "{walks}"
        );
        let minute = text(20, false);
        assert!(
            minute.contains("after a minute") && !minute.contains("--walks"),
            "{minute}"
        );
        let budget = text(3, true);
        assert!(
            budget.contains("had stopped the JVM for 2.00 s: --pause-budget 16s goes further"),
            "{budget}"
        );
    }

    /// An object is only reported as unreachable after a collection has taken it.
    #[test]
    fn objects_without_a_path_are_said_to_be_what_they_are() {
        let of_type = |collected, unreported| TypeSearchCounts {
            of: Some("La/C;".into()),
            followed: 3,
            alive: 3,
            looked_for: 3,
            changed: 0,
            paths: 0,
            unfinished: 0,
            collected,
            unreported,
        };
        let text = |collected, unreported| {
            told(HoldersAnswer {
                types: Some(vec![of_type(collected, unreported)]),
                ..answer(3, 2)
            })
        };
        let unknown =
            "no reference to 3 objects was found, and no collection has taken them yet: --gc";
        let collected = "nothing held 3 objects: a collection has taken them meanwhile";
        let unreported = "something holds 3 objects that the JVM's heap walk does not report";
        for (text, wanted) in [
            (text(0, 0), unknown),
            (text(3, 0), collected),
            (text(0, 3), unreported),
        ] {
            let said = [unknown, collected, unreported].map(|line| text.contains(line));
            assert!(text.contains(wanted), "{text}");
            assert_eq!(said.iter().filter(|said| **said).count(), 1, "{text}");
        }
    }

    #[test]
    fn a_budget_is_a_time_up_to_a_day() {
        for (text, budget) in [("0.25", 250), ("2s", 2_000), ("1ms", 1), ("1d", 86_400_000)] {
            assert_eq!(parse_pause_budget(text), Ok(Duration::from_millis(budget)));
        }
        for wrong in ["", "0", "-1", "NaN", "inf", "1e9", "25h"] {
            assert!(parse_pause_budget(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn classes_and_chains_are_named() {
        let named = |by: &str, class: Option<&str>, names: Option<&str>, times| {
            let link = RootPathLink {
                class: class.map(str::to_owned),
                names: names.map(str::to_owned),
                times,
                name: (by == "field").then(|| "next".to_owned()),
                ..link(by, "La/X;", None)
            };
            link.with_java_names().to_text(true)
        };
        assert_eq!(
            named("class", None, Some("La/B;"), 1),
            "its class: a.X of a.B"
        );
        assert_eq!(
            named("loaded_class", None, Some("La/B;"), 1),
            "class that it has loaded: a.X of a.B"
        );
        assert_eq!(
            named("class_loader", Some("La/B;"), None, 1),
            "class loader of a.B: a.X"
        );
        assert_eq!(
            named("field", Some("La/X;"), None, 12_345),
            "… 12,345 × field a.X.next: a.X"
        );
    }

    #[test]
    fn each_type_has_paths_of_its_own() {
        let of_type = |of: &str, looked_for, paths| TypeSearchCounts {
            of: Some(of.into()),
            followed: 30,
            alive: 20,
            looked_for,
            changed: 0,
            paths,
            unfinished: 0,
            collected: u64::from(of == "[J"),
            unreported: 0,
        };
        let static_of = |name: &str, of: &str| RootPathLink {
            name: Some(name.into()),
            ..link("static", of, None)
        };
        let text = told(HoldersAnswer {
            followed: 90,
            alive: 60,
            paths: vec![
                vec![static_of("LEAK", "La/Node;")],
                vec![static_of("LEAK", "La/Node;")],
                vec![static_of("CACHE", "[J")],
            ],
            types: Some(vec![
                of_type("La/Node;", 2, 2),
                of_type("[J", 2, 1),
                of_type("La/C$D;", 0, 0),
            ]),
            ..answer(3, 1)
        });
        let wanted = "\
a.Node: 30 followed, 20 alive, 2 of them looked for

2 of 2 are held by:
\tstatic field a.B.LEAK: a.Node

long[]: 30 followed, 20 alive, 2 of them looked for

1 of 2 is held by:
\tstatic field a.B.CACHE: long[]

nothing held 1 object: a collection has taken it meanwhile
not looked for, as types are many (--type NAME): a.C$D
";
        let (found, pauses) = text.split_at(wanted.len());
        assert_eq!(found, wanted);
        assert!(
            pauses.starts_with("1 walk: the JVM stood still for"),
            "{pauses}"
        );
    }

    /// `leaks` prints the command.
    #[test]
    fn a_type_is_quoted_for_shells_and_found_again() {
        let is = |of: &str, name: &str| {
            let (of, alive) = (of.into(), 1);
            TypeAliveCount { of, alive }.has_name(name)
        };
        for (of, name, option) in [
            ("La/B;", "a.B", "--type a.B"),
            ("LMix$Node;", "Mix$Node", "--type 'Mix$Node'"),
            ("[J", "long[]", "--type 'long[]'"),
            ("La/It's;", "a.It's", r"--type 'a.It'\''s'"),
            ("La/\u{1b};", "a.\\u001b", r"--type 'a.\u001b'"),
        ] {
            assert_eq!(type_option(&type_name(of)), option);
            assert!(is(of, name), "{name}");
        }
        assert!(!is("LMix$Node;", "Mix$Nod"));
    }

    #[test]
    fn names_change_no_terminal() {
        let mut hostile = link("field", "La/\u{1b}[2J;", None);
        hostile.name = Some("\nx".into());
        assert_eq!(
            hostile.with_java_names().to_text(true),
            "field a.B.\\nx: a.\\u001b[2J"
        );
    }
}
