//! The comparison as text: the papers' tables, and one of all encodings.

use comfy_table::{CellAlignment, Table, presets};
use lucce_command::grouped;

use crate::{ComparedProgram, EncodingComparison, EncodingOutcome};

/// All tables, each under its title.
#[must_use]
pub fn render_tables(comparison: &EncodingComparison) -> String {
    let mut text = String::new();
    let mut add = |title: &str, table: Table| {
        text.push_str(title);
        text.push('\n');
        text.push_str(&table.to_string());
        text.push_str("\n\n");
    };
    add("Programs", program_table(comparison));
    add(
        "Depth of encoding stacks (PCCE, Table 2); * nodes were reduced to fit 32 bits",
        stack_table(comparison),
    );
    add(
        "Characteristics (DACCE, Table 1); ccStack operations per million calls",
        characteristics_table(comparison),
    );
    add(
        "Numbering over time (DACCE, Figure 9): after each renumbering",
        progress_table(comparison),
    );
    add(
        "Depth that so many percent of calls need (DACCE, Figure 10; PCCE, Figure 9)",
        distribution_table(comparison),
    );
    for program in &comparison.programs {
        add(
            &format!(
                "All encodings on {}: {} numbers",
                program.name,
                grouped(checked_contexts(program))
            ),
            encoding_table(program),
        );
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn checked_contexts(program: &ComparedProgram) -> u64 {
    program
        .outcomes
        .first()
        .map_or(0, |outcome| outcome.request_count)
}

fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn program_table(comparison: &EncodingComparison) -> Table {
    let mut table = new_table(&[
        "program",
        "calls",
        "events",
        "threads",
        "methods",
        "edges",
        "CCT nodes",
        "with events",
        "mean depth",
        "max depth",
    ]);
    for program in &comparison.programs {
        let survey = &program.survey;
        let cut = if program.cut { " (cut)" } else { "" };
        table.add_row([
            format!("{}{cut}", program.name),
            grouped(survey.calls),
            grouped(survey.events),
            grouped(survey.threads),
            grouped(survey.methods),
            grouped(survey.profile.len() as u64),
            grouped(survey.contexts),
            grouped(survey.contexts + survey.event_contexts),
            format!("{:.1}", survey.depths.mean_depth()),
            survey.depths.max_depth().to_string(),
        ]);
    }
    table
}

fn stack_table(comparison: &EncodingComparison) -> Table {
    let mut table = new_table(&[
        "program",
        "max: ours",
        "plain",
        "90%: ours",
        "plain",
        "dynamic contexts",
        "max ID",
    ]);
    for program in &comparison.programs {
        let Some(pcce) = program.find_outcome("pcce") else {
            continue;
        };
        let plain = &program.survey.depths;
        table.add_row([
            program.name.clone(),
            pcce.depths.max_depth().to_string(),
            plain.max_depth().to_string(),
            pcce.depths.percentile(90).to_string(),
            plain.percentile(90).to_string(),
            grouped(program.survey.contexts),
            max_id(pcce),
        ]);
    }
    table
}

fn max_id(pcce: &EncodingOutcome) -> String {
    let reduced = pcce.other_count("reduced nodes");
    match reduced {
        0 => grouped(pcce.statistics.max_id),
        _ => format!("{}* ({reduced})", grouped(pcce.statistics.max_id)),
    }
}

fn characteristics_table(comparison: &EncodingComparison) -> Table {
    let mut table = new_table(&[
        "program",
        "PCCE: nodes",
        "edges",
        "maxID",
        "ccStack/M",
        "depth",
        "DACCE: nodes",
        "edges",
        "maxID",
        "ccStack/M",
        "depth",
        "gTS",
        "cost (us)",
        "calls",
    ]);
    for program in &comparison.programs {
        let survey = &program.survey;
        let (Some(pcce), Some(dacce)) =
            (program.find_outcome("pcce"), program.find_outcome("dacce"))
        else {
            continue;
        };
        let half = |outcome: &EncodingOutcome| {
            [
                grouped(outcome.statistics.nodes),
                grouped(outcome.statistics.edges),
                format_scientific(outcome.statistics.max_id),
                grouped(outcome.operations_per_million(survey) as u64),
                format!("{:.2}", outcome.depths.mean_depth()),
            ]
        };
        let mut row = vec![program.name.clone()];
        row.extend(half(pcce));
        row.extend(half(dacce));
        row.push(grouped(dacce.statistics.re_encodings));
        row.push(grouped(dacce.statistics.re_encoding_time.as_micros() as u64));
        row.push(grouped(survey.calls));
        table.add_row(row);
    }
    table
}

/// So many rows of a program's progress are shown: JSON has all.
const SHOWN: usize = 6;

fn progress_table(comparison: &EncodingComparison) -> Table {
    let mut table = new_table(&[
        "program",
        "renumbering",
        "samples",
        "calls",
        "nodes",
        "edges",
        "maxID",
    ]);
    for program in &comparison.programs {
        let Some(dacce) = program.find_outcome("dacce") else {
            continue;
        };
        let progress = &dacce.statistics.progress;
        let last = progress.len().saturating_sub(1);
        let step = progress.len().div_ceil(SHOWN).max(1);
        for (at, shown) in progress.iter().enumerate() {
            if at % step != 0 && at != last {
                continue;
            }
            table.add_row([
                program.name.clone(),
                (at + 1).to_string(),
                grouped(shown.samples),
                grouped(shown.calls),
                grouped(shown.nodes),
                grouped(shown.edges),
                format_scientific(shown.max_id),
            ]);
        }
    }
    table
}

fn distribution_table(comparison: &EncodingComparison) -> Table {
    let mut table = new_table(&["program", "stack", "50%", "90%", "99%", "100%"]);
    for program in &comparison.programs {
        let mut add = |stack: &str, depths: &crate::DepthDistribution| {
            let mut row = vec![program.name.clone(), stack.to_owned()];
            row.extend([50, 90, 99, 100].map(|percent| depths.percentile(percent).to_string()));
            table.add_row(row);
        };
        add("call stack", &program.survey.depths);
        for name in ["pcce", "pcce-hybrid", "dacce"] {
            if let Some(outcome) = program.find_outcome(name) {
                add(name, &outcome.depths);
            }
        }
    }
    table
}

fn encoding_table(program: &ComparedProgram) -> Table {
    let mut table = new_table(&[
        "encoding",
        "numbers",
        "max",
        "bits",
        "max",
        "ns/call",
        "memory",
        "of cct",
        "log bytes",
        "per context",
        "anchoring",
        "renumbered",
        "lost",
        "checked",
        "differ",
    ]);
    let tree = program
        .find_outcome("cct")
        .map_or(1, |cct| cct.statistics.memory_bytes);
    for outcome in &program.outcomes {
        let statistics = &outcome.statistics;
        let or_none = |shown: String, is_there: bool| match is_there {
            true => shown,
            false => "-".to_owned(),
        };
        let collisions = format!("{} collide", grouped(statistics.collisions));
        table.add_row([
            outcome.name.to_owned(),
            format!("{:.2}", outcome.numbers_mean),
            outcome.numbers_max.to_string(),
            format!("{:.1}", outcome.bits_mean),
            outcome.bits_max.to_string(),
            format!("{:.1}", outcome.nanos_per_call),
            format_size(statistics.memory_bytes),
            or_none(
                format_percent(statistics.memory_bytes, tree),
                statistics.memory_bytes > 0,
            ),
            or_none(grouped(statistics.log_bytes), statistics.log_bytes > 0),
            or_none(
                format!("{:.1}", outcome.log_per_context(&program.survey)),
                statistics.log_bytes > 0,
            ),
            or_none(
                format!("{:.3}%", outcome.anchoring_percent()),
                statistics.steps > 0,
            ),
            or_none(
                statistics.re_encodings.to_string(),
                statistics.re_encodings > 0,
            ),
            or_none(grouped(statistics.unnumbered), statistics.unnumbered > 0),
            or_none(grouped(outcome.checked), outcome.decodes),
            match outcome.decodes {
                true => grouped(outcome.mismatches),
                false => collisions,
            },
        ]);
    }
    table
}

fn format_percent(part: u64, whole: u64) -> String {
    format!("{:.0}%", part as f64 * 100.0 / whole.max(1) as f64)
}

fn format_size(bytes: u64) -> String {
    match bytes {
        0 => "-".to_owned(),
        1..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Large numbers as the paper writes them: `1.4e11`.
fn format_scientific(number: u64) -> String {
    match number {
        0..10_000_000 => grouped(number),
        _ => format!("{:.1e}", number as f64),
    }
}
