//! Every allocation is in the report: a program that knows how many objects it makes, and where.

use std::collections::BTreeMap;
use std::path::Path;

use lucce_tests::{Checked, Java, Jdk, Lucce, Setup, ensure};
use serde_json::Value;

use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Counts";

/// What `new Large[2][3]` makes besides, at the same line.
const INNER: &str = "io.lucce.programs.Counts$Large[]";

/// Objects by class and line.
type Counts = BTreeMap<(String, i64), u64>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let flags: [(&str, &[&str]); 3] = [
        ("default", &[]),
        ("int", &["-Xint"]),
        ("no-compressed", &["-XX:-UseCompressedOops"]),
    ];
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for (name, flags) in flags {
            let quick = jdk == setup.jdk() && name == "default";
            tests.push(test(
                format!("counts::{}::{name}", jdk.version),
                quick,
                move || check(setup, jdk, name, flags),
            ));
        }
        // JDK 11 has no records, and so not the program.
        if *jdk != setup.jdk_11 {
            tests.push(test(
                format!("counts::{}::all-ways", jdk.version),
                false,
                move || all_ways(setup, jdk),
            ));
            tests.push(test(
                format!("counts::{}::exceptions", jdk.version),
                false,
                move || exceptions(setup, jdk),
            ));
        }
        tests.push(test(
            format!("counts::{}::compiled-as-interpreted", jdk.version),
            false,
            move || compiled(setup, jdk),
        ));
    }
    tests
}

/// Bytes by the method of [`WAYS`] that made them.
type Bytes = BTreeMap<String, u64>;

/// A program that makes objects in all ways that the JDK has, a method for each.
const WAYS: &str = "io.lucce.programs.Making";
/// Ways of which the VM makes a part, and does not tell of all of it.
const PARTLY: [&str; 3] = ["handles", "lookedUp", "traces"];

/// What is counted is what the VM says it has allocated, and compiled code is counted as interpreted code is. Of two runs
/// of different length the difference counts: what the VM makes once, for classes, is in neither.
fn all_ways(setup: &Setup, jdk: &Jdk) -> Checked {
    let (wanted, interpreted) = made(setup, jdk, ("int", &["-Xint"]), &INTERPRETED)?;
    ensure(wanted.len() >= 30, || format!("{wanted:#?}"))?;
    compare(&wanted, &interpreted)?;
    let [more, interpreted_more] = [&ALL, &INTERPRETED].map(Run::additional_rounds);
    let modes: [Mode; 2] = [
        ("c2", &["-Xbatch", "-XX:-TieredCompilation"]),
        ("c1", &["-Xbatch", "-XX:TieredStopAtLevel=1"]),
    ];
    // C2 has most of the methods that compilers replace, and JDKs differ in them.
    let is_newest = setup.jdks.last() == Some(jdk);
    let modes = &modes[..if is_newest { 2 } else { 1 }];
    for &mode @ (name, _) in modes {
        let (_, compiled) = made(setup, jdk, mode, &ALL)?;
        for (way, bytes) in &interpreted {
            let found = compiled.get(way).copied().unwrap_or_default();
            let bytes = bytes * more / interpreted_more;
            ensure(is_about(found, bytes, (980, 1020)), || {
                format!("{way}: {bytes} bytes interpreted, {found} with {name}")
            })?;
        }
    }
    Ok(())
}

fn compare(wanted: &Bytes, found: &Bytes) -> Checked {
    for (way, bytes) in wanted {
        let found = found.get(way).copied().unwrap_or_default();
        let least = if PARTLY.contains(&way.as_str()) {
            900
        } else {
            995
        };
        ensure(is_about(found, *bytes, (least, 1005)), || {
            format!("{way}: {bytes} bytes by the VM's counter, {found} counted")
        })?;
    }
    Ok(())
}

/// Traces of exceptions, and exceptions that the VM throws by itself, are counted with `events=alloc`; where they were
/// made is compared each time.
fn exceptions(setup: &Setup, jdk: &Jdk) -> Checked {
    const RUN: Run = Run {
        options: "events=alloc,verify=1",
        rounds: ALL.rounds,
        ways: &["exceptions", "thrownByVm", "thrownByBoth"],
    };
    let (wanted, interpreted) = made(setup, jdk, ("thrown-int", &["-Xint"]), &RUN)?;
    ensure(wanted.len() == RUN.ways.len(), || format!("{wanted:#?}"))?;
    compare(&wanted, &interpreted)?;
    let (_, compiled) = made(setup, jdk, ("thrown", &["-Xbatch"]), &RUN)?;
    for (way, bytes) in &interpreted {
        let found = compiled.get(way).copied().unwrap_or_default();
        ensure(is_about(found, *bytes, (980, 1020)), || {
            format!("{way}: {bytes} bytes interpreted, {found} compiled")
        })?;
    }
    Ok(())
}

/// A name, and flags.
type Mode<'a> = (&'a str, &'a [&'a str]);

/// What is counted.
struct Run {
    options: &'static str,
    /// How often the shorter and the longer run go each way.
    rounds: [u32; 2],
    /// Empty: all.
    ways: &'static [&'static str],
}

