//! The comparison as a plot in SVG: a row of panels per program.
//!
//! ```text
//! program   edges, nodes, maxID over samples   depth needed        ns per call   memory
//!           (DACCE, Figure 9)                  (DACCE, Figure 10)
//! ```

use svg::node::element::{Line, Polyline, Rectangle, Style, Text, Title};
use svg::{Document, Node};

use lucce_encodings::ReEncodingProgress;

use crate::depths::CumulativeShare;
use crate::{ComparedProgram, EncodingComparison, EncodingOutcome};

const PANEL: f64 = 250.0;
const HEIGHT: f64 = 170.0;
const GAP: f64 = 84.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 116.0;
const ROW: f64 = HEIGHT + 92.0;

/// Okabe and Ito's colours, distinguishable for the colour-blind as well.
const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";
const GREEN: &str = "#009e73";
const GREY: &str = "#666";
const PALE: &str = "#9ab";

/// What the colours of a column of panels stand for.
type Legend = [(&'static str, &'static str)];

const PROGRESS: [(&str, &str); 3] = [
    ("edges", BLUE),
    ("nodes", GREEN),
    ("maxID (right scale)", ORANGE),
];
const DEPTHS: [(&str, &str); 3] = [("call stack", GREY), ("pcce", GREEN), ("dacce", ORANGE)];
const OWNERS: [(&str, &str); 2] = [("one number per event", BLUE), ("the papers'", PALE)];

const STYLE: &str = "text { font: 11px sans-serif; fill: #222 } \
    .title { font-size: 17px; font-weight: bold } .program { font-size: 14px; font-weight: bold } \
    .heading { font-size: 12px; font-weight: bold } \
    .small { fill: #666 } .end { text-anchor: end } .middle { text-anchor: middle } \
    .grid { stroke: #e4e4e4 } .axis { stroke: #888 } polyline { fill: none; stroke-width: 1.8 } \
    rect.bar { rx: 1.5 }";

/// A document of its own, white, without scripts.
#[must_use]
pub fn draw_comparison(comparison: &EncodingComparison) -> String {
    let width = LEFT + 4.0 * (PANEL + GAP);
    let height = TOP + ROW * comparison.programs.len() as f64;
    let mut drawing = SvgDrawing(
        Document::new()
            .set("viewBox", (0, 0, width, height))
            .set("width", width)
            .set("height", height)
            .add(Style::new(STYLE))
            .add(
                Rectangle::new()
                    .set("width", width)
                    .set("height", height)
                    .set("fill", "#fff"),
            ),
    );
    drawing.add_text(
        24.0,
        30.0,
        "title",
        "Encodings of calling contexts, on recorded calls",
    );
    let titles = [
        "Numbering over time (DACCE, Figure 9)",
        "Depth needed (DACCE, Figure 10)",
        "Time per call and its events, in nanoseconds",
        "Memory of graphs and tables, in bytes",
    ];
    for (at, title) in titles.into_iter().enumerate() {
        drawing.add_text(left_of(at), 60.0, "heading", title);
    }
    drawing.draw_legend(0, &PROGRESS);
    drawing.draw_legend(1, &DEPTHS);
    drawing.draw_legend(2, &OWNERS);
    drawing.draw_legend(3, &OWNERS);
    for (at, program) in comparison.programs.iter().enumerate() {
        drawing.draw_program(program, TOP + ROW * at as f64);
    }
    drawing.0.to_string()
}

fn left_of(panel: usize) -> f64 {
    LEFT + panel as f64 * (PANEL + GAP)
}

struct SvgDrawing(Document);

/// Where a panel's axes are.
#[derive(Clone, Copy)]
struct PlotPanel {
    x: f64,
    y: f64,
}

impl SvgDrawing {
    fn add_node(&mut self, node: impl Into<Box<dyn Node>>) {
        self.0.append(node);
    }

