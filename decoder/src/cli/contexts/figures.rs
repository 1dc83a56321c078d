//! The paper's Figures 8 to 13, drawn.

use std::fs;
use std::path::Path;

use lucce_kcontexts::{Curve, Figures};
use plotters::chart::SeriesLabelPosition::{UpperLeft, UpperRight};

use super::charts::{Axis, Series, bars, lines};
use super::tables::Program;

/// How many charts were written.
pub fn draw(folder: &Path, programs: &[Program]) -> Result<usize, String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let path = |name: &str| folder.join(format!("{name}.svg"));
    figure_8(&path("figure-8"), programs)?;
    figure_9(&path("figure-9"), programs)?;
    for Program { name, figures, .. } in programs {
        figure_10(&path(&format!("figure-10-{name}")), name, figures)?;
        figure_11(&path(&format!("figure-11-{name}")), name, figures)?;
    }
    figure_12(&path("figure-12"), programs)?;
    figure_13(&path("figure-13"), programs)?;
    Ok(4 + 2 * programs.len())
}

const fn linear(title: &str) -> Axis<'_> {
    Axis {
        title,
        is_log: false,
    }
}

const fn log(title: &str) -> Axis<'_> {
    Axis {
        title,
        is_log: true,
    }
}

fn series<T>(name: &str, values: impl IntoIterator<Item = T>) -> Series<T> {
    Series {
        name: name.to_owned(),
        values: values.into_iter().collect(),
    }
}

fn figure_8(path: &Path, programs: &[Program]) -> Result<(), String> {
    let title = "Figure 8: average depth of trees in the x%-similar ∞-CCF";
    let curve = |program: &Program| {
        let points = program.figures.similar_depth.iter();
        series(
            short(&program.name),
            points.map(|(x, depth)| (f64::from(*x), *depth)),
        )
    };
    let curves: Vec<_> = programs.iter().map(curve).collect();
    lines(
        path,
        title,
        (linear("x (%)"), linear("average depth (calls)")),
        UpperRight,
        &curves,
    )
}

/// Recordings go without their ending, which says nothing in a chart.
fn short(name: &str) -> &str {
    name.strip_suffix(".calls").unwrap_or(name)
}

fn names(programs: &[Program]) -> Vec<String> {
    programs
        .iter()
        .map(|program| short(&program.name).to_owned())
        .collect()
}

fn each(
    name: &str,
    programs: &[Program],
    value: impl Fn(&Figures) -> Option<f64>,
) -> Series<Option<f64>> {
    series(name, programs.iter().map(|program| value(&program.figures)))
}

fn figure_9(path: &Path, programs: &[Program]) -> Result<(), String> {
    let title = "Figure 9: routines and calling contexts; hot are those that make 90%";
    let all = [
        each("routines", programs, |f| Some(f.routines as f64)),
        each("hot routines", programs, |f| Some(f.hot_routines as f64)),
        each("contexts", programs, |f| Some(f.contexts as f64)),
        each("hot contexts", programs, |f| Some(f.hot_contexts as f64)),
    ];
    bars(
        path,
        title,
        log("how many (logarithmic)"),
        &names(programs),
        &all,
    )
}

fn figure_10(path: &Path, name: &str, figures: &Figures) -> Result<(), String> {
    let title = format!(
        "Figure 10, {}: k-contexts, and those that make 90%",
        short(name)
    );
    let ks = || figures.k_contexts.iter();
    let constant =
        |name, value: u64| series(name, ks().map(move |(k, ..)| (f64::from(*k), value as f64)));
    let all = [
        series(
            "k-contexts",
            ks().map(|(k, n, _)| (f64::from(*k), *n as f64)),
        ),
        series(
            "hot k-contexts",
            ks().map(|(k, _, hot)| (f64::from(*k), *hot as f64)),
        ),
        constant("calling contexts", figures.contexts),
        constant("hot routines", figures.hot_routines),
    ];
    let axes = (linear("k (calls)"), log("how many (logarithmic)"));
    lines(path, &title, axes, UpperLeft, &all)
}

fn figure_11(path: &Path, name: &str, figures: &Figures) -> Result<(), String> {
    let title = format!("Figure 11, {}: nodes of the forests, by k", short(name));
    let curve = |name, curve: &Curve| {
        series(
            name,
            curve.iter().map(|(k, size)| (f64::from(*k), *size as f64)),
        )
    };
    let constant = |name, value: u64| {
        let ks = figures.k_sf.iter().map(|(k, _)| *k);
        series(name, ks.map(|k| (f64::from(k), value as f64)))
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
    let axes = (log("k (calls, logarithmic)"), log("nodes (logarithmic)"));
    lines(path, &title, axes, UpperLeft, &all)
}

fn figure_12(path: &Path, programs: &[Program]) -> Result<(), String> {
    let title = "Figure 12: the largest k up to which the forest is smaller than the CCT";
    let all = [
        each("k-CCF", programs, |f| f.largest_k_ccf.map(f64::from)),
        each("k-SF", programs, |f| f.largest_k_sf.map(f64::from)),
        each("pruned k-CCF", programs, |f| {
            f.largest_pruned.map(f64::from)
        }),
    ];
    bars(path, title, linear("k (calls)"), &names(programs), &all)
}

fn figure_13(path: &Path, programs: &[Program]) -> Result<(), String> {
    let title = "Figure 13: size of the k-CCF and of the x%-similar ∞-CCF";
    let similar = |x: u32| {
        let size = move |f: &Figures| {
            let found = f.similar_size.iter().find(|(at, _)| *at == x);
            found.map(|(_, size)| *size)
        };
        each(&format!("{x}%-similar"), programs, size)
    };
    let all = [
        each("k = 0", programs, |f| Some(f.smallest_ccf)),
        each("k = ∞", programs, |f| Some(f.largest_ccf)),
        each("k = ∞, pruned", programs, |f| Some(f.largest_pruned_ccf)),
        similar(10),
        similar(50),
        similar(90),
    ];
    bars(
        path,
        title,
        log("nodes, in multiples of the CCT's (logarithmic)"),
        &names(programs),
        &all,
    )
}
