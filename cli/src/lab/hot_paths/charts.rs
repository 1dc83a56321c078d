//! Draws curves and grouped bars as SVG, on linear or logarithmic axes.
//!
//! Coordinates are values or their decimal logarithms; labels show the values.

use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// The label and scale of an axis.
#[derive(Clone, Copy)]
pub struct ChartAxis<'a> {
    pub title: &'a str,
    pub is_log: bool,
}

/// A named data series.
pub struct ChartSeries<T> {
    pub name: String,
    pub values: Vec<T>,
}

type DrawResult = Result<(), String>;
type SvgArea<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type SvgChart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

const SIZE: (u32, u32) = (960, 540);
/// Width of a group of bars, with room for its name.
const GROUP: u32 = 92;
/// Colours for readers with red-green blindness also (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(110, 110, 110),
    RGBColor(0, 0, 0),
];
/// The smallest value on a logarithmic axis, for fractions.
const LEAST: f64 = 1e-6;

impl ChartAxis<'_> {
    fn to_position(self, value: f64) -> f64 {
        match self.is_log {
            true => value.max(LEAST).log10(),
            false => value,
        }
    }

    fn axis_label(self, place: f64) -> String {
        match self.is_log {
            true if (place - place.round()).abs() > 1e-6 => String::new(),
            true => short_number(10f64.powf(place)),
            false => short_number(place),
        }
    }

    /// The range from the smallest value, or from 0, to the largest.
    fn value_range(self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let places: Vec<f64> = values.map(|value| self.to_position(value)).collect();
        let most = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = places.iter().copied().fold(f64::INFINITY, f64::min);
        match (self.is_log, most.is_finite()) {
            (_, false) => (0.0, 1.0),
            (true, true) => (least.floor(), (most + 0.02).ceil().max(least.floor() + 1.0)),
            (false, true) => (0.0, (most * 1.05).max(1.0)),
        }
    }

    /// The range, with almost a decade more on a logarithmic axis, for the legend.
    fn with_room_above(self, values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let (from, to) = self.value_range(values.clone());
        let most = values.map(|value| self.to_position(value));
        match self.is_log {
            true => (
                from,
                most.map(|most| (most + 0.8).ceil()).fold(to, f64::max),
            ),
            false => (from, to),
        }
    }

    fn label_count(self, (from, to): (f64, f64)) -> usize {
        match self.is_log {
            true => (to - from).round() as usize + 1,
            false => 10,
        }
    }
}

/// Formats a number such as 1.5M.
fn short_number(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = units.iter().find(|(scale, _)| value.abs() >= *scale);
    let (scale, unit) = unit.copied().unwrap_or((1.0, ""));
    let digits = format!("{:.4}", value / scale);
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}{unit}")
}

/// Draws a curve for each series. `free`: a corner without curves, for the legend.
pub fn draw_lines(
    path: &Path,
    title: &str,
    (x, y): (ChartAxis<'_>, ChartAxis<'_>),
    free: SeriesLabelPosition,
    series: &[ChartSeries<(f64, f64)>],
) -> DrawResult {
    let points = || series.iter().flat_map(|series| series.values.iter());
    let xs = x.value_range(points().map(|(x, _)| *x));
    let ys = y.with_room_above(points().map(|(_, y)| *y));
    draw_svg(path, SIZE, |area| {
        let mut chart = build_chart(area, title, xs, ys)?;
        chart
            .configure_mesh()
            .x_desc(x.title)
            .y_desc(y.title)
            .x_labels(x.label_count(xs))
            .y_labels(y.label_count(ys))
            .x_label_formatter(&|place| x.axis_label(*place))
            .y_label_formatter(&|place| y.axis_label(*place))
            .light_line_style(TRANSPARENT)
            .draw()
            .map_err(draw_error)?;
        for (series, colour) in series.iter().zip(COLOURS.iter().cycle()) {
            let points = series.values.iter();
            let points = points.map(|(at, value)| (x.to_position(*at), y.to_position(*value)));
            let line = LineSeries::new(points, colour.stroke_width(2));
            let drawn = chart.draw_series(line).map_err(draw_error)?;
            drawn.label(&*series.name).legend(legend_key(*colour));
        }
        draw_legend(&mut chart, free)
    })
}

