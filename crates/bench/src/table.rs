//! Prints a report's ratios as a table in Markdown: one row per program, one column per variant.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use crate::report::TIMES;
use crate::{Metric, Outcome, Quantity, Report, Row};

/// Returns the baseline's median and quartiles, and every variant's ratio to it with the range of the rounds; below it
/// the geometric mean. Quantities that only variants have, such as the size of a recording, are shown without a ratio.
pub fn table(report: &Report, metric: Metric) -> String {
    let mut table = rows(report, metric, shown);
    if report.rows.len() > 1 && report.geometric_mean(0, metric).is_some() {
        table.add_row(means(report, metric));
    }
    aligned(table)
}

/// Returns the baseline's median and quartiles, and every variant's difference and ratio to it.
pub fn differences(report: &Report, metric: Metric) -> String {
    aligned(rows(report, metric, added))
}

/// Returns the three times of each program: the baseline's in milliseconds, and every variant's ratios to them.
pub fn side_by_side(report: &Report) -> String {
    let mut table = Table::new();
    let title = "CPU of own threads · wall · CPU of process".to_owned();
    let names = report.columns.iter().map(|column| column.name.clone());
    table
        .load_style(ASCII_MARKDOWN)
        .set_header([title].into_iter().chain(names));
    for row in &report.rows {
        let times = |at| {
            let time = |metric| time(report, row, at, metric).unwrap_or_else(|| "–".into());
            TIMES.map(time).join(" · ")
        };
        let cell = |at| remark(row, at).map_or_else(|| times(at), str::to_owned);
        let cells = (0..report.columns.len()).map(cell);
        table.add_row([row.program.clone()].into_iter().chain(cells));
    }
    if report.rows.len() > 1 {
        let of = |at| TIMES.map(|metric| mean(report, at, metric)).join(" · ");
        let cells = (0..report.columns.len()).map(of);
        table.add_row(["geometric mean".to_owned()].into_iter().chain(cells));
    }
    aligned(table)
}

fn time(report: &Report, row: &Row, at: usize, metric: Metric) -> Option<String> {
    let quantity = report.quantity(row, at, metric)?;
    match at {
        0 => Some(metric.show(quantity.spread.centre(report.centre))),
        _ => quantity.ratio.map(|ratio| format!("{:.2}", ratio.value)),
    }
}

/// Formats a quantity of the variant in a column.
type Write = fn(&Report, &Row, usize, Metric) -> Option<String>;

fn rows(report: &Report, metric: Metric, write: Write) -> Table {
    let mut table = Table::new();
    table
        .load_style(ASCII_MARKDOWN)
        .set_header(header(report, metric));
    for row in &report.rows {
        let mut cells = vec![row.program.clone()];
        let columns = 0..report.columns.len();
        cells.extend(columns.map(|at| cell(report, row, at, metric, write)));
        table.add_row(cells);
    }
    table
}

fn aligned(mut table: Table) -> String {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// Returns the variants that did not run and the failures, with reasons; empty if there are none.
pub fn remarks(report: &Report) -> String {
    let lines = |what: &str, lines: Vec<String>| {
        let lines = lines.into_iter().map(|line| format!("{what}: {line}\n"));
        lines.collect::<String>()
    };
    lines("not run", report.not_run()) + &lines("FAILED", report.failures())
}

fn header(report: &Report, metric: Metric) -> Vec<String> {
    let mut cells = vec![metric.name().to_owned()];
    for (at, column) in report.columns.iter().enumerate() {
        cells.push(match at {
            0 => format!("{} (quartiles)", column.name),
            _ => column.name.clone(),
        });
    }
    cells
}

fn cell(report: &Report, row: &Row, at: usize, metric: Metric, write: Write) -> String {
    let written = || write(report, row, at, metric).unwrap_or_else(|| "–".into());
    remark(row, at).map_or_else(written, str::to_owned)
}

/// Returns the text in place of numbers.
fn remark(row: &Row, at: usize) -> Option<&'static str> {
    match row.outcomes.get(at)? {
        Outcome::NotRun(_) => Some("not run"),
        Outcome::Failed(_) => Some("FAILED"),
        Outcome::Measured(_) => None,
    }
}

