//! `lucce open`: what is open, and what nothing has closed, by the context that opened it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    GROWTH_PARTS, OpenedContext, OpenedResources, Profile, StackFrame, find_thread_tags,
    format_tags, list_open_resources,
};
use serde::Serialize;

use super::amounts::format_amount;
use super::classes::ClassFilterArgs;
use super::output::{format_plural, grouped, lock_stdout, write_json};
use super::target::{RunTarget, TargetArgs};
use super::{CommandError, CommandStatus, prefix_path, report_damage};

/// Print what is open by the context that opened it, oldest first, and what was collected but never closed.
///
/// The run must have events=open. What the JDK keeps for itself comes last.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce open 1234
  lucce open run-1234.lucce --top 0 --depth 0
  lucce run --events open -- java -jar shop.jar")]
pub struct OpenArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Maximum number of contexts; 0: all
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Maximum number of frames of a context; 0: all
    #[arg(long, value_name = "N", default_value_t = 4)]
    depth: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    classes: ClassFilterArgs,
}

pub fn run(args: &OpenArgs) -> Result<CommandStatus, CommandError> {
    let target = RunTarget::from_name(&args.target.jvm)?;
    let profile = args.classes.open_log(&target.log)?;
    let is_running = target.pid.is_some() && !target.has_ended() && !profile.ended;
    let resources = list_open_resources(&profile, is_running.then(milliseconds_now));
    let damaged =
        |text: String| CommandError::Absent(prefix_path(&target.log, text), CommandStatus::Damaged);
    let Some(resources) = resources.map_err(|error| damaged(error.to_string()))? else {
        let text = "no resources were recorded: start the JVM with events=open";
        return Err(CommandError::Usage(prefix_path(&target.log, text)));
    };
    let report = OpenReport::new(&profile, &resources, args);
    let mut out = lock_stdout();
    match args.json {
        true => write_json(&mut out, &report)?,
        false => report.write(&mut out, args.depth)?,
    }
    out.flush()?;
    Ok(report_damage(
        &target.log,
        profile.damage.as_ref(),
        CommandStatus::Fine,
    ))
}

/// Milliseconds since 1970.
pub fn milliseconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}

#[derive(Serialize)]
struct OpenReport {
    schema: &'static str,
    version: u32,
    run: Option<String>,
    #[serde(flatten)]
    sums: ResourceSums,
    oldest_millis: Option<u64>,
    /// Contexts with open resources.
    contexts: Vec<OpenRow>,
    /// Contexts whose resources were collected before anything closed them.
    never_closed: Vec<ClosedContextRow>,
    /// Contexts without either.
    all_closed: Vec<ClosedContextRow>,
    types: Vec<TypeRow>,
    /// Openings without any frame of the selected classes.
    outside: u64,
    /// Number of contexts, of which the first are listed.
    #[serde(skip)]
    different: [usize; 2],
    #[serde(skip)]
    summary: String,
}

/// Numbers of resources.
#[derive(Serialize, Clone, Copy, Default)]
pub struct ResourceSums {
    pub opened: u64,
    pub closed: u64,
    pub open: u64,
    /// Collected before anything closed them.
    pub collected: u64,
    /// Mapped files whose buffer was collected, which unmaps them.
    unmapped: u64,
}

#[derive(Serialize)]
struct OpenRow {
    #[serde(flatten)]
    place: ResourcePlace,
    #[serde(flatten)]
    sums: ResourceSums,
    oldest_millis: u64,
    newest_millis: u64,
    /// Of the open ones, how many were opened in each quarter of the run.
    opened_by_quarter: [u64; GROWTH_PARTS],
    #[serde(flatten)]
    openers: OpenerCounts,
}

/// Open resources of a context, by the thread that opened them and its tags.
#[derive(Serialize, Default)]
pub struct OpenerCounts {
    threads: BTreeMap<String, u64>,
    tags: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct ClosedContextRow {
    #[serde(flatten)]
    place: ResourcePlace,
    #[serde(flatten)]
    sums: ResourceSums,
}

#[derive(Serialize)]
struct ResourcePlace {
    id: String,
    stack: String,
    #[serde(rename = "type")]
    type_name: String,
    kept_by_jdk: bool,
    frames: Vec<StackFrame>,
    /// The frame by which people know the context.
    #[serde(skip)]
    place: String,
}

#[derive(Serialize)]
struct TypeRow {
    #[serde(rename = "type")]
    type_name: String,
    #[serde(flatten)]
    sums: ResourceSums,
}

impl ResourceSums {
    pub fn from_context(row: &OpenedContext) -> ResourceSums {
        let [collected, unmapped] = match row.has_close() {
            true => [row.collected, 0],
            false => [0, row.collected],
        };
        ResourceSums {
            opened: row.opened,
            closed: row.closed(),
            open: row.open.len() as u64,
            collected,
            unmapped,
        }
    }

