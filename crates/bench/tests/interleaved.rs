//! The order of runs and what becomes of them, with a shell script in Java's place.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lucce_bench::{
    Centre, JavaCommand, Metric, Outcome, Plan, Program, Report, Step, Tools, Variant, measure,
};

/// Every call is a line in `calls`; then the script's own part.
fn java(folder: &Path, script: &str) -> JavaCommand {
    let java = folder.join("java");
    let calls = folder.join("calls");
    let text = format!("#!/bin/sh\necho \"$*\" >>{}\n{script}\n", calls.display());
    fs::write(&java, text).unwrap();
    fs::set_permissions(&java, fs::Permissions::from_mode(0o755)).unwrap();
    JavaCommand {
        java: java.into(),
        arguments: vec!["Main".into()],
        folder: None,
        without_env: vec!["JAVA_TOOL_OPTIONS"],
    }
}

struct Measured {
    report: Report,
    /// The arguments of every call but those that only try the flags.
    calls: Vec<String>,
    steps: Vec<(usize, usize)>,
}

/// A script that is being written must not be inherited, open, by another test's child: it could not
/// be started then.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Baseline and two variants of one's own, `-a` and `-b`, in three rounds.
fn run(script: &str, warm_up: usize) -> Measured {
    run_program(script, warm_up, false)
}

fn run_program(script: &str, warm_up: usize, turns: bool) -> Measured {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        programs: vec![Program {
            name: "Main".into(),
            command: java(folder.path(), script),
            whole: false,
            turns,
            warm_up: None,
        }],
        variants: Variant::list(["a=-a", "b=-b {out}"]).unwrap(),
        rounds: 3,
        warm_up,
        centre: Centre::Median,
        limit: Duration::from_secs(60),
        tools: Tools::default(),
        setting: BTreeMap::new(),
        scratch: folder.path().join("scratch"),
    };
    let steps = std::cell::RefCell::new(Vec::new());
    let report = measure(&plan, &|step: &Step, _: &Report| {
        steps.borrow_mut().push((step.done, step.total));
    });
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    let calls = calls.lines().filter(|call| !call.contains("-version"));
    Measured {
        report,
        calls: calls.map(|call| call.chars().take(2).collect()).collect(),
        steps: steps.into_inner(),
    }
}

fn outcome(measured: &Measured, column: usize) -> &Outcome {
    &measured.report.rows[0].outcomes[column]
}

fn reason(measured: &Measured, column: usize) -> &str {
    match outcome(measured, column) {
        Outcome::Failed(reason) | Outcome::NotRun(reason) => reason,
        Outcome::Measured(_) => panic!("{:?}", measured.report),
    }
}

const ITERATES: &str = "echo 'iteration 1: 900 ms wall, 900 ms cpu, checksum x'
    case \"$1\" in -a) t=20;; *) t=10;; esac
    echo \"iteration 2: $t ms wall, $t ms cpu, checksum x\"";

#[test]
fn variants_take_turns_and_the_warm_up_is_dropped() {
    let measured = run(ITERATES, 1);
    assert_eq!(
        measured.calls,
        ["Ma", "-a", "-b", "-a", "-b", "Ma", "-b", "Ma", "-a"]
    );
    let report = &measured.report;
    let row = &report.rows[0];
    let ratio = |column| {
        let cpu = report.quantity(row, column, Metric::Cpu).unwrap();
        assert_eq!(cpu.spread.count, 3);
        cpu.ratio.unwrap().value
    };
    assert_eq!([ratio(0), ratio(1), ratio(2)], [1.0, 2.0, 1.0]);
    // What was dropped is in the time of the whole process.
    let process = report.quantity(row, 1, Metric::Process).unwrap();
    assert_eq!(process.spread.count, 3);
    assert_eq!(measured.steps.last(), Some(&(9, 9)));
}