    fn add_text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = Text::new(text).set("x", x).set("y", y).set("class", class);
        self.add_node(text);
    }

    fn add_line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let line = Line::new()
            .set("x1", from.0)
            .set("y1", from.1)
            .set("x2", to.0)
            .set("y2", to.1)
            .set("class", class);
        self.add_node(line);
    }

    fn draw_program(&mut self, program: &ComparedProgram, y: f64) {
        let calls = format_short(program.survey.calls as f64);
        let contexts = format_short(program.survey.contexts as f64);
        self.add_text(24.0, y - 20.0, "program", &program.name);
        let about = format!("{calls} calls in {contexts} contexts");
        self.add_text(
            24.0 + 9.0 * program.name.len() as f64 + 12.0,
            y - 20.0,
            "small",
            &about,
        );
        let panel = |at| PlotPanel {
            x: left_of(at),
            y: y + 8.0,
        };
        self.draw_progress(program, panel(0));
        self.draw_depths(program, panel(1));
        self.draw_bars(program, panel(2), &NANOS);
        self.draw_bars(program, panel(3), &MEMORY);
    }

    fn draw_frame(&mut self, PlotPanel { x, y }: PlotPanel) {
        for at in 0..=4 {
            let height = y + HEIGHT * f64::from(at) / 4.0;
            self.add_line((x, height), (x + PANEL, height), "grid");
        }
        self.add_line((x, y), (x, y + HEIGHT), "axis");
        self.add_line((x, y + HEIGHT), (x + PANEL, y + HEIGHT), "axis");
    }

    /// Nodes and edges to the left scale, maxID to its own, logarithmic one.
    fn draw_progress(&mut self, program: &ComparedProgram, panel: PlotPanel) {
        self.draw_frame(panel);
        let Some(dacce) = program.find_outcome("dacce") else {
            return;
        };
        let statistics = &dacce.statistics;
        let progress = &statistics.progress;
        let samples = dacce.other_count("samples").max(1) as f64;
        let early = |sample: f64| (sample + 1.0).ln() / (samples + 1.0).ln();
        let most = statistics.edges.max(1) as f64;
        let largest = progress.iter().map(|at| at.max_id).max().unwrap_or(0) as f64;
        let log = |id: f64| (id + 1.0).log10() / (largest + 2.0).log10();
        let values: [fn(&ReEncodingProgress) -> u64; 3] =
            [|at| at.edges, |at| at.nodes, |at| at.max_id];
        for ((name, colour), value) in PROGRESS.into_iter().zip(values) {
            let scaled = |at: &ReEncodingProgress| match name {
                "edges" | "nodes" => value(at) as f64 / most,
                _ => log(value(at) as f64),
            };
            let mut points = step_points(progress.iter().map(|at| (at.samples, scaled(at))));
            if let Some((_, last)) = points.last().copied() {
                points.push((samples, last));
            }
            let points = points.into_iter().map(|(x, y)| (early(x), y));
            self.draw_curve(panel, colour, points);
        }
        self.draw_height_labels(
            panel,
            [0.0, 0.5, 1.0].map(|at| (at, format_short(at * most))),
        );
        self.draw_width_labels(
            panel,
            iter_decades(samples).map(|n| (early(n), format_short(n))),
        );
        self.draw_axis_names(panel, "edges, nodes", "samples taken, logarithmic");
        let right = panel.x + PANEL;
        self.add_line((right, panel.y), (right, panel.y + HEIGHT), "axis");
        for id in iter_decades(largest) {
            let height = panel.y + (1.0 - log(id)) * HEIGHT + 4.0;
            self.add_text(right + 5.0, height, "small", &format_short(id));
        }
        self.add_text(right, panel.y - 6.0, "small end", "maxID, logarithmic");
    }

    fn draw_depths(&mut self, program: &ComparedProgram, panel: PlotPanel) {
        self.draw_frame(panel);
        let deepest = program.survey.depths.max_depth().max(1) as f64;
        let scale = |depth: f64| (depth + 1.0).log2() / (deepest + 1.0).log2();
        for (name, colour) in DEPTHS {
            let depths = match program.find_outcome(name) {
                Some(outcome) => outcome.depths.cumulative_shares(),
                None => program.survey.depths.cumulative_shares(),
            };
            let points = iter_shares(&depths).map(|(depth, share)| (scale(depth as f64), share));
            let points: Vec<_> = points.chain([(1.0, 1.0)]).collect();
            self.draw_curve(panel, colour, points.into_iter());
        }
        let percent = |at: f64| (at, format!("{:.0}%", at * 100.0));
        self.draw_height_labels(panel, [0.0, 0.25, 0.5, 0.75, 1.0].map(percent));
        let powers = (0..16)
            .map(|n| f64::from(1 << n))
            .take_while(|n| *n < deepest * 0.8);
        let all = [0.0].into_iter().chain(powers).chain([deepest]);
        self.draw_width_labels(panel, all.map(|n| (scale(n), n.to_string())));
        self.draw_axis_names(
            panel,
            "calls",
            "frames, or entries of the encoding stack, logarithmic",
        );
    }

    fn draw_bars(&mut self, program: &ComparedProgram, panel: PlotPanel, bars: &PanelBars) {
        let values = || {
            program
                .outcomes
                .iter()
                .map(bars.value)
                .filter(|value| *value > 0.0)
        };
        let most = values().fold(1.0, f64::max);
        let least = values().fold(most, f64::min);
        let step = HEIGHT / program.outcomes.len().max(1) as f64;
        let (name_width, number_width) = (68.0, 48.0);
        let room = PANEL - name_width - number_width;
        for (at, outcome) in program.outcomes.iter().enumerate() {
            let (x, y) = (panel.x + name_width, panel.y + step * at as f64);
            let value = (bars.value)(outcome);
            let width = ((bars.length)(value, least, most) * room).max(0.5);
            let ours = matches!(outcome.name, "lucce" | "adaptive" | "static" | "cct");
            let bar = Rectangle::new()
                .set("class", "bar")
                .set("x", x)
                .set("y", y + 2.0)
                .set("width", width)
                .set("height", step - 4.0)
                .set("fill", if ours { BLUE } else { PALE });
            let exact = format!("{}: {value:.1}", outcome.name);
            self.add_node(bar.add(Title::new(exact)));
            self.add_text(x - 6.0, y + step / 2.0 + 4.0, "end", outcome.name);
            self.add_text(
                x + width + 5.0,
                y + step / 2.0 + 4.0,
                "small",
                &(bars.shown)(value),
            );
        }
        let x = panel.x + name_width;
        self.add_line((x, panel.y), (x, panel.y + HEIGHT), "axis");
        self.add_text(x, panel.y + HEIGHT + 14.0, "small", bars.scale);
    }

    /// Points in the unit square.
    fn draw_curve(
        &mut self,
        panel: PlotPanel,
        colour: &str,
        points: impl Iterator<Item = (f64, f64)>,
    ) {
        let place = |(x, y): (f64, f64)| {
            format!(
                "{:.1},{:.1}",
                panel.x + x * PANEL,
                panel.y + (1.0 - y) * HEIGHT
            )
        };
        let points: Vec<String> = points.map(place).collect();
        let line = Polyline::new()
            .set("points", points.join(" "))
            .set("stroke", colour);
        self.add_node(line);
    }

    /// Once, above a column of panels.
    fn draw_legend(&mut self, column: usize, legend: &Legend) {
        let mut x = left_of(column);
        for (name, colour) in legend {
            let mark = Rectangle::new()
                .set("x", x)
                .set("y", 72.0)
                .set("width", 14)
                .set("height", 4)
                .set("fill", *colour);
            self.add_node(mark);
            self.add_text(x + 19.0, 78.0, "", name);
            x += 19.0 + 6.2 * name.len() as f64 + 16.0;
        }
    }

    /// Labels of the left axis, from 0 at the bottom to 1.
    fn draw_height_labels(
        &mut self,
        panel: PlotPanel,
        labels: impl IntoIterator<Item = (f64, String)>,
    ) {
        for (at, label) in labels {
            let y = panel.y + (1.0 - at) * HEIGHT + 4.0;
            self.add_text(panel.x - 5.0, y, "small end", &label);
        }
    }

    /// Labels of the lower axis, from 0 at the left to 1.
    fn draw_width_labels(
        &mut self,
        panel: PlotPanel,
        labels: impl IntoIterator<Item = (f64, String)>,
    ) {
        let bottom = panel.y + HEIGHT;
        for (at, label) in labels {
            let x = panel.x + at * PANEL;
            self.add_line((x, bottom), (x, bottom + 4.0), "axis");
            self.add_text(x, bottom + 16.0, "small middle", &label);
        }
    }

    /// What the axes tell.
    fn draw_axis_names(&mut self, panel: PlotPanel, height: &str, width: &str) {
        self.add_text(panel.x, panel.y - 6.0, "small", height);
        let (x, y) = (panel.x + PANEL / 2.0, panel.y + HEIGHT + 32.0);
        self.add_text(x, y, "small middle", width);
    }
}

