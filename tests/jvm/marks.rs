//! Marks and resets: reports between them have exactly what the program did meanwhile, as the program knows it.

use std::fs;
use std::path::Path;

use lucce_tests::{Checked, Java, Jdk, Lucce, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

/// What a phase makes: objects of the main thread; arrays of a thread that ends, every second with an exception.
#[derive(Clone, Copy)]
struct Phase {
    entries: u64,
    rows: u64,
}

/// Of a class that each phase loads and drops.
const LEAVES: u64 = 50;

/// As in `Phases.java`.
const PHASES: [Phase; 5] = [
    Phase {
        entries: 1000,
        rows: 20,
    },
    Phase {
        entries: 30,
        rows: 4,
    },
    Phase {
        entries: 7,
        rows: 6,
    },
    Phase {
        entries: 3,
        rows: 2,
    },
    Phase {
        entries: 5,
        rows: 8,
    },
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        let quick = jdk == setup.jdk();
        let name = |what: &str| format!("marks::{}::{what}", jdk.version);
        tests.push(test(name("exact"), quick, move || {
            counts_phases(setup, jdk, End::Normal)
        }));
        tests.push(test(name("killed"), false, move || {
            counts_phases(setup, jdk, End::Killed)
        }));
        tests.push(test(name("meanwhile"), false, move || {
            bounds_threads(setup, jdk)
        }));
    }
    tests
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Normal,
    Killed,
}

/// Runs the program up to its end, with a mark and a reset by command.
fn counts_phases(setup: &'static Setup, jdk: &'static Jdk, end: End) -> Checked {
    let way = if end == End::Normal {
        "exact"
    } else {
        "killed"
    };
    let java = Java::new(setup, jdk, &format!("marks-{}-{way}", jdk.version));
    let folder = java.folder().to_string_lossy().into_owned();
    // Of an earlier run that failed.
    for name in ["warm", "reset", "end"] {
        let _ = fs::remove_file(java.folder().join(name));
    }
    let java = java
        .agent("events=alloc+exception,verify=1")
        .main(["Phases", &folder]);
    let mut jvm = Running::with_words(java, "waits for warm")?;
    let marked = jvm.ctl(&["mark", "warm"])?;
    ensure(marked["mark"] == "warm", || marked.to_string())?;
    jvm.refused(&["mark", "start"], "cannot have the name start")?;
    jvm.refused(&["mark", "a\tb"], "characters in one line")?;
    pass(&mut jvm, "warm", "waits for reset")?;
    let lucce = jvm.lucce();
    let log = jvm.java.log();
    // While the JVM runs.
    expect(&lucce, &log, &["--since", "warm"], &PHASES[2..4])?;
    expect(&lucce, &log, &[], &PHASES[..4])?;
    jvm.ctl(&["reset"])?;
    expect(&lucce, &log, &[], &[])?;
    pass(&mut jvm, "reset", "waits for end")?;
    match end {
        End::Normal => {
            create(&jvm.java, "end")?;
            let status = jvm.child.wait().map_err(|e| e.to_string())?;
            ensure(status.success(), || format!("ends with {status}"))?;
            lucce.check(&log)?;
        }
        End::Killed => {
            jvm.child.kill().map_err(|e| e.to_string())?;
            jvm.child.wait().map_err(|e| e.to_string())?;
        }
    }
    // The second mark of a name counts. A reset is the start of what names none.
    for (interval, phases) in [
        (&[][..], &PHASES[4..]),
        (&["--since", "start"], &PHASES[..]),
        (&["--since", "warm"], &PHASES[2..]),
        (&["--since", "loaded"], &PHASES[3..]),
        (&["--since", "reset"], &PHASES[4..]),
        (&["--until", "warm"], &PHASES[..2]),
        (&["--since", "warm", "--until", "loaded"], &PHASES[2..3]),
        (&["--since", "warm", "--until", "reset"], &PHASES[2..4]),
        (&["--since", "warm", "--until", "warm"], &[]),
    ] {
        expect(&lucce, &log, interval, phases)?;
    }
    refusals(&lucce, &log)?;
    other_commands(&lucce, &log)?;
    jvm.java.clean();
    Ok(())
}

