//! The measurements, and their ratios to the baseline.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::{Centre, Spread, geometric_mean};

/// A measured quantity of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// CPU time in milliseconds of the program's own threads: all but those that serve the JVM.
    Own,
    /// Elapsed time in milliseconds.
    Wall,
    /// CPU time in milliseconds of all threads of the process.
    Cpu,
    /// CPU time in milliseconds from the JVM's start to its end, if the other times cover only a part of it.
    Process,
    /// Nanoseconds per operation of a micro-benchmark.
    PerOperation,
    /// Bytes that the VM allocated for the program's threads.
    Allocated,
    /// Peak resident set size of the process in bytes.
    PeakRss,
    /// Bytes that an agent wrote to its file.
    Recorded,
    /// Milliseconds spent by the JIT compilers.
    Compilation,
    /// Bytes of compiled code.
    CodeCache,
    /// The part of [`Metric::Own`], in milliseconds, that may belong to threads that serve the JVM.
    Unattributed,
}

/// The three times that are reported side by side: the cost for application threads, the elapsed time, and the time of
/// all threads together.
pub const TIMES: [Metric; 3] = [Metric::Own, Metric::Wall, Metric::Cpu];

/// Values of a metric, by round.
pub type Samples = Vec<Vec<f64>>;

/// The outcome of a program under a variant.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    Measured(BTreeMap<Metric, Samples>),
    /// Why the variant cannot run here.
    NotRun(String),
    /// The reason of a failure: the program ended with an error, or computed another result than the baseline.
    Failed(String),
}

/// A program and its outcomes, in the order of the report's columns.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub program: String,
    pub outcomes: Vec<Outcome>,
}

/// A variant's column.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Column {
    pub name: String,
    pub about: String,
}

/// All measurements of one run of the harness.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The environment of the measurement: the JVM, the number of processors, flags.
    pub setting: BTreeMap<String, String>,
    /// The centre whose ratios are computed.
    pub centre: Centre,
    /// The first is the baseline.
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// The ratio of the variant's centre to the baseline's, and the smallest and largest ratio of the rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Ratio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// A metric of a program under a variant. It is never shown without the baseline's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quantity {
    pub spread: Spread,
    /// `None`: the baseline has no value, or a negligible one: see [`Metric::is_nothing`].
    pub ratio: Option<Ratio>,
}

impl Metric {
    pub fn name(self) -> &'static str {
        match self {
            Metric::Own => "CPU time of the program's own threads",
            Metric::Cpu => "CPU time of the process",
            Metric::Wall => "wall time",
            Metric::Process => "CPU time with start and warm-up",
            Metric::PerOperation => "time per operation",
            Metric::Allocated => "allocated by the VM",
            Metric::PeakRss => "peak memory",
            Metric::Recorded => "recorded",
            Metric::Compilation => "compilation time",
            Metric::CodeCache => "compiled code",
            Metric::Unattributed => "of the own threads' time, not surely theirs",
        }
    }

    /// Whether a value is too small for ratios: 0, or a time per operation below the time of any instruction, because
    /// the compiler removed the operation.
    pub fn is_nothing(self, value: f64) -> bool {
        match self {
            Metric::PerOperation => value < 0.1,
            // The distance of the last observation from a process's end does not depend on the variant.
            Metric::Unattributed => true,
            _ => value <= 0.0,
        }
    }

    /// Returns a value in readable form.
    pub fn show(self, value: f64) -> String {
        match self {
            Metric::Own
            | Metric::Cpu
            | Metric::Wall
            | Metric::Process
            | Metric::Compilation
            | Metric::Unattributed => {
                format!("{value:.0} ms")
            }
            Metric::PerOperation if value < 10.0 => format!("{value:.2} ns"),
            Metric::PerOperation => format!("{value:.0} ns"),
            _ if value < 1e6 => format!("{:.1} KB", value / 1e3),
            Metric::Allocated | Metric::PeakRss | Metric::Recorded | Metric::CodeCache => {
                format!("{:.1} MB", value / 1e6)
            }
        }
    }
}

