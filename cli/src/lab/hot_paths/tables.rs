//! Computes the paper's Tables 1 and 2 and the data of its figures, for any program.

use std::io::{self, Write};
use std::path::PathBuf;

use lucce_callfeed::{CallLabels, CallMeasure, EventLeaf};
use lucce_kcontexts::{
    BuildTimes, BurstIntervals, CallTrace, CallingContextTree, ForestFigures, ForestSizes,
    IntervalUnit, KContextError,
};
use serde::Serialize;

use super::input::HotPathsInput;
use super::program_tables::ProgramTables;
use super::{HotPathsArgs, figures};
use crate::output::{grouped, lock_stdout, write_json};
use crate::progress::ProgressMeter;
use crate::{CommandError, CommandStatus, prefix_path, print_diagnostic};

#[derive(Serialize)]
struct AllProgramTables<'a> {
    programs: &'a [ProgramTables],
}

/// Approximate number of progress reports for a program.
const STEPS: u64 = 80;

pub fn run(args: &HotPathsArgs, files: &[PathBuf]) -> Result<CommandStatus, CommandError> {
    let mut end = CommandStatus::Fine;
    let mut programs = Vec::new();
    let bar = ProgressMeter::new("building", STEPS * 64 * files.len() as u64);
    for file in files {
        let input = HotPathsInput::open(file, &args.classes)?;
        let (mut program, ended) = measure_program(args, &input, &|| bar.tick(64))?;
        program.name = unique_name(&programs, program.name);
        programs.push(program);
        end = end.max(ended);
    }
    drop(bar);
    let mut out = lock_stdout();
    match args.json {
        true => write_json(
            &mut out,
            &AllProgramTables {
                programs: &programs,
            },
        )?,
        false => write_tables(&programs, &mut out)?,
    }
    out.flush()?;
    if let Some(folder) = &args.plot {
        let drawn = figures::draw_figures(folder, &programs).map_err(CommandError::Usage)?;
        print_diagnostic(format_args!("wrote {drawn} charts to {}", folder.display()));
    }
    Ok(end)
}

/// Makes a program's name unique, for its charts.
fn unique_name(programs: &[ProgramTables], name: String) -> String {
    let is_taken = |name: &str| programs.iter().any(|program| program.name == name);
    let mut other = name.clone();
    let mut number = 1;
    while is_taken(&other) {
        number += 1;
        other = format!("{name}-{number}");
    }
    other
}

fn measure_program(
    args: &HotPathsArgs,
    input: &HotPathsInput,
    tick: &dyn Fn(),
) -> Result<(ProgramTables, CommandStatus), CommandError> {
    let what = args.measure_and_leaf(input)?;
    let failed = |e| CommandError::Usage(prefix_path(&input.path, e));
    let mut labels = CallLabels::default();
    let (calls, end) = build_trace(args, input, what, &mut labels)?;
    let routine_of_each = labels.routine_of_each();
    let sizes = ForestSizes::new(&calls, &routine_of_each).map_err(failed)?;
    tick();
    let routines = calls.relabel_trace(&routine_of_each).map_err(failed)?;
    drop(calls);
    let bursts = input
        .is_recording()
        .then(|| effective_bursts(args.burst, &routines));
    let times = input
        .is_recording()
        .then(|| BuildTimes::new(&routines, sizes.depth, tick));
    let program = ProgramTables {
        name: input.file_name(),
        value: input.measure_name(what.0),
        sizes,
        times: times.transpose().map_err(failed)?,
        bursts: bursts.map(|bursts| bursts.to_string()),
        figures: ForestFigures::new(&routines, bursts, tick).map_err(failed)?,
    };
    Ok((program, end))
}

/// Loads calls into memory: as recorded, or a log's calling context tree once.
fn build_trace(
    args: &HotPathsArgs,
    input: &HotPathsInput,
    what: (CallMeasure, EventLeaf),
    labels: &mut CallLabels,
) -> Result<(CallTrace, CommandStatus), CommandError> {
    // Labels get their numbers while calls are fed.
    let mut trace = CallTrace::new(u32::MAX);
    if input.is_recording() {
        let end = input.feed_calls(what, labels, &mut trace, args.steps)?;
        return Ok((trace, end));
    }
    let mut tree: CallingContextTree = CallingContextTree::new();
    let end = input.feed_calls(what, labels, &mut tree, u64::MAX)?;
    let result: Result<(), KContextError> = tree.forest().walk_contexts(&mut trace);
    result.map_err(|e| CommandError::Usage(prefix_path(&input.path, e)))?;
    Ok((trace, end))
}

fn effective_bursts(wanted: BurstIntervals, trace: &CallTrace) -> BurstIntervals {
    match wanted.unit {
        IntervalUnit::Time if !trace.is_timed() => wanted.in_calls(),
        _ => wanted,
    }
}

fn write_tables(programs: &[ProgramTables], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "Table 1: nodes, and the depth of the calling context tree (CCT) in calls"
    )?;
    let head = [
        "call graph",
        "edges",
        "CCT",
        "CCT (sites)",
        "call tree",
        "depth",
        "",
    ];
    write_row(out, "", &head.map(str::to_owned))?;
    for ProgramTables {
        name, sizes, value, ..
    } in programs
    {
        let cells = [
            grouped(sizes.call_graph),
            grouped(sizes.call_graph_edges),
            grouped(sizes.cct),
            grouped(sizes.cct_sites),
            grouped(sizes.call_tree),
            grouped(sizes.depth.into()),
            format!(" {value}"),
        ];
        write_row(out, name, &cells)?;
    }
    if programs.iter().any(|program| program.times.is_some()) {
        write_times(programs, out)?;
    }
    write_figures(programs, out)
}

