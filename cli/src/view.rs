//! `lucce view`: writes a page for a browser.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ALLOC, Profile, compute_coverage, describe_sampling, events_path, explain_sample_bias,
    read_heap_interval, summarize_budget, summarize_bursts,
};
use lucce_page::{HtmlPage, PageOpening, RunText};

use super::fact_tables::list_fact_tables;
use super::leaks;
use super::output::{format_plural, grouped, private_file_options};
use super::progress::ProgressMeter;
use super::selection::{SelectedRun, Selection};
use super::time_window;
use super::{CommandError, CommandStatus, find_kind, prefix_path, print_diagnostic, report_damage};

/// Make one page of a run, or of two runs and their difference: a file that needs nothing else.
///
/// The page has flame graphs (callers and callees of a method, inverted, by thread, with types as leaves),
/// contexts with their numbers and traces, types, threads, and a time line if the run recorded times.
/// It opens from disk and loads nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce view run-1234.lucce --open
  lucce view old.lucce new.lucce -o difference.html")]
pub struct ViewArgs {
    /// A log; or two, the older one first
    #[arg(required = true, num_args = 1.., value_name = "RUN")]
    files: Vec<PathBuf>,
    /// Write the page to this file, which may replace such a page only. Only its user can read it [default: the logs' names
    /// with .html, numbered if that exists]
    #[arg(short, long, value_name = "PAGE")]
    out: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    selection: Selection,
}

/// The text that every page has near its beginning.
const GENERATOR_TAG: &str = "<meta name=\"generator\" content=\"lucce ";

pub fn run(args: &ViewArgs) -> Result<CommandStatus, CommandError> {
    if args.files.len() > 2 {
        return Err(CommandError::Usage(
            "a page is of one run or of two; `lucce diff OLD… -- NEW…` compares several with several".into(),
        ));
    }
    let output = args.out.clone();
    let output = output.unwrap_or_else(|| free_name(&args.files));
    let end = write_page(
        &args.files,
        &output,
        &args.selection,
        PageOpening::default(),
    )?;
    if args.open {
        open_in_browser(output.as_os_str())?;
    }
    Ok(end)
}

/// A free file name beside the newest log, made of the runs' names.
pub fn free_name(files: &[PathBuf]) -> PathBuf {
    let stems = files.iter().filter_map(|file| file.file_stem());
    let runs = stems.collect::<Vec<_>>().join(OsStr::new("-"));
    let newest = files.last().cloned().unwrap_or_default();
    let page = |number: u32| {
        let mut name = runs.clone();
        if number > 1 {
            name.push(format!("-{number}"));
        }
        name.push(".html");
        newest.with_file_name(name)
    };
    let is_free = |page: &PathBuf| page.symlink_metadata().is_err();
    (1..u32::MAX).map(page).find(is_free).unwrap_or_default()
}

/// Checks that an existing file is a page, and may be replaced.
pub fn check_output(output: &Path) -> Result<(), CommandError> {
    match output.is_file() && !is_page(output) {
        true => Err(CommandError::Usage(prefix_path(
            output,
            "is there and is no page of lucce; name another one with -o",
        ))),
        false => Ok(()),
    }
}

/// Writes the page of one or two runs; `opening`: the initial view.
pub fn write_page(
    files: &[PathBuf],
    output: &Path,
    selection: &Selection,
    opening: PageOpening,
) -> Result<CommandStatus, CommandError> {
    check_output(output)?;
    let (mut page, mut end) = (HtmlPage::default(), CommandStatus::Fine);
    for file in files {
        end = end.max(add_run(&mut page, file, selection)?);
    }
    page.set_opening(opening);
    write_page_file(output, &page.to_html())?;
    Ok(end)
}

/// Writes a page, which only its user can read.
pub fn write_page_file(output: &Path, html: &str) -> Result<(), CommandError> {
    let failed = |e| CommandError::Usage(prefix_path(output, e));
    let file = private_file_options()
        .create(true)
        .truncate(true)
        .open(output);
    file.and_then(|mut file| file.write_all(html.as_bytes()))
        .map_err(failed)?;
    print_diagnostic(format_args!(
        "wrote {} to {}",
        format_plural(html.len() as u64, "byte"),
        output.display()
    ));
    Ok(())
}

fn is_page(path: &Path) -> bool {
    let mut start = [0; 1024];
    let read = File::open(path).and_then(|mut file| std::io::Read::read(&mut file, &mut start));
    let start = read.ok().and_then(|length| start.get(..length));
    start.is_some_and(|start| String::from_utf8_lossy(start).contains(GENERATOR_TAG))
}