fn create(java: &Java<'_>, name: &str) -> Checked {
    fs::write(java.folder().join(name), "").map_err(|e| e.to_string())
}

/// Lets the program go on until it prints these words.
fn pass(jvm: &mut Running<'_>, phase: &str, words: &str) -> Checked {
    create(&jvm.java, phase)?;
    jvm.until(words, |jvm| Ok(jvm.java.printed("stdout").contains(words)))
}

/// Compares a report with what these phases have made.
fn expect(lucce: &Lucce<'_>, log: &Path, interval: &[&str], phases: &[Phase]) -> Checked {
    let sum = |of: fn(&Phase) -> u64| phases.iter().map(of).sum::<u64>();
    let allocations = rows(lucce, log, &[interval, &["--event", "alloc"]].concat())?;
    let (entries, arrays) = (sum(|phase| phase.entries), sum(|phase| phase.rows));
    let leaves = LEAVES * phases.len() as u64;
    for (name, count) in [
        ("Phases$Entry", entries),
        ("Phases$Row[]", arrays),
        ("Phases$Passing$Leaf", leaves),
    ] {
        let (found, _) = sum_of(&allocations, name);
        ensure(found == count, || {
            format!("{interval:?}: {found} {name}, not {count}: {allocations:#}")
        })?;
    }
    // Objects without fields have 16 bytes; arrays of 0, 1 and 2 references 16 or 24, in turn.
    let bytes: u64 = phases
        .iter()
        .flat_map(|phase| 0..phase.rows)
        .map(|i| if i % 3 == 0 { 16 } else { 24 })
        .sum();
    for (name, bytes) in [("Phases$Entry", entries * 16), ("Phases$Row[]", bytes)] {
        let (_, found) = sum_of(&allocations, name);
        ensure(found == bytes, || {
            format!("{interval:?}: {name} has {found} bytes, not {bytes}: {allocations:#}")
        })?;
    }
    if phases.is_empty() {
        return Ok(());
    }
    let exceptions = rows(lucce, log, &[interval, &["--event", "exception"]].concat())?;
    let (thrown, _) = sum_of(&exceptions, "java.lang.IllegalStateException");
    ensure(thrown == arrays / 2, || {
        format!(
            "{interval:?}: {thrown} exceptions, not {}: {exceptions:#}",
            arrays / 2
        )
    })
}

fn rows(lucce: &Lucce<'_>, log: &Path, options: &[&str]) -> Result<Value, String> {
    let log = log.to_string_lossy();
    let args = [
        &["report", &*log, "--json", "--by", "type", "--top", "0"],
        options,
    ]
    .concat();
    lucce.json(&args)
}

/// Number and bytes of a type.
fn sum_of(report: &Value, name: &str) -> (u64, u64) {
    let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
    // Exceptions say in parentheses whether they were caught.
    let is_type = |row: &&Value| {
        let shown = row["name"].as_str().unwrap_or_default();
        shown.split(" (").next() == Some(name)
    };
    let sum = |key: &str| {
        let rows = rows.iter().filter(is_type);
        rows.filter_map(|row| row[key].as_u64()).sum()
    };
    (sum("count"), sum("own"))
}

fn refusals(lucce: &Lucce<'_>, log: &Path) -> Checked {
    let log = log.to_string_lossy();
    for (args, words) in [
        (
            &["report", "--since", "cold"][..],
            "no mark cold; the log has loaded (",
        ),
        (
            &["report", "--since", "loaded", "--until", "warm"],
            "--since is later than --until",
        ),
        (&["report", "--since", "end"], "no mark end"),
        (
            &["export", "--format", "chrome", "--since", "warm"],
            "single events have times",
        ),
        (&["stream", "--since", "warm"], "single events have times"),
    ] {
        let said = lucce.text(2, &[args, &[&*log]].concat())?;
        ensure(said.contains(words), || format!("{args:?} says {said}"))?;
    }
    Ok(())
}

