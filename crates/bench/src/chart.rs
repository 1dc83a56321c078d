//! Draws a report's ratios as a bar chart in SVG.
//!
//! ```text
//! title, setting
//! legend
//!              1      1.5     2          the axis; the baseline is the line at 1
//! program A    ▇▇▇▇▇▇▇|▇▇├┤ 1.31         a bar per variant; the range of the rounds
//!              ▇▇▇▇▇▇▇|▇▇▇▇▇ 1.62
//! geometric mean …
//! ```
//! If a ratio exceeds 6, the axis is logarithmic: otherwise the slowest variant would flatten all others.

use svg::Document;
use svg::node::element::{Line, Rectangle, Style, Text, Title};

use crate::{Metric, Outcome, Ratio, Report, Row};

const WIDTH: f64 = 960.0;
/// Width of a bar's number.
const RIGHT: f64 = 130.0;
const BAR: f64 = 13.0;
const GAP: f64 = 12.0;
/// Maximum length of a displayed name in characters.
const NAME: usize = 40;
const LEGEND_LINE: f64 = 18.0;

/// Okabe and Ito's colours, which colour-blind people can distinguish.
const COLOURS: [&str; 9] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#7f7f7f",
    "#8c6bb1",
];

/// Returns the colours repeatedly, for any number of variants.
fn colours() -> impl Iterator<Item = &'static str> {
    COLOURS.into_iter().cycle()
}

const STYLE: &str = "text { font: 12px sans-serif; fill: #222 } \
    .title { font-size: 16px; font-weight: bold } .small { font-size: 11px; fill: #666 } \
    .name, .mean { text-anchor: end } .mean { font-weight: bold } .tick { text-anchor: middle; font-size: 11px; fill: #666 } \
    .grid { stroke: #ddd } .one { stroke: #222 } .range { stroke: #222; stroke-width: 1.2 } \
    .none { font-size: 11px; fill: #999; font-style: italic }";

/// Returns a chart of the ratios of all variants to the baseline.
pub fn chart(report: &Report, metric: Metric) -> String {
    let mut drawing = Drawing::new(report, metric);
    drawing.head();
    drawing.axis();
    for row in &report.rows {
        drawing.group(&row.program, "name", |at| Bar::of(report, row, at, metric));
    }
    if report.rows.len() > 1 {
        drawing.group("geometric mean", "mean", |at| {
            let mean = report.geometric_mean(at, metric);
            mean.map_or(Bar::Nothing(String::new()), |(value, _)| {
                Bar::Ratio(Ratio {
                    value,
                    low: value,
                    high: value,
                })
            })
        });
    }
    drawing.line(drawing.x(1.0), drawing.x(1.0), "one");
    drawing.document.to_string()
}

enum Bar {
    Ratio(Ratio),
    /// The text in place of a bar.
    Nothing(String),
}

impl Bar {
    fn of(report: &Report, row: &Row, column: usize, metric: Metric) -> Bar {
        match row.outcomes.get(column) {
            Some(Outcome::NotRun(_)) => Bar::Nothing("not run".into()),
            Some(Outcome::Failed(_)) => Bar::Nothing("failed".into()),
            _ => {
                let quantity = report.quantity(row, column, metric);
                let ratio = quantity.and_then(|found| found.ratio);
                ratio.map_or(Bar::Nothing("not measured".into()), Bar::Ratio)
            }
        }
    }
}

/// Converts ratios to positions.
#[derive(Clone, Copy)]
struct Axis {
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Axis {
    fn of(ratios: impl Iterator<Item = Ratio> + Clone) -> Axis {
        let high = ratios.clone().map(|ratio| ratio.high).fold(1.2, f64::max);
        let low = ratios.map(|ratio| ratio.low).fold(1.0, f64::min);
        let logarithmic = high > 6.0;
        Axis {
            from: if logarithmic {
                (low * 0.9).min(0.8)
            } else {
                0.0
            },
            to: high * 1.02,
            logarithmic,
        }
    }

    /// Returns the position from 0 to 1.
    fn share(&self, ratio: f64) -> f64 {
        let place = |ratio: f64| if self.logarithmic { ratio.ln() } else { ratio };
        let (from, to) = (place(self.from), place(self.to));
        ((place(ratio) - from) / (to - from)).clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        let ticks: Vec<f64> = match self.logarithmic {
            true => vec![0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0],
            false => {
                let step = if self.to > 3.0 { 0.5 } else { 0.25 };
                (0..40).map(|n| f64::from(n) * step).collect()
            }
        };
        let shown = |tick: &f64| (self.from..=self.to).contains(tick);
        ticks.into_iter().filter(shown).collect()
    }
}

struct Drawing<'a> {
    report: &'a Report,
    metric: Metric,
    axis: Axis,
    document: Document,
    /// Width of the names.
    left: f64,
    top: f64,
    bottom: f64,
    /// The position of the next group.
    y: f64,
}