    fn add_sums(&mut self, more: ResourceSums) {
        self.opened = self.opened.saturating_add(more.opened);
        self.closed = self.closed.saturating_add(more.closed);
        self.open = self.open.saturating_add(more.open);
        self.collected = self.collected.saturating_add(more.collected);
        self.unmapped = self.unmapped.saturating_add(more.unmapped);
    }
}

impl ResourcePlace {
    fn new(profile: &Profile, row: &OpenedContext) -> ResourcePlace {
        ResourcePlace {
            id: profile.context_number(row.trace.id).to_string(),
            stack: row.trace.stack.to_string(),
            type_name: row.type_name.clone(),
            kept_by_jdk: row.kept_by_jdk,
            frames: row.trace.frames.clone(),
            place: row.trace.place_text(),
        }
    }

    fn write_frames(&self, out: &mut impl Write, depth: usize) -> io::Result<()> {
        let depth = if depth == 0 { usize::MAX } else { depth };
        for frame in self.frames.iter().take(depth) {
            writeln!(out, "        at {frame}")?;
        }
        match self.frames.len().saturating_sub(depth) {
            0 => Ok(()),
            left => writeln!(out, "        {} more (--depth 0)", grouped(left as u64)),
        }
    }
}

impl ClosedContextRow {
    fn new(profile: &Profile, row: &OpenedContext) -> ClosedContextRow {
        ClosedContextRow {
            place: ResourcePlace::new(profile, row),
            sums: ResourceSums::from_context(row),
        }
    }
}

impl OpenerCounts {
    pub fn new(profile: &Profile, row: &OpenedContext) -> OpenerCounts {
        let mut counts = OpenerCounts::default();
        for resource in &row.open {
            let thread = profile.thread_name(resource.thread);
            *counts.threads.entry(thread).or_default() += 1;
            if let Some(own) = find_thread_tags(profile, resource.thread) {
                *counts.tags.entry(format_tags(own)).or_default() += 1;
            }
        }
        counts
    }

    /// `in main`, `tags request=GET / (2), request=GET /orders (1)`
    pub fn to_lines(&self) -> Vec<String> {
        let parts = [("in", &self.threads), ("tags", &self.tags)].into_iter();
        let parts = parts.filter(|(_, counts)| !counts.is_empty());
        parts
            .map(|(word, counts)| format!("{word} {}", format_counts(counts)))
            .collect()
    }
}

impl OpenRow {
    fn new(profile: &Profile, resources: &OpenedResources, row: &OpenedContext) -> OpenRow {
        let age = |resource| resources.age_ms(resource);
        OpenRow {
            place: ResourcePlace::new(profile, row),
            sums: ResourceSums::from_context(row),
            oldest_millis: row.open.first().map_or(0, age),
            newest_millis: row.open.last().map_or(0, age),
            opened_by_quarter: resources.count_openings_by_part(row),
            openers: OpenerCounts::new(profile, row),
        }
    }