fn shown(report: &Report, row: &Row, at: usize, metric: Metric) -> Option<String> {
    let quantity = report.quantity(row, at, metric)?;
    Some(match quantity.ratio {
        Some(ratio) if at > 0 => ratio.to_string(),
        _ => absolute(report, &quantity, metric),
    })
}

fn added(report: &Report, row: &Row, at: usize, metric: Metric) -> Option<String> {
    let quantity = report.quantity(row, at, metric)?;
    let (Some(ratio), true) = (quantity.ratio, at > 0) else {
        return Some(absolute(report, &quantity, metric));
    };
    let centre = |quantity: &Quantity| quantity.spread.centre(report.centre);
    let more = centre(&quantity) - centre(&report.quantity(row, 0, metric)?);
    let sign = if more < 0.0 { "−" } else { "+" };
    Some(format!(
        "{sign}{} ({:.2})",
        metric.show(more.abs()),
        ratio.value
    ))
}

fn absolute(report: &Report, quantity: &Quantity, metric: Metric) -> String {
    let spread = quantity.spread;
    format!(
        "{} ({}–{})",
        metric.show(spread.centre(report.centre)),
        metric.show(spread.lower_quartile),
        metric.show(spread.upper_quartile)
    )
}

fn means(report: &Report, metric: Metric) -> Vec<String> {
    let columns = 0..report.columns.len();
    let cells = columns.map(|at| mean(report, at, metric));
    ["geometric mean".to_owned()]
        .into_iter()
        .chain(cells)
        .collect()
}

fn mean(report: &Report, at: usize, metric: Metric) -> String {
    match report.geometric_mean(at, metric) {
        Some((mean, programs)) if programs == report.rows.len() => format!("{mean:.2}"),
        Some((mean, programs)) => format!("{mean:.2} of {programs}"),
        None => "–".into(),
    }
}

#[cfg(test)]
mod table_tests {
    use super::*;
    use crate::report::report_tests::sample;

    #[test]
    fn differences_are_printed_with_their_ratio() {
        let text = differences(&sample(), Metric::Cpu);
        assert!(text.contains("+26 ms (1.26)"), "{text}");
        assert!(text.contains("100 ms (98 ms–102 ms)") && text.contains("FAILED"));
        let mut report = sample();
        report.rows[0].outcomes.swap(0, 1);
        assert!(differences(&report, Metric::Cpu).contains("−26 ms (0.79)"));
    }

    #[test]
    fn three_times_stand_side_by_side() {
        let mut report = sample();
        for (at, ms) in [(0, 80.0), (1, 120.0)] {
            let Outcome::Measured(metrics) = &mut report.rows[0].outcomes[at] else {
                panic!("the sample has changed");
            };
            metrics.insert(Metric::Own, vec![vec![ms]]);
        }
        let text = side_by_side(&report);
        assert!(text.contains("80 ms · 60 ms · 100 ms"), "{text}");
        assert!(text.contains("1.50 · 1.25 · 1.26"), "{text}");
        // The other program's threads were not observed.
        assert!(text.contains("– · 2.00 · 2.00"), "{text}");
        assert!(text.contains("1.50 of 1 · 1.58 · 1.59"), "{text}");
        assert!(text.contains("not run") && text.contains("FAILED"));
    }

    #[test]
    fn rows_are_programs_and_columns_variants() {
        let text = table(&sample(), Metric::Cpu);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        assert_eq!(
            lines[0],
            [
                "CPU time of the process",
                "none (quartiles)",
                "tracking",
                "paper",
                "alloc"
            ]
        );
        assert_eq!(
            lines[2],
            [
                "H2Mix",
                "100 ms (98 ms–102 ms)",
                "1.26 (1.20–1.33)",
                "not run",
                "3.00 (1.90–4.21)"
            ]
        );
        assert_eq!(lines[3][2..], ["2.00", "not run", "FAILED"]);
        assert_eq!(
            lines[4],
            ["geometric mean", "1.00", "1.59", "–", "3.00 of 1"]
        );
        assert_eq!(
            remarks(&sample()),
            "not run: paper: unknown option <tracking>\n\
             FAILED: Xalan, alloc: computed b, the baseline a\n"
        );
    }
}
