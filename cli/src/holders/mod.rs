//! `lucce ctl PID holders`: finds the GC root paths of sampled live objects.
//!
//! ```text
//! context ids ──► request to the agent ──► HoldersAnswer ──► TypeHolders by type ──► RootPathGroup: equal paths, counted
//! ```
//! Reading order: `answer` (of the agent), `root_path` (paths), `type_holders` (the result for a type), this file.

mod answer;
#[cfg(test)]
mod holders_tests;
mod root_path;
mod type_holders;

use std::io::{self, Write};
use std::time::Duration;

use lucce_control::{ControlCommand, HolderSearchOptions, send_command};
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{ContextNumber, Profile, type_name};
use lucce_options::units::parse_duration_within;

use serde::Serialize;
use serde_json::Value;

use crate::amounts::format_amount;
use crate::output::{lock_stdout, write_json};
use crate::{CommandError, CommandStatus, agent_status, open_profile, print_diagnostic};
use answer::{HoldersAnswer, HoldersSearchCost, TypeAliveCount, parse_answer};
use type_holders::{SearchContext, TypeHolders, join_first_names, write_types};

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

/// Searches each context id separately: objects are followed by the id of their allocation.
pub fn run(pid: u32, args: &HoldersArgs, as_json: bool) -> Result<CommandStatus, CommandError> {
    let numbers = args.ids.iter().map(|id| parse_number(id));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let status: Value = parse_answer(&send_command(pid, &ControlCommand::Status)?)?;
    for (number, text) in numbers.iter().zip(&args.ids) {
        check_recorded_run(pid, &status, (*number, text))?;
    }
    // The log is optional: paths are printed without it also.
    let log = agent_status::read_log_path(&status);
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

/// The option for a printed type, quoted for a shell.
pub fn type_option(class: &str) -> String {
    let class = EscapedText(class).to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_/".contains(c);
    match class.chars().all(is_plain) {
        true => format!("--type {class}"),
        false => format!("--type '{}'", class.replace('\'', r"'\''")),
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