    fn write(&self, out: &mut impl Write, depth: usize) -> io::Result<()> {
        let ages = match self.sums.open {
            1 => format!("for {}", format_age(self.oldest_millis)),
            _ => {
                let quarters = format_quarters(self.opened_by_quarter);
                let [oldest, newest] = [self.oldest_millis, self.newest_millis].map(format_age);
                format!("for {newest} to {oldest}, opened by quarter of the run: {quarters}")
            }
        };
        let name = EscapedText(&self.place.type_name);
        writeln!(out, "\n  {} {name} {ages}", grouped(self.sums.open))?;
        writeln!(
            out,
            "    opened at {}; {}",
            self.place.place,
            format_past(self.sums)
        )?;
        for line in self.openers.to_lines() {
            writeln!(out, "    {line}")?;
        }
        self.place.write_frames(out, depth)
    }
}

/// Names with numbers; a single name alone.
fn format_counts(counts: &BTreeMap<String, u64>) -> String {
    let each = counts.iter().map(|(name, count)| match counts.len() {
        1 => EscapedText(name).to_string(),
        _ => format!("{} ({})", EscapedText(name), grouped(*count)),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What became of the resources that are not open.
fn format_past(sums: ResourceSums) -> String {
    let mut text = format!(
        "{} opened, {} closed",
        grouped(sums.opened),
        grouped(sums.closed)
    );
    if sums.collected > 0 {
        text += &format!(", {} collected but never closed", grouped(sums.collected));
    }
    if sums.unmapped > 0 {
        text += &format!(", {} unmapped by a collection", grouped(sums.unmapped));
    }
    text
}

fn format_age(millis: u64) -> String {
    format_amount(millis as f64 * 1_000_000.0, "ns")
}

/// `12 by 3 contexts, the oldest for 5 min 2 s; 100 opened, 80 closed, 8 collected but never closed`
pub fn summarize_resources(resources: &OpenedResources) -> String {
    let mut sums = ResourceSums::default();
    for row in &resources.rows {
        sums.add_sums(ResourceSums::from_context(row));
    }
    let contexts = resources.rows.iter().filter(|row| !row.open.is_empty());
    let oldest = find_oldest_age(resources).map_or_else(String::new, |age| {
        format!(", the oldest for {}", format_age(age))
    });
    format!(
        "{} by {}{oldest}; {}",
        grouped(sums.open),
        format_plural(contexts.count() as u64, "context"),
        format_past(sums)
    )
}

/// In milliseconds; `None`: nothing is open.
fn find_oldest_age(resources: &OpenedResources) -> Option<u64> {
    let firsts = resources.rows.iter().filter_map(|row| row.open.first());
    firsts.map(|first| resources.age_ms(first)).max()
}

/// The number of open resources by the quarter of the run in which they were opened: `0 + 1 + 1 + 20`
pub fn format_quarters(quarters: [u64; GROWTH_PARTS]) -> String {
    quarters.map(grouped).join(" + ")
}

impl OpenReport {
    fn new(profile: &Profile, resources: &OpenedResources, args: &OpenArgs) -> OpenReport {
        let top = if args.top == 0 { usize::MAX } else { args.top };
        let (mut sums, mut types) = (ResourceSums::default(), BTreeMap::new());
        for row in &resources.rows {
            let own = ResourceSums::from_context(row);
            sums.add_sums(own);
            let of_type: &mut ResourceSums = types.entry(row.type_name.clone()).or_default();
            of_type.add_sums(own);
        }
        let open = resources.rows.iter().filter(|row| !row.open.is_empty());
        let collected = resources.rows.iter();
        let collected = collected.filter(|row| row.has_close() && row.collected > 0);
        let different = [open.clone().count(), collected.clone().count()];
        let mut collected: Vec<_> = collected.collect();
        collected.sort_by_key(|row| (row.kept_by_jdk, u64::MAX - row.collected));
        let is_past = |row: &&OpenedContext| {
            let own = ResourceSums::from_context(row);
            own.open == 0 && own.collected == 0
        };
        let mut closed: Vec<_> = resources.rows.iter().filter(is_past).collect();
        closed.sort_by_key(|row| (row.kept_by_jdk, u64::MAX - row.opened));
        let past_rows = |rows: Vec<&OpenedContext>| {
            let rows = rows.into_iter().take(top);
            rows.map(|row| ClosedContextRow::new(profile, row))
                .collect()
        };
        let type_row = |(type_name, sums)| TypeRow { type_name, sums };
        let mut types: Vec<TypeRow> = types.into_iter().map(type_row).collect();
        types.sort_by_key(|row| (u64::MAX - row.sums.open, u64::MAX - row.sums.collected));
        OpenReport {
            schema: "lucce-open",
            version: 1,
            run: profile.header.run.map(|run| run.to_string()),
            sums,
            oldest_millis: find_oldest_age(resources),
            contexts: open
                .take(top)
                .map(|row| OpenRow::new(profile, resources, row))
                .collect(),
            never_closed: past_rows(collected),
            all_closed: past_rows(closed),
            types,
            outside: resources.outside,
            different,
            summary: summarize_resources(resources),
        }
    }

    fn write(&self, out: &mut impl Write, depth: usize) -> io::Result<()> {
        writeln!(out, "open: {}", self.summary)?;
        for row in &self.contexts {
            row.write(out, depth)?;
        }
        write_left(out, self.different[0], self.contexts.len())?;
        if !self.never_closed.is_empty() {
            let contexts = format_plural(self.different[1] as u64, "context");
            let collected = grouped(self.sums.collected);
            writeln!(
                out,
                "\ncollected but never closed: {collected} by {contexts}"
            )?;
        }
        for row in &self.never_closed {
            let (name, count) = (
                EscapedText(&row.place.type_name),
                grouped(row.sums.collected),
            );
            writeln!(out, "\n  {count} {name}")?;
            writeln!(
                out,
                "    opened at {}; {}",
                row.place.place,
                format_past(row.sums)
            )?;
            row.place.write_frames(out, depth)?;
        }
        write_left(out, self.different[1], self.never_closed.len())?;
        writeln!(out, "\nby type:")?;
        for row in &self.types {
            let (name, open) = (EscapedText(&row.type_name), grouped(row.sums.open));
            writeln!(out, "  {open} open, {}: {name}", format_past(row.sums))?;
        }
        if self.outside > 0 {
            let openings = format_plural(self.outside, "opening");
            writeln!(
                out,
                "note: {openings} without any frame of these classes left out"
            )?;
        }
        Ok(())
    }
}

fn write_left(out: &mut impl Write, all: usize, shown: usize) -> io::Result<()> {
    match all.saturating_sub(shown) {
        0 => Ok(()),
        left => writeln!(
            out,
            "\n  {} more (--top 0)",
            format_plural(left as u64, "context")
        ),
    }
}