const ALL: Run = Run {
    options: "events=alloc=all,verify=200",
    rounds: [500, 1500],
    ways: &[],
};

/// An interpreter has no thresholds: fewer rounds show the same.
const INTERPRETED: Run = Run {
    rounds: [200, 600],
    ..ALL
};

impl Run {
    fn additional_rounds(&self) -> u64 {
        u64::from(self.rounds[1] - self.rounds[0])
    }
}

/// In thousandths.
fn is_about(found: u64, wanted: u64, (least, most): (u64, u64)) -> bool {
    (wanted * least..=wanted * most).contains(&(found * 1000))
}

/// What a longer run makes more than a shorter one: by the VM's counter, and as the log has it.
fn made(
    setup: &Setup,
    jdk: &Jdk,
    (name, flags): Mode,
    what: &Run,
) -> Result<(Bytes, Bytes), String> {
    // Else C2 throws exceptions that it has made beforehand.
    const THROWN_ANEW: &str = "-XX:-OmitStackTraceInFastThrow";
    let run = |rounds: u32| {
        let times = &*rounds.to_string();
        let java = Java::new(setup, jdk, &format!("ways-{}-{name}-{times}", jdk.version));
        let java = java
            .agent(what.options)
            .flags([THROWN_ANEW].iter().chain(flags).copied())
            .main([WAYS, times].iter().chain(what.ways).copied());
        let ended = java.run()?.expect(0)?;
        let words = ended.stdout.lines().filter_map(|line| line.split_once(' '));
        let by_vm: Bytes = words
            .filter_map(|(way, bytes)| Some((way.to_owned(), bytes.parse().ok()?)))
            .collect();
        java.lucce().check(&java.log())?;
        let counted = bytes_by_way(java.lucce(), &java.log())?;
        java_code_adds_counters(java.lucce(), &java.log())?;
        java.clean();
        Ok::<_, String>((by_vm, counted))
    };
    let [fewer, more] = what.rounds;
    let (shorter, longer) = (run(fewer)?, run(more)?);
    let less = |longer: Bytes, shorter: &Bytes| {
        let more = longer.into_iter().map(|(way, bytes)| {
            let before = shorter.get(&way).copied().unwrap_or_default();
            (way, bytes.saturating_sub(before))
        });
        more.collect()
    };
    Ok((less(longer.0, &shorter.0), less(longer.1, &shorter.1)))
}

/// Java code adds more counters than the agent, also in a program as short as this.
fn java_code_adds_counters(lucce: Lucce, log: &Path) -> Checked {
    let stats = lucce.stats(log)?;
    let requested = stats["agent"]["counters.requested"].as_u64();
    let numbers = stats["events"]["numbers"].as_u64();
    ensure(
        requested > Some(0) && requested.map(|requested| 2 * requested) < numbers,
        || format!("{requested:?} of {numbers:?} counters were requested"),
    )
}

fn bytes_by_way(lucce: Lucce, log: &Path) -> Result<Bytes, String> {
    let stacks = lucce.text(
        0,
        &["export", "--format", "collapsed", &*log.to_string_lossy()],
    )?;
    let mut bytes = Bytes::new();
    let main = format!("{WAYS}.");
    for line in stacks.lines() {
        let (stack, value) = line.rsplit_once(' ').ok_or("not a stack")?;
        let frames = stack
            .split(';')
            .filter_map(|frame| frame.strip_prefix(&main));
        let names = frames.map(|frame| frame.split(':').next().unwrap_or_default());
        let mut ways = names.filter(|name| !["main", "measure"].contains(name));
        if let Some(way) = ways.next() {
            *bytes.entry(way.to_owned()).or_default() +=
                value.parse::<u64>().map_err(|e| e.to_string())?;
        }
    }
    Ok(bytes)
}

/// The compilers replace methods of the JDK by code of their own, which has no hooks.
fn compiled(setup: &Setup, jdk: &Jdk) -> Checked {
    const COPIES: &str = "io.lucce.programs.Copies";
    /// Objects that the program makes in one line, all but the first in frames above some that are older than the hooks.
    const OLDER: (&str, u64) = ("java.lang.Object[]", 777);
    const EXPORTS: &str = "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED";
    let counts = |name: &str, flags: &[&str]| {
        let java = Java::new(setup, jdk, &format!("copies-{}-{name}", jdk.version));
        let java = java
            .agent("events=alloc")
            .flags(flags)
            .flags([EXPORTS])
            .main([COPIES]);
        java.run()?.expect(0)?;
        let counts = counted_below(java.lucce(), &java.log(), COPIES)?;
        java.clean();
        Ok::<_, String>(counts)
    };
    let interpreted = counts("int", &["-Xint"])?;
    let is_older = |(row, count): (&(String, i64), &u64)| (row.0.as_str(), *count) == OLDER;
    let older = interpreted.iter().filter(|row| is_older(*row));
    ensure(interpreted.len() >= 10 && older.count() == 1, || {
        format!("{interpreted:#?}")
    })?;
    let modes: [(&str, &[&str]); 2] = [
        ("c2", &["-Xbatch", "-XX:-TieredCompilation"]),
        ("tiered", &["-Xbatch"]),
    ];
    for (name, flags) in modes {
        let compiled = counts(name, flags)?;
        ensure(compiled == interpreted, || {
            format!("interpreted {interpreted:#?}\n{name} {compiled:#?}")
        })?;
    }
    Ok(())
}