/// Commands that show the same events by other means.
fn other_commands(lucce: &Lucce<'_>, log: &Path) -> Checked {
    let log = log.to_string_lossy();
    let text = lucce.text(0, &["report", &log])?;
    let is_named = text.contains("counted since the reset at ")
        && text.contains("(--since start: the whole run)");
    ensure(is_named, || text.clone())?;
    let text = lucce.text(0, &["report", "--tree", "--since", "warm", &log])?;
    ensure(text.contains("counted since mark warm at "), || {
        text.clone()
    })?;
    // Both sides are the same log: what is since the mark is compared, and is equal.
    let text = lucce.text(
        0,
        &[
            "gate",
            &log,
            "--base",
            &log,
            "--since",
            "warm",
            "--max-growth",
            "0%",
            "--allow-incomplete",
        ],
    )?;
    ensure(!text.contains("1,000"), || text.clone())?;
    let explained = lucce.json(&["explain", "--json", "--since", "warm", &log])?;
    ensure(explained["interval"]["since"]["name"] == "warm", || {
        explained.to_string()
    })?;
    let folded = lucce.text(
        0,
        &[
            "export",
            "--format",
            "collapsed",
            "--measure",
            "count",
            "--type",
            r"^Phases\$Entry$",
            "--since",
            "warm",
            &log,
        ],
    )?;
    let sum = folded
        .lines()
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
        .sum::<u64>();
    let expected: u64 = PHASES[2..].iter().map(|phase| phase.entries).sum();
    ensure(sum == expected, || {
        format!("{sum} entries, not {expected}: {folded}")
    })
}

/// A thread makes objects during the mark: they belong to either side, and no event is lost or counted twice.
fn bounds_threads(setup: &'static Setup, jdk: &'static Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("marks-{}-meanwhile", jdk.version));
    let folder = java.folder().to_string_lossy().into_owned();
    let java = java.agent("events=alloc").main(["Phases", &folder, "draw"]);
    let mut jvm = Running::with_words(java, "waits for warm")?;
    let bounds = numbers_after(&jvm.java, "drawn from ")?;
    let drawn = |jvm: &Running<'_>, options: &[&str]| {
        let all = [options, &["--event", "alloc"]].concat();
        let report = rows(&jvm.lucce(), &jvm.java.log(), &all)?;
        Ok::<_, String>(sum_of(&report, "Phases$Drawn").0)
    };
    let marked = drawn(&jvm, &["--until", "loaded"])?;
    // The program counts an object after it was made: one more may be under way.
    ensure((bounds[0]..=bounds[1] + 1).contains(&marked), || {
        format!("{marked} objects at the mark, not within {bounds:?}")
    })?;
    jvm.ctl(&["mark", "warm"])?;
    let between = drawn(&jvm, &["--since", "loaded", "--until", "warm"])?;
    let until = drawn(&jvm, &["--until", "warm"])?;
    ensure(marked + between == until && between > 0, || {
        format!("{marked} and {between} objects are not {until}")
    })?;
    jvm.until("more objects", |jvm| Ok(drawn(jvm, &[])? > until))?;
    let java = jvm.end()?;
    let drawn = |options: &[&str]| {
        let all = [options, &["--event", "alloc"]].concat();
        Ok::<_, String>(sum_of(&rows(&java.lucce(), &java.log(), &all)?, "Phases$Drawn").0)
    };
    let (since, all) = (drawn(&["--since", "warm"])?, drawn(&[])?);
    ensure(until + since == all && since > 0, || {
        format!("{until} and {since} objects are not {all}")
    })?;
    java.clean();
    Ok(())
}

/// The two numbers of the line that begins with these words: `drawn from 17 to 21`.
fn numbers_after(java: &Java<'_>, words: &str) -> Result<[u64; 2], String> {
    let printed = java.printed("stdout");
    let line = printed.lines().find_map(|line| line.strip_prefix(words));
    let numbers = line.and_then(|line| line.split_once(" to "));
    let numbers = numbers.and_then(|(from, to)| Some([from.parse().ok()?, to.parse().ok()?]));
    numbers.ok_or_else(|| format!("no numbers: {printed}"))
}