fn add_run(
    page: &mut HtmlPage,
    file: &Path,
    selection: &Selection,
) -> Result<CommandStatus, CommandError> {
    let is_whole = selection.is_whole_kind() && selection.counts.is_whole();
    // The page's time line has all events.
    let has_stream = events_path(file).exists() && is_whole;
    let stream = has_stream
        .then(|| time_window::read_stream(file))
        .transpose()?;
    let SelectedRun {
        mut profile,
        status,
    } = selection.open_run_with_resources(file)?;
    if let Some(kind) = selection.event() {
        find_kind(file, &profile, Some(kind), status)?;
        profile.events = profile.events_of_kind(kind);
    }
    selection.counts.patterns.limit_counters(&mut profile);
    let stream = stream.filter(|_| profile.interval.is_none());
    let mut end = match &stream {
        Some(stream) => time_window::check_stream(file, &profile, stream)?,
        None => status,
    };
    let bar = ProgressMeter::new("decoding", profile.events.by_context().count() as u64);
    let mut page_run = run_text(file, &profile);
    if !profile.ended && profile.unsealed > 0 {
        let note = "The JVM was killed or still runs: its counters have no checksums.";
        page_run.notes.push(note.into());
    }
    if let Some(interval) = &profile.interval {
        page_run.coverage = None;
        page_run.notes.push(format!("Events are {interval}."));
    }
    if !is_whole {
        page_run.coverage = None;
        page_run.notes.push(selection.counts.page_note());
    }
    page.add_profile(page_run, &profile, stream.as_ref(), &|more| bar.tick(more));
    drop(bar);
    let is_whole_run = is_whole && profile.interval.is_none() && !profile.is_restricted();
    page.set_facts(match is_whole_run {
        true => list_fact_tables(&profile, None),
        false => Vec::new(),
    });
    if profile.meta.contains_key("leak.interval") && selection.is_whole_kind() {
        page.set_leaks(leaks::leaks_text(&profile, None));
    }
    end = report_damage(file, profile.damage.as_ref(), end);
    Ok(end)
}

/// Facts of a run for a page.
pub fn run_text(file: &Path, profile: &Profile) -> RunText {
    let meta = |key: &str| {
        profile
            .meta
            .get(key)
            .map(|text| EscapedText(text).to_string())
    };
    let jvm = [meta("jvm.name"), meta("jvm")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ");
    let start = UNIX_EPOCH + Duration::from_nanos(profile.header.start);
    let millis = profile.stat_value("run.millis");
    RunText {
        file: EscapedText(&file.display().to_string()).to_string(),
        run: profile.header.run.map(|run| run.to_string()),
        command: meta("command"),
        jvm: (!jvm.is_empty()).then_some(jvm),
        start: (profile.header.start > 0)
            .then(|| humantime::format_rfc3339_seconds(start).to_string()),
        seconds: (millis > 0).then_some(millis as f64 / 1e3),
        ended: profile.ended,
        coverage: format_coverage(profile),
        lost: profile.dropped_events(),
        notes: collect_notes(profile),
        warnings: profile
            .warnings
            .iter()
            .map(|text| EscapedText(text).to_string())
            .collect(),
    }
}

/// The allocation coverage, if it is known.
fn format_coverage(profile: &Profile) -> Option<String> {
    let has_allocations = profile
        .counted_kinds()
        .iter()
        .any(|kind| ALLOC.is_kind(&kind.name));
    let covered =
        (has_allocations && !profile.is_restricted()).then(|| compute_coverage(profile))?;
    covered.ok().map(|coverage| coverage.to_string())
}

/// Notes on the counts for the reader.
fn collect_notes(profile: &Profile) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(budget) = summarize_budget(profile) {
        notes.push(format!("Budget: {budget}."));
    }
    if let Some(sampling) = describe_sampling(profile) {
        notes.push(format!(
            "Allocations are estimated from samples, {sampling}."
        ));
    }
    if let Some(bytes) = read_heap_interval(profile) {
        notes.push(format!(
            "What is on the heap is estimated from samples, one every {} bytes on average.",
            grouped(bytes)
        ));
    }
    if let Some(bias) = explain_sample_bias(profile) {
        notes.push(format!("Samples: {bias}."));
    }
    if let Some(bursts) = summarize_bursts(profile) {
        notes.push(bursts.to_string());
    }
    if profile.is_restricted() {
        notes.push("Only frames of the classes that were asked for are shown.".into());
    }
    if let Some(damage) = &profile.damage {
        notes.push(format!(
            "The log is damaged: {damage}. What could be read is here."
        ));
    }
    let (classes, methods) = profile.skipped_counts();
    if classes + methods > 0 {
        notes.push(format!(
            "Without hooks: classes {}, single methods {} (lucce stats).",
            grouped(classes),
            grouped(methods)
        ));
    }
    notes
}

/// Environment variables that may hold a token.
const TOKENS: [&str; 2] = ["LUCCE_PUSH_TOKEN", "LUCCE_FLEET_TOKEN"];

/// Opens a page with the desktop's default program. Every user of the machine can read the file's name.
pub fn open_in_browser(page: &OsStr) -> Result<(), CommandError> {
    let started = Command::new("xdg-open")
        .arg(page)
        // The programs that it starts need no tokens.
        .env_remove(TOKENS[0])
        .env_remove(TOKENS[1])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        Ok(_) => Ok(()),
        Err(e) => Err(CommandError::Usage(format!(
            "the page is made, but xdg-open could not be started: {e}"
        ))),
    }
}