/// Objects by class and by the line of the innermost frame of `class`, few of a kind left out: what
/// class initialisers and boxes allocate depends on who comes first.
fn counted_below(lucce: Lucce, log: &Path, class: &str) -> Result<Counts, String> {
    let log = log.to_string_lossy();
    let mut counts = Counts::new();
    let args = ["report", "--json", "--top", "0", &*log];
    lucce.json_rows(&args, "contexts", &mut |row| {
        let frames = row["frames"].as_array().ok_or("no frames")?;
        let Some(frame) = frames.iter().find(|frame| frame["class"] == class) else {
            return Ok(());
        };
        if let (Some(of), Some(line), Some(count)) = (
            row["class"].as_str(),
            frame["line"].as_i64(),
            row["count"].as_u64(),
        ) {
            *counts.entry((of.to_owned(), line)).or_default() += count;
        }
        Ok(())
    })?;
    counts.retain(|_, count| *count > 300);
    Ok(counts)
}

fn check(setup: &Setup, jdk: &Jdk, name: &str, flags: &[&str]) -> Checked {
    let java = Java::new(setup, jdk, &format!("counts-{}-{name}", jdk.version));
    let java = java
        .agent("events=alloc")
        .flags(flags)
        .main([PROGRAM, "1000"]);
    let ended = java.run()?.expect(0)?;
    let expected = expected(&ended.stdout)?;
    ended.ensure(!expected.is_empty(), "the program says what to expect")?;
    let found = reported(java.lucce(), &java.log())?;
    ensure(found == expected, || {
        format!("expected {expected:#?}\nreported {found:#?}")
    })?;
    exported(java.lucce(), &java.log(), &expected)?;
    java.clean();
    Ok(())
}

fn expected(printed: &str) -> Result<Counts, String> {
    let parse = |line: &str| {
        let mut words = line.split_whitespace();
        let class = readable(words.next()?);
        Some((
            (class, words.next()?.parse().ok()?),
            words.next()?.parse().ok()?,
        ))
    };
    printed
        .lines()
        .map(|line| parse(line).ok_or_else(|| format!("not a count: {line}")))
        .collect()
}

/// `[La.B;` is `a.B[]`.
fn readable(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let element = element
        .strip_prefix('L')
        .and_then(|rest| rest.strip_suffix(';'))
        .filter(|_| dimensions > 0);
    element.unwrap_or(name.trim_start_matches('[')).to_owned() + &"[]".repeat(dimensions)
}

fn reported(lucce: Lucce, log: &Path) -> Result<Counts, String> {
    let log = log.to_string_lossy();
    let report = lucce.json(&[
        "report",
        "--json",
        "--top",
        "0",
        "--type",
        // Not the classes of its lambdas, whose objects are counted, too.
        r"^io\.lucce\.programs\.Counts\$[A-Z]",
        &*log,
    ])?;
    let rows = report["contexts"]
        .as_array()
        .ok_or("the report lists no contexts")?;
    let mut counts = Counts::new();
    for row in rows {
        let Some((class, line, count)) = place(row) else {
            return Err(format!("not understood: {row}"));
        };
        if class != INNER {
            *counts.entry((class.to_owned(), line)).or_default() += count;
        }
    }
    Ok(counts)
}

fn place(row: &Value) -> Option<(&str, i64, u64)> {
    let line = row["frames"][0]["line"].as_i64()?;
    Some((row["class"].as_str()?, line, row["count"].as_u64()?))
}

/// The collapsed stacks have as many of each class.
fn exported(lucce: Lucce, log: &Path, expected: &Counts) -> Checked {
    let log = log.to_string_lossy();
    let stacks = lucce.text(0, &["export", "--measure", "count", "--leaf-type", &*log])?;
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for line in stacks.lines() {
        let (stack, count) = line
            .rsplit_once(' ')
            .ok_or_else(|| format!("not a stack: {line}"))?;
        let leaf = stack.rsplit(';').next().unwrap_or_default();
        let count: u64 = count.parse().map_err(|e| format!("{line}: {e}"))?;
        *found.entry(leaf).or_default() += count;
    }
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    expected
        .iter()
        .for_each(|((class, _), count)| *classes.entry(class).or_default() += count);
    for (class, count) in classes {
        let exported = found
            .iter()
            .find(|(leaf, _)| leaf.starts_with(class) && leaf.len() <= class.len() + 4);
        let exported = found.get(class).or(exported.map(|(_, count)| count));
        ensure(exported == Some(&count), || {
            format!("{class}: {count} expected, {exported:?} exported")
        })?;
    }
    Ok(())
}