impl Row {
    fn quantity(&self, column: usize, metric: Metric, centre: Centre) -> Option<Quantity> {
        let samples = self.samples(column, metric)?;
        Some(Quantity {
            spread: Spread::of(samples.iter().flatten().copied())?,
            ratio: self
                .samples(0, metric)
                .filter(|baseline| {
                    let all = Spread::of(baseline.iter().flatten().copied());
                    all.is_some_and(|all| !metric.is_nothing(all.centre(centre)))
                })
                .and_then(|baseline| Ratio::of(samples, baseline, centre)),
        })
    }

    fn samples(&self, column: usize, metric: Metric) -> Option<&Samples> {
        match self.outcomes.get(column)? {
            Outcome::Measured(metrics) => metrics.get(&metric),
            Outcome::NotRun(_) | Outcome::Failed(_) => None,
        }
    }
}

impl Ratio {
    fn of(variant: &Samples, baseline: &Samples, centre: Centre) -> Option<Ratio> {
        let value = quotient(
            variant.iter().flatten().copied(),
            baseline.iter().flatten().copied(),
            centre,
        )?;
        let of_rounds = variant.iter().zip(baseline).filter_map(|(one, base)| {
            // A round without a measurement is skipped.
            quotient(one.iter().copied(), base.iter().copied(), centre)
        });
        let rounds = Spread::of(of_rounds)?;
        Some(Ratio {
            value,
            low: rounds.min.min(value),
            high: rounds.max.max(value),
        })
    }
}

/// `None`: the baseline's centre is 0.
fn quotient(
    variant: impl Iterator<Item = f64>,
    baseline: impl Iterator<Item = f64>,
    centre: Centre,
) -> Option<f64> {
    let variant = Spread::of(variant)?.centre(centre);
    let baseline = Spread::of(baseline)?.centre(centre);
    (baseline > 0.0).then(|| variant / baseline)
}

impl Report {
    /// Returns a metric of a program under the variant in that column.
    pub fn quantity(&self, row: &Row, column: usize, metric: Metric) -> Option<Quantity> {
        row.quantity(column, metric, self.centre)
    }

    /// Returns the main metric; for programs whose own threads are unknown, that of all threads.
    pub fn first(&self) -> Metric {
        match self.metrics().contains(&Metric::Own) {
            true => Metric::Own,
            false => Metric::Cpu,
        }
    }

    /// Returns the metrics that at least one run has.
    pub fn metrics(&self) -> Vec<Metric> {
        let of_outcome = |outcome: &Outcome| match outcome {
            Outcome::Measured(metrics) => metrics.keys().copied().collect(),
            Outcome::NotRun(_) | Outcome::Failed(_) => Vec::new(),
        };
        let outcomes = self.rows.iter().flat_map(|row| &row.outcomes);
        let mut metrics: Vec<Metric> = outcomes.flat_map(of_outcome).collect();
        metrics.sort_unstable();
        metrics.dedup();
        metrics
    }

    /// Returns the geometric mean over all programs with a ratio for the variant in that column, and their number.
    pub fn geometric_mean(&self, column: usize, metric: Metric) -> Option<(f64, usize)> {
        let ratios: Vec<f64> = self
            .rows
            .iter()
            .filter_map(|row| self.quantity(row, column, metric)?.ratio)
            .map(|ratio| ratio.value)
            .collect();
        Some((geometric_mean(&ratios)?, ratios.len()))
    }

    /// Returns the failures, one line each: program, variant, reason.
    pub fn failures(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for row in &self.rows {
            for (column, outcome) in self.columns.iter().zip(&row.outcomes) {
                if let Outcome::Failed(reason) = outcome {
                    lines.push(format!("{}, {}: {reason}", row.program, column.name));
                }
            }
        }
        lines
    }