/// One bar per encoding.
struct PanelBars {
    value: fn(&EncodingOutcome) -> f64,
    /// Between 0 and 1, of a value between the least and the most.
    length: fn(f64, f64, f64) -> f64,
    shown: fn(f64) -> String,
    scale: &'static str,
}

const NANOS: PanelBars = PanelBars {
    value: |outcome| outcome.nanos_per_call,
    length: |value, _, most| value / most,
    shown: |value| format!("{value:.0}"),
    scale: "",
};

/// Factors of a hundred lie between them.
const MEMORY: PanelBars = PanelBars {
    value: |outcome| outcome.statistics.memory_bytes as f64,
    length: |value, least, most| {
        let low = (least / 4.0).ln();
        ((value.max(1.0).ln() - low) / (most.ln() - low)).max(0.0)
    },
    shown: |value| match value > 0.0 {
        true => format!("{}B", format_short(value)),
        false => "none".to_owned(),
    },
    scale: "logarithmic scale",
};

/// 1, 10, 100, … up to `most`: six of them at most.
fn iter_decades(most: f64) -> impl Iterator<Item = f64> {
    let last = most.max(1.0).log10().floor() as i32;
    let step = (last / 6 + 1) as usize;
    (0..=last)
        .step_by(step)
        .map(|exponent| 10f64.powi(exponent))
}

/// Values hold until the next one.
fn step_points(values: impl Iterator<Item = (u64, f64)>) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, 0.0)];
    for (at, value) in values {
        let before = points.last().map_or(0.0, |(_, value)| *value);
        points.push((at as f64, before));
        points.push((at as f64, value));
    }
    points
}

fn iter_shares(points: &[CumulativeShare]) -> impl Iterator<Item = (usize, f64)> {
    let first = points.first().map(|point| (point.depth, 0.0));
    let rest = points.iter().map(|point| (point.depth, point.share));
    first.into_iter().chain(rest)
}

/// 1234567 is `1.2M`.
fn format_short(number: f64) -> String {
    let units = [
        (1e18, "e18"),
        (1e15, "e15"),
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
    ];
    let unit = units.into_iter().find(|(unit, _)| number >= *unit);
    match unit {
        Some((unit, name)) if number / unit < 10.0 => format!("{:.1}{name}", number / unit),
        Some((unit, name)) => format!("{:.0}{name}", number / unit),
        None => format!("{number:.0}"),
    }
}