/// Of each iteration there is a line in `calls`, too.
#[test]
fn programs_that_wait_take_turns_iteration_by_iteration() {
    const WAITS: &str = "case \"$*\" in *-version*) exit;; esac
    for i in 1 2 3; do
        read turn
        case \"$1\" in -a) n=a. t=20;; -b) n=b. t=10;; *) n=M. t=10;; esac
        echo $n >>\"$(dirname \"$0\")/calls\"
        echo \"iteration $i: $t ms wall, $t ms cpu, checksum x\"
    done";
    let measured = run_program(WAITS, 1, true);
    let report = &measured.report;
    let row = &report.rows[0];
    for (column, ratio) in [(0, 1.0), (1, 2.0), (2, 1.0)] {
        let cpu = report.quantity(row, column, Metric::Cpu).unwrap();
        assert_eq!((cpu.spread.count, cpu.ratio.unwrap().value), (6, ratio));
    }
    assert_eq!(measured.steps.last(), Some(&(9, 9)));
    // In each round three start, and each has three turns.
    let turns = measured.calls.iter().filter(|call| call.ends_with('.'));
    let turns: Vec<&String> = turns.collect();
    assert_eq!((turns.len(), measured.calls.len()), (27, 36));
    for (round, turns) in turns.chunks(9).enumerate() {
        for (turn, turns) in turns.chunks(3).enumerate() {
            let expected = [0, 1, 2].map(|at| ["M.", "a.", "b."][(at + turn + round) % 3]);
            assert_eq!(turns, expected, "round {round}");
        }
    }
}

#[test]
fn of_a_program_without_iterations_the_whole_process_is_measured() {
    let measured = run(":", 1);
    // A round more: the first of each is dropped.
    assert_eq!(measured.calls.len(), 12);
    assert_eq!(measured.steps.last(), Some(&(12, 12)));
    let report = &measured.report;
    let row = &report.rows[0];
    assert_eq!(
        report.quantity(row, 1, Metric::Wall).unwrap().spread.count,
        3
    );
    assert_eq!(report.quantity(row, 1, Metric::Process), None);
    assert_eq!(run(":", 0).calls.len(), 9);
}

#[test]
fn a_variant_with_refused_flags_is_not_run_and_has_a_reason() {
    let script = format!(
        "[ \"$1\" != -a ] || {{ echo \"lucce: unknown option 'a'\" >&2; exit 1; }}\n{ITERATES}"
    );
    let measured = run(&script, 1);
    assert!(matches!(outcome(&measured, 1), Outcome::NotRun(_)));
    assert!(reason(&measured, 1).starts_with("lucce: unknown option 'a'"));
    assert!(measured.calls.iter().all(|call| call != "-a"));
    assert!(matches!(outcome(&measured, 2), Outcome::Measured(_)));
    assert_eq!(measured.report.failures(), Vec::<String>::new());
}

#[test]
fn another_result_than_the_baselines_is_a_failed_run() {
    let script = "case \"$1\" in -b) c=bad;; *) c=good;; esac
        for i in 1 2; do echo \"iteration $i: 5 ms wall, 5 ms cpu, checksum $c\"; done";
    let measured = run(script, 1);
    assert_eq!(reason(&measured, 2), "computed bad, the baseline good");
    assert_eq!(measured.report.failures().len(), 1);
    // It is not run again.
    assert_eq!(
        measured.calls.iter().filter(|call| *call == "-b").count(),
        1
    );
}

#[test]
fn a_failing_program_is_reported_with_its_last_output() {
    let script = "[ \"$2\" = -version ] || [ \"$1\" != -a ] || { echo no luck >&2; exit 3; }";
    let measured = run(script, 0);
    assert!(reason(&measured, 1).starts_with("no luck"));
    assert!(reason(&measured, 1).contains("exit status: 3"));
}

#[test]
fn without_a_baseline_nothing_is_measured() {
    let measured = run("[ \"$1\" != Main ] || exit 1", 0);
    assert_eq!(reason(&measured, 1), "the baseline failed");
    assert_eq!(measured.calls, ["Ma"]);
    assert_eq!(measured.report.failures().len(), 3);
}

#[test]
fn too_few_iterations_and_changing_results_are_failures() {
    let measured = run("echo 'iteration 1: 5 ms wall, 5 ms cpu, checksum x'", 1);
    assert_eq!(
        reason(&measured, 0),
        "printed 1 iterations, of which 1 are dropped"
    );
    let script = "for i in 1 2; do echo \"iteration $i: 5 ms wall, 5 ms cpu, checksum $i\"; done";
    assert!(reason(&run(script, 1), 0).contains("computed 1 and 2"));
}

#[test]
fn recordings_of_a_variant_are_reported_and_removed() {
    let script = "[ \"$1\" != -b ] || printf 1234567 >\"$2\"";
    let measured = run(script, 0);
    let report = &measured.report;
    let row = &report.rows[0];
    let recorded = report.quantity(row, 2, Metric::Recorded).unwrap();
    assert_eq!((recorded.spread.median, recorded.ratio), (7.0, None));
    assert_eq!(report.quantity(row, 1, Metric::Recorded), None);
}