    /// Returns the variants that were not run, one line each: variant, reason.
    pub fn not_run(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for row in &self.rows {
            for (column, outcome) in self.columns.iter().zip(&row.outcomes) {
                if let Outcome::NotRun(reason) = outcome {
                    lines.push(format!("{}: {reason}", column.name));
                }
            }
        }
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Returns the whole report as JSON: settings, and per program and variant the spread, the ratio, and all values by
    /// round.
    ///
    /// # Errors
    /// A number is not finite.
    pub fn json(&self) -> Result<String, String> {
        serde_json::to_string_pretty(self).map_err(|e| e.to_string())
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Whole<'a> {
            setting: &'a BTreeMap<String, String>,
            centre: Centre,
            variants: &'a [Column],
            programs: Vec<Program<'a>>,
            geometric_means: Vec<Mean<'a>>,
        }
        #[derive(Serialize)]
        struct Program<'a> {
            program: &'a str,
            variants: Vec<Cell<'a>>,
        }
        let programs = self.rows.iter().map(|row| Program {
            program: &row.program,
            variants: self.cells(row).collect(),
        });
        Whole {
            setting: &self.setting,
            centre: self.centre,
            variants: &self.columns,
            programs: programs.collect(),
            geometric_means: self.means(),
        }
        .serialize(serializer)
    }
}

/// A cell in JSON.
#[derive(Serialize)]
struct Cell<'a> {
    variant: &'a str,
    #[serde(flatten)]
    outcome: CellOutcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum CellOutcome<'a> {
    Measured(BTreeMap<Metric, CellQuantity<'a>>),
    NotRun(&'a str),
    Failed(&'a str),
}

#[derive(Serialize)]
struct CellQuantity<'a> {
    #[serde(flatten)]
    quantity: Quantity,
    rounds: &'a Samples,
}

#[derive(Serialize)]
struct Mean<'a> {
    variant: &'a str,
    metric: Metric,
    ratio: f64,
    programs: usize,
}

impl Report {
    fn cells<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = Cell<'a>> {
        let numbered = self.columns.iter().zip(&row.outcomes).enumerate();
        numbered.map(move |(at, (column, outcome))| Cell {
            variant: &column.name,
            outcome: match outcome {
                Outcome::NotRun(reason) => CellOutcome::NotRun(reason),
                Outcome::Failed(reason) => CellOutcome::Failed(reason),
                Outcome::Measured(metrics) => {
                    let quantities = metrics.iter().filter_map(|(metric, rounds)| {
                        let quantity = self.quantity(row, at, *metric)?;
                        Some((*metric, CellQuantity { quantity, rounds }))
                    });
                    CellOutcome::Measured(quantities.collect())
                }
            },
        })
    }

    fn means(&self) -> Vec<Mean<'_>> {
        let of_metric = |metric| {
            let columns = self.columns.iter().enumerate();
            columns.filter_map(move |(at, column)| {
                let (ratio, programs) = self.geometric_mean(at, metric)?;
                Some(Mean {
                    variant: &column.name,
                    metric,
                    ratio,
                    programs,
                })
            })
        };
        self.metrics().into_iter().flat_map(of_metric).collect()
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ratio { value, low, high } = self;
        match low == high {
            true => write!(f, "{value:.2}"),
            false => write!(f, "{value:.2} ({low:.2}–{high:.2})"),
        }
    }
}

#[cfg(test)]
pub(crate) mod report_tests {
    use super::*;

    /// Returns two programs under a baseline and three variants; the second variant could not run, the third fails in
    /// the second program.
    pub(crate) fn sample() -> Report {
        let measured = |cpu: &[&[f64]], wall: f64| {
            let cpu = cpu.iter().map(|round| round.to_vec()).collect();
            Outcome::Measured(BTreeMap::from([
                (Metric::Cpu, cpu),
                (Metric::Wall, vec![vec![wall], vec![wall]]),
            ]))
        };
        let no_option = || Outcome::NotRun("unknown option <tracking>".into());
        let row = |program: &str, outcomes| Row {
            program: program.into(),
            outcomes,
        };
        let column = |name: &str| Column {
            name: name.into(),
            about: format!("about {name}"),
        };
        Report {
            setting: BTreeMap::from([("jvm".into(), "17".into())]),
            centre: Centre::Median,
            columns: ["none", "tracking", "paper", "alloc"].map(column).into(),
            rows: vec![
                row(
                    "H2Mix",
                    vec![
                        measured(&[&[100.0, 110.0], &[90.0, 100.0]], 60.0),
                        measured(&[&[120.0, 132.0], &[126.0, 126.0]], 75.0),
                        no_option(),
                        measured(&[&[200.0], &[400.0]], 90.0),
                    ],
                ),
                row(
                    "Xalan",
                    vec![
                        measured(&[&[50.0], &[50.0]], 30.0),
                        measured(&[&[100.0], &[100.0]], 60.0),
                        no_option(),
                        Outcome::Failed("computed b, the baseline a".into()),
                    ],
                ),
            ],
        }
    }