impl<'a> Drawing<'a> {
    fn new(report: &'a Report, metric: Metric) -> Drawing<'a> {
        let columns = 1..report.columns.len();
        let bars = columns.len() as f64;
        let ratios = report.rows.iter().flat_map(|row| {
            let quantities = columns
                .clone()
                .filter_map(|at| report.quantity(row, at, metric));
            quantities.filter_map(|quantity| quantity.ratio)
        });
        let axis = Axis::of(ratios);
        let top = 78.0 + bars * LEGEND_LINE;
        let groups = report.rows.len() + usize::from(report.rows.len() > 1);
        let bottom = top + groups as f64 * (bars * BAR + GAP) + GAP / 2.0;
        let document = Document::new()
            .set("viewBox", (0, 0, WIDTH, bottom + 14.0))
            .set("width", WIDTH)
            .set("height", bottom + 14.0)
            .set("role", "img")
            .add(Style::new(STYLE))
            .add(rectangle(0.0, 0.0, WIDTH, bottom + 14.0, "#fff"));
        let longest = report.rows.iter().map(|row| row.program.chars().count());
        let longest = longest.fold(15, usize::max).min(NAME) as f64;
        Drawing {
            left: 26.0 + 6.7 * longest,
            report,
            metric,
            axis,
            document,
            top,
            bottom,
            y: top + GAP,
        }
    }

    fn add(&mut self, node: impl Into<Box<dyn svg::Node>>) {
        svg::Node::append(&mut self.document, node.into());
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: impl Into<String>) {
        let text = Text::new(text).set("x", round(x)).set("y", round(y));
        self.add(text.set("class", class));
    }

    /// Draws a line down the whole chart.
    fn line(&mut self, from: f64, to: f64, class: &str) {
        let line = Line::new()
            .set("x1", round(from))
            .set("x2", round(to))
            .set("y1", round(self.top))
            .set("y2", round(self.bottom));
        self.add(line.set("class", class));
    }

    fn x(&self, ratio: f64) -> f64 {
        self.left + self.axis.share(ratio) * (WIDTH - self.left - RIGHT)
    }

    fn head(&mut self) {
        let baseline = self.report.columns.first();
        let about = baseline.map_or("", |column| &column.about);
        let logarithmic = if self.axis.logarithmic {
            ", logarithmic"
        } else {
            ""
        };
        let title = format!(
            "{}: ratio to {about}{logarithmic} (1: no cost; shorter is better)",
            self.metric.name()
        );
        self.text(16.0, 26.0, "title", title);
        let setting = &self.report.setting;
        let mut setting: Vec<String> = setting
            .iter()
            .map(|(key, value)| format!("{}: {value}", key.replace('_', " ")))
            .collect();
        // Long texts come last: they may be cut.
        setting.sort_by_key(String::len);
        self.text(16.0, 44.0, "small", shortened(&setting.join(" · "), 160));
        let columns: Vec<_> = self.report.columns.iter().skip(1).zip(colours()).collect();
        for (at, (column, colour)) in columns.into_iter().enumerate() {
            let y = 56.0 + at as f64 * LEGEND_LINE;
            self.add(rectangle(16.0, y, 12.0, 12.0, colour));
            let text = format!("{}: {}", column.name, column.about);
            self.text(34.0, y + 10.5, "legend", shortened(&text, 130));
        }
    }

    fn axis(&mut self) {
        for tick in self.axis.ticks() {
            let x = self.x(tick);
            self.line(x, x, "grid");
            self.text(x, self.top - 5.0, "tick", tick.to_string());
        }
    }

    fn group(&mut self, name: &str, class: &str, bar: impl Fn(usize) -> Bar) {
        let bars = self.report.columns.len().saturating_sub(1) as f64;
        let middle = self.y + bars * BAR / 2.0 + 4.0;
        self.text(self.left - 10.0, middle, class, shortened(name, NAME));
        let columns = self.report.columns.iter().enumerate().skip(1);
        for ((at, column), colour) in columns.zip(colours()) {
            match bar(at) {
                Bar::Ratio(ratio) => self.bar(&format!("{name}, {}", column.name), ratio, colour),
                Bar::Nothing(text) => self.text(self.x(1.0) + 5.0, self.y + 10.0, "none", text),
            }
            self.y += BAR;
        }
        self.y += GAP;
    }

    fn bar(&mut self, name: &str, ratio: Ratio, colour: &str) {
        let start = match self.axis.logarithmic {
            true => self.x(1.0),
            false => self.x(0.0),
        };
        let (end, middle) = (self.x(ratio.value), self.y + BAR / 2.0);
        let (left, width) = (start.min(end), (end - start).abs());
        let bar = rectangle(left, self.y + 1.0, width, BAR - 2.0, colour);
        self.add(bar.add(Title::new(format!("{name}: {ratio}"))));
        let (low, high) = (self.x(ratio.low), self.x(ratio.high));
        if high > low {
            let range = Line::new().set("x1", round(low)).set("x2", round(high));
            let range = range.set("y1", round(middle)).set("y2", round(middle));
            self.add(range.set("class", "range"));
        }
        let right = end.max(high).max(self.x(1.0)) + 5.0;
        self.text(right, middle + 4.0, "small", ratio.to_string());
    }
}

fn rectangle(x: f64, y: f64, width: f64, height: f64, fill: &str) -> Rectangle {
    Rectangle::new()
        .set("x", round(x))
        .set("y", round(y))
        .set("width", round(width))
        .set("height", round(height))
        .set("fill", fill)
}

/// Tenths of a pixel are enough.
fn round(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod chart_tests {
    use super::*;
    use crate::report::report_tests::sample;

    #[test]
    fn every_cell_has_a_bar_or_a_word() {
        let drawn = chart(&sample(), Metric::Cpu);
        // Two programs and the mean, without those that were not run, failed, or have no mean.
        let bars = drawn.matches("</title>").count();
        assert_eq!(bars, 3 * 3 - 4, "{drawn}");
        assert_eq!(
            drawn.matches(">not run<").count() + drawn.matches("not run\n").count(),
            2
        );
        assert_eq!(drawn.matches("failed").count(), 1);
        assert!(drawn.contains("H2Mix, tracking: 1.26 (1.20–1.33)"));
        assert!(drawn.contains("CPU time of the process: ratio to about none"));
    }

    #[test]
    fn no_variant_is_left_out_for_want_of_a_colour() {
        let mut report = sample();
        report.columns = vec![report.columns[1].clone(); 30];
        for row in &mut report.rows {
            row.outcomes = vec![row.outcomes[1].clone(); 30];
        }
        let bars = chart(&report, Metric::Cpu).matches("</title>").count();
        assert_eq!(bars, 3 * 29);
    }

    #[test]
    fn markup_in_names_is_escaped() {
        let mut report = sample();
        report.rows[0].program = "<script>&".into();
        let drawn = chart(&report, Metric::Cpu);
        assert!(!drawn.contains("<script>"), "{drawn}");
        assert!(drawn.contains("&lt;script&gt;&amp;"), "{drawn}");
    }

    #[test]
    fn longer_bars_are_larger_ratios_on_both_axes() {
        for high in [2.0, 50.0] {
            let ratio = |value| Ratio {
                value,
                low: value,
                high: value,
            };
            let axis = Axis::of([ratio(0.9), ratio(high)].into_iter());
            assert_eq!(axis.logarithmic, high > 6.0);
            let shares: Vec<f64> = [0.9, 1.0, 1.5, high].map(|r| axis.share(r)).into();
            assert!(shares.is_sorted_by(|a, b| a < b), "{shares:?}");
            assert!(axis.ticks().contains(&1.0));
        }
    }
}
