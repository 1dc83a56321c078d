//! Draws the paper's Figures 8 to 13.

use std::fs;
use std::path::Path;

use lucce_kcontexts::{Curve, ForestFigures};
use plotters::chart::SeriesLabelPosition::{UpperLeft, UpperRight};

use super::charts::{ChartAxis, ChartSeries, draw_bars, draw_lines};
use super::program_tables::ProgramTables;

/// Draws all figures. Returns the number of written charts.
pub fn draw_figures(folder: &Path, programs: &[ProgramTables]) -> Result<usize, String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let path = |name: &str| folder.join(format!("{name}.svg"));
    figure_8(&path("figure-8"), programs)?;
    figure_9(&path("figure-9"), programs)?;
    for ProgramTables { name, figures, .. } in programs {
        figure_10(&path(&format!("figure-10-{name}")), name, figures)?;
        figure_11(&path(&format!("figure-11-{name}")), name, figures)?;
    }
    figure_12(&path("figure-12"), programs)?;
    figure_13(&path("figure-13"), programs)?;
    Ok(4 + 2 * programs.len())
}

const fn linear_axis(title: &str) -> ChartAxis<'_> {
    ChartAxis {
        title,
        is_log: false,
    }
}

const fn log_axis(title: &str) -> ChartAxis<'_> {
    ChartAxis {
        title,
        is_log: true,
    }
}

fn named_series<T>(name: &str, values: impl IntoIterator<Item = T>) -> ChartSeries<T> {
    ChartSeries {
        name: name.to_owned(),
        values: values.into_iter().collect(),
    }
}

fn figure_8(path: &Path, programs: &[ProgramTables]) -> Result<(), String> {
    let title = "Figure 8: average depth of trees in the x%-similar ∞-CCF";
    let curve = |program: &ProgramTables| {
        let points = program.figures.similar_depth.iter();
        named_series(
            short_name(&program.name),
            points.map(|(x, depth)| (f64::from(*x), *depth)),
        )
    };
    let curves: Vec<_> = programs.iter().map(curve).collect();
    draw_lines(
        path,
        title,
        (linear_axis("x (%)"), linear_axis("average depth (calls)")),
        UpperRight,
        &curves,
    )
}

/// The name of a recording without its ending.
fn short_name(name: &str) -> &str {
    name.strip_suffix(".calls").unwrap_or(name)
}

fn program_names(programs: &[ProgramTables]) -> Vec<String> {
    programs
        .iter()
        .map(|program| short_name(&program.name).to_owned())
        .collect()
}

fn series_per_program(
    name: &str,
    programs: &[ProgramTables],
    value: impl Fn(&ForestFigures) -> Option<f64>,
) -> ChartSeries<Option<f64>> {
    named_series(name, programs.iter().map(|program| value(&program.figures)))
}

fn figure_9(path: &Path, programs: &[ProgramTables]) -> Result<(), String> {
    let title = "Figure 9: routines and calling contexts; hot are those that make 90%";
    let all = [
        series_per_program("routines", programs, |f| Some(f.routines as f64)),
        series_per_program("hot routines", programs, |f| Some(f.hot_routines as f64)),
        series_per_program("contexts", programs, |f| Some(f.contexts as f64)),
        series_per_program("hot contexts", programs, |f| Some(f.hot_contexts as f64)),
    ];
    draw_bars(
        path,
        title,
        log_axis("how many (logarithmic)"),
        &program_names(programs),
        &all,
    )
}

fn figure_10(path: &Path, name: &str, figures: &ForestFigures) -> Result<(), String> {
    let title = format!(
        "Figure 10, {}: k-contexts, and those that make 90%",
        short_name(name)
    );
    let ks = || figures.k_contexts.iter();
    let constant = |name, value: u64| {
        named_series(name, ks().map(move |(k, ..)| (f64::from(*k), value as f64)))
    };
    let all = [
        named_series(
            "k-contexts",
            ks().map(|(k, n, _)| (f64::from(*k), *n as f64)),
        ),
        named_series(
            "hot k-contexts",
            ks().map(|(k, _, hot)| (f64::from(*k), *hot as f64)),
        ),
        constant("calling contexts", figures.contexts),
        constant("hot routines", figures.hot_routines),
    ];
    let axes = (linear_axis("k (calls)"), log_axis("how many (logarithmic)"));
    draw_lines(path, &title, axes, UpperLeft, &all)
}

fn figure_11(path: &Path, name: &str, figures: &ForestFigures) -> Result<(), String> {
    let title = format!(
        "Figure 11, {}: nodes of the forests, by k",
        short_name(name)
    );
    let curve = |name, curve: &Curve| {
        named_series(
            name,
            curve.iter().map(|(k, size)| (f64::from(*k), *size as f64)),
        )
    };
    let constant = |name, value: u64| {
        let ks = figures.k_sf.iter().map(|(k, _)| *k);
        named_series(name, ks.map(|k| (f64::from(k), value as f64)))
    };
    let mut all = vec![
        constant("CCT", figures.cct),
        curve("k-SF", &figures.k_sf),
        curve("k-CCF", &figures.k_ccf),
        curve("pruned k-CCF", &figures.pruned_k_ccf),
    ];
    all.extend(figures.burst_cct.map(|cct| constant("CCT, bursts", cct)));
    all.extend(
        figures
            .burst_k_sf
            .as_ref()
            .map(|k_sf| curve("k-SF, bursts", k_sf)),
    );
    let axes = (
        log_axis("k (calls, logarithmic)"),
        log_axis("nodes (logarithmic)"),
    );
    draw_lines(path, &title, axes, UpperLeft, &all)
}

fn figure_12(path: &Path, programs: &[ProgramTables]) -> Result<(), String> {
    let title = "Figure 12: the largest k up to which the forest is smaller than the CCT";
    let all = [
        series_per_program("k-CCF", programs, |f| f.largest_k_ccf.map(f64::from)),
        series_per_program("k-SF", programs, |f| f.largest_k_sf.map(f64::from)),
        series_per_program("pruned k-CCF", programs, |f| {
            f.largest_pruned.map(f64::from)
        }),
    ];
    draw_bars(
        path,
        title,
        linear_axis("k (calls)"),
        &program_names(programs),
        &all,
    )
}

fn figure_13(path: &Path, programs: &[ProgramTables]) -> Result<(), String> {
    let title = "Figure 13: size of the k-CCF and of the x%-similar ∞-CCF";
    let similar = |x: u32| {
        let size = move |f: &ForestFigures| {
            let entry = f.similar_size.iter().find(|(at, _)| *at == x);
            entry.map(|(_, size)| *size)
        };
        series_per_program(&format!("{x}%-similar"), programs, size)
    };
    let all = [
        series_per_program("k = 0", programs, |f| Some(f.smallest_ccf)),
        series_per_program("k = ∞", programs, |f| Some(f.largest_ccf)),
        series_per_program("k = ∞, pruned", programs, |f| Some(f.largest_pruned_ccf)),
        similar(10),
        similar(50),
        similar(90),
    ];
    draw_bars(
        path,
        title,
        log_axis("nodes, in multiples of the CCT's (logarithmic)"),
        &program_names(programs),
        &all,
    )
}