    #[test]
    fn ratios_are_of_medians_and_their_range_is_the_rounds() {
        let report = sample();
        let ratio = |row: usize, column| {
            let quantity = report.quantity(&report.rows[row], column, Metric::Cpu);
            quantity.unwrap().ratio.unwrap()
        };
        let tracking = ratio(0, 1);
        assert_eq!(tracking.value, 126.0 / 100.0);
        assert_eq!((tracking.low, tracking.high), (126.0 / 105.0, 126.0 / 95.0));
        assert_eq!(ratio(0, 0).value, 1.0);
        assert_eq!(ratio(0, 0).to_string(), "1.00");
        assert_eq!(tracking.to_string(), "1.26 (1.20–1.33)");
    }

    #[test]
    fn what_the_compiler_has_left_out_has_no_ratio() {
        let mut report = sample();
        let loops = |ns: f64| Outcome::Measured([(Metric::PerOperation, vec![vec![ns]])].into());
        for (base, expected) in [(0.004, None), (2.0, Some(2.0))] {
            report.rows[0].outcomes = vec![loops(base), loops(4.0)];
            let quantity = report.quantity(&report.rows[0], 1, Metric::PerOperation);
            let quantity = quantity.unwrap();
            assert_eq!(quantity.ratio.map(|ratio| ratio.value), expected);
            assert_eq!(quantity.spread.median, 4.0);
        }
    }

    #[test]
    fn means_go_over_the_programs_that_have_a_ratio() {
        let report = sample();
        let (mean, programs) = report.geometric_mean(1, Metric::Cpu).unwrap();
        assert!((mean - (1.26_f64 * 2.0).sqrt()).abs() < 1e-12);
        assert_eq!(programs, 2);
        let (mean, programs) = report.geometric_mean(3, Metric::Cpu).unwrap();
        assert!((mean - 3.0).abs() < 1e-12);
        assert_eq!(programs, 1);
        assert_eq!(report.geometric_mean(2, Metric::Cpu), None);
    }

    #[test]
    fn failures_are_reported() {
        let report = sample();
        assert_eq!(
            report.failures(),
            ["Xalan, alloc: computed b, the baseline a"]
        );
        assert_eq!(report.not_run(), ["paper: unknown option <tracking>"]);
    }

    #[test]
    fn json_holds_every_cell() {
        let json: serde_json::Value = serde_json::from_str(&sample().json().unwrap()).unwrap();
        let cell = |program: usize, variant: usize| &json["programs"][program]["variants"][variant];
        let cpu = &cell(0, 1)["measured"]["cpu"];
        assert_eq!(cpu["ratio"]["value"], 1.26);
        assert_eq!(cpu["spread"]["count"], 4);
        assert_eq!(cpu["rounds"][0][1], 132.0);
        assert_eq!(cell(0, 2)["not_run"], "unknown option <tracking>");
        assert_eq!(cell(1, 3)["failed"], "computed b, the baseline a");
        assert_eq!(json["setting"]["jvm"], "17");
        let means = json["geometric_means"].as_array().unwrap();
        let alloc = means
            .iter()
            .find(|mean| mean["variant"] == "alloc" && mean["metric"] == "cpu");
        assert_eq!(alloc.unwrap()["programs"], 1);
    }

    #[test]
    fn a_baseline_of_nothing_gives_no_ratio() {
        let nothing = vec![vec![0.0]];
        let ratio = |variant: &Samples, baseline| Ratio::of(variant, baseline, Centre::Median);
        assert_eq!(ratio(&vec![vec![1.0]], &nothing), None);
        assert_eq!(ratio(&nothing, &Vec::new()), None);
    }
}