fn write_times(programs: &[ProgramTables], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nTable 2: seconds to build (∞-SF = CCT), first child and next sibling unless said"
    )?;
    let head = [
        "CCT",
        "1-SF",
        "1-SF index",
        "∞-SF index",
        "k",
        "CCT hash",
        "1-SF hash",
    ];
    write_row(out, "", &head.map(str::to_owned))?;
    for ProgramTables { name, times, .. } in programs {
        let Some(times) = times else { continue };
        let seconds = |seconds: f64| format!("{seconds:.3}");
        let cells = [
            seconds(times.cct),
            seconds(times.sf1),
            seconds(times.sf1_indexed),
            seconds(times.sf_inf_indexed),
            number_or_dash(times.k),
            seconds(times.cct_hashed),
            seconds(times.sf1_hashed),
        ];
        write_row(out, name, &cells)?;
    }
    Ok(())
}

fn number_or_dash(k: Option<u32>) -> String {
    k.map_or_else(|| "-".to_owned(), |k| k.to_string())
}

fn write_figures(programs: &[ProgramTables], out: &mut impl Write) -> io::Result<()> {
    let of = |x: u32, list: &[(u32, f64)]| {
        let entry = list.iter().find(|(at, _)| *at == x);
        entry.map_or_else(String::new, |(_, value)| format!("{value:.3}"))
    };
    write_table(
        out,
        programs,
        "Figure 8: average depth of trees in the x%-similar ∞-CCF",
        &["10%", "30%", "50%", "70%", "90%", "100%"],
        |figures| {
            [10, 30, 50, 70, 90, 100]
                .map(|x| of(x, &figures.similar_depth))
                .into()
        },
    )?;
    write_table(
        out,
        programs,
        "Figure 9: what makes 90%",
        &["routines", "hot", "contexts", "hot"],
        |f| {
            [f.routines, f.hot_routines, f.contexts, f.hot_contexts]
                .map(grouped)
                .into()
        },
    )?;
    let k_contexts = |f: &ForestFigures| {
        let at = |k: usize| f.k_contexts.get(k).or(f.k_contexts.last());
        let hot = |k| at(k).map_or_else(String::new, |(_, n, hot)| format!("{n}/{hot}"));
        [1, 2, 5, 10, 20, 50].map(hot).into()
    };
    write_table(
        out,
        programs,
        "Figure 10: k-contexts/hot k-contexts, by k",
        &["1", "2", "5", "10", "20", "50"],
        k_contexts,
    )?;
    write_curves(programs, out)?;
    write_table(
        out,
        programs,
        "Figure 12: the largest k up to which it is smaller than the CCT",
        &["k-CCF", "k-SF", "pruned"],
        |f| {
            [f.largest_k_ccf, f.largest_k_sf, f.largest_pruned]
                .map(number_or_dash)
                .into()
        },
    )?;
    write_table(
        out,
        programs,
        "Figure 13: size of the k-CCF, in nodes of the CCT; x%-similar ∞-CCF",
        &["k=0", "k=∞", "∞ pruned", "10%", "50%", "90%"],
        |f| {
            let sizes = [f.smallest_ccf, f.largest_ccf, f.largest_pruned_ccf];
            let similar = [10, 50, 90].map(|x| of(x, &f.similar_size));
            let sizes = sizes.into_iter().map(|size| format!("{size:.3}"));
            sizes.chain(similar).collect()
        },
    )
}

fn write_curves(programs: &[ProgramTables], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nFigure 11: nodes, by k")?;
    for ProgramTables {
        name,
        figures,
        bursts,
        ..
    } in programs
    {
        let ks = [1, 2, 5, 10, 20, 50];
        let at = |curve: &[(u32, u64)]| {
            // Sizes were measured at these lengths and some others.
            ks.map(|k| {
                let size = curve.iter().take_while(|(at, _)| *at <= k).last();
                size.map_or_else(String::new, |(_, size)| grouped(*size))
            })
        };
        write_row(out, name, &ks.map(|k| k.to_string()))?;
        write_row(out, "  CCT", &ks.map(|_| grouped(figures.cct)))?;
        write_row(out, "  k-SF", &at(&figures.k_sf))?;
        write_row(out, "  k-CCF", &at(&figures.k_ccf))?;
        write_row(out, "  pruned k-CCF", &at(&figures.pruned_k_ccf))?;
        if let (Some(cct), Some(k_sf), Some(bursts)) =
            (figures.burst_cct, &figures.burst_k_sf, bursts)
        {
            write_row(out, "  burst CCT", &ks.map(|_| grouped(cct)))?;
            write_row(out, "  burst k-SF", &at(k_sf))?;
            writeln!(out, "  bursts of {bursts}")?;
        }
    }
    Ok(())
}

fn write_table(
    out: &mut impl Write,
    programs: &[ProgramTables],
    title: &str,
    head: &[&str],
    cells: impl Fn(&ForestFigures) -> Vec<String>,
) -> io::Result<()> {
    writeln!(out, "\n{title}")?;
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    write_row(out, "", &head)?;
    programs
        .iter()
        .try_for_each(|program| write_row(out, &program.name, &cells(&program.figures)))
}

/// Writes a row. A name longer than its column uses room of the first cell.
fn write_row(out: &mut impl Write, name: &str, cells: &[String]) -> io::Result<()> {
    const ENDS: usize = 30;
    let first = ENDS.saturating_sub(name.chars().count());
    let widths = [first].into_iter().chain(std::iter::repeat(14));
    let cells = cells.iter().zip(widths);
    let cells = cells.map(|(cell, width)| format!("{:>width$}", format!(" {cell}")));
    let line = format!("{name}{}", cells.collect::<String>());
    writeln!(out, "{}", line.trim_end())
}