/// Draws a group of bars for each name; a series has one value or none for each group.
pub fn draw_bars(
    path: &Path,
    title: &str,
    y: ChartAxis<'_>,
    groups: &[String],
    series: &[ChartSeries<Option<f64>>],
) -> DrawResult {
    let values = series
        .iter()
        .flat_map(|series| series.values.iter().copied());
    let (from, to) = y.value_range(values.flatten());
    // The smallest bar must also be visible.
    let ys = (if y.is_log { from - 0.1 } else { from }, to);
    // Room for the legend at the right.
    let places = groups.len() + 1 + groups.len() / 5;
    let xs = (0.0, places as f64);
    let width = u32::try_from(places).unwrap_or(0).saturating_mul(GROUP);
    draw_svg(path, (width.clamp(SIZE.0, 16 * SIZE.0), SIZE.1), |area| {
        let mut chart = build_chart(area, title, xs, ys)?;
        let name = |place: &f64| {
            let is_middle = (place.fract() - 0.5).abs() < 1e-6;
            let group = groups.get(place.floor() as usize).filter(|_| is_middle);
            group.cloned().unwrap_or_default()
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .y_desc(y.title)
            .x_labels(2 * places + 1)
            .y_labels(y.label_count((from, to)))
            .x_label_formatter(&name)
            .y_label_formatter(&|place| y.axis_label(*place))
            .light_line_style(TRANSPARENT)
            .draw()
            .map_err(draw_error)?;
        let width = 0.8 / series.len().max(1) as f64;
        for (number, (series, colour)) in series.iter().zip(COLOURS.iter().cycle()).enumerate() {
            let left = |group: usize| group as f64 + 0.1 + number as f64 * width;
            let bars = series.values.iter().enumerate();
            let bars =
                bars.filter_map(|(group, value)| Some((left(group), y.to_position((*value)?))));
            let bars = bars.map(|(left, top)| {
                Rectangle::new([(left, ys.0), (left + width * 0.9, top)], colour.filled())
            });
            let drawn = chart.draw_series(bars).map_err(draw_error)?;
            drawn.label(&*series.name).legend(legend_key(*colour));
        }
        draw_legend(&mut chart, SeriesLabelPosition::UpperRight)
    })
}

fn draw_svg(
    path: &Path,
    size: (u32, u32),
    chart: impl FnOnce(&SvgArea<'_>) -> DrawResult,
) -> DrawResult {
    let area = SVGBackend::new(path, size).into_drawing_area();
    area.fill(&WHITE).map_err(draw_error)?;
    chart(&area)?;
    area.present().map_err(draw_error)
}

fn build_chart<'a, 'b>(
    area: &'a SvgArea<'b>,
    title: &str,
    xs: (f64, f64),
    ys: (f64, f64),
) -> Result<SvgChart<'a, 'b>, String> {
    ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(xs.0..xs.1, ys.0..ys.1)
        .map_err(draw_error)
}

fn legend_key(colour: RGBColor) -> impl Fn((i32, i32)) -> Rectangle<(i32, i32)> {
    move |(x, y)| Rectangle::new([(x, y - 4), (x + 14, y + 4)], colour.filled())
}

fn draw_legend<'a, 'b: 'a>(chart: &mut SvgChart<'a, 'b>, at: SeriesLabelPosition) -> DrawResult {
    chart
        .configure_series_labels()
        .position(at)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .draw()
        .map_err(draw_error)
}

fn draw_error(e: impl std::fmt::Display) -> String {
    format!("cannot draw: {e}")
}

#[cfg(test)]
mod charts_tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        let texts = [0.0, 0.25, 12.0, 1000.0, 1_500_000.0].map(short_number);
        assert_eq!(texts, ["0", "0.25", "12", "1k", "1.5M"]);
        let log = ChartAxis {
            title: "",
            is_log: true,
        };
        assert_eq!([log.axis_label(3.0), log.axis_label(2.5)], ["1k", ""]);
        assert_eq!(log.value_range([20.0, 3000.0].into_iter()), (1.0, 4.0));
        assert_eq!(log.value_range([].into_iter()), (0.0, 1.0));
        let with_room = |most: f64| log.with_room_above([20.0, most].into_iter());
        assert_eq!(
            [with_room(170.0), with_room(900.0)],
            [(1.0, 4.0), (1.0, 4.0)]
        );
        assert_eq!(with_room(101.0), (1.0, 3.0));
        assert_eq!(log.with_room_above([].into_iter()), (0.0, 1.0));
    }
}
