//! Events that the VM tells of: what programs say that they threw, waited for and made without
//! bytecode is what the report says, and every number decodes to the VM's own trace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Ended, Java, Jdk, Lucce, Setup, ensure};

use crate::expected::expected;
use crate::{Test, test};

/// A program of `io.lucce.programs`, and the kind of event that it knows of.
struct Program {
    name: &'static str,
    arguments: &'static [&'static str],
    events: &'static str,
    kind: &'static str,
    from: u32,
    native: bool,
}

const PROGRAMS: [Program; 4] = [
    Program {
        name: "Thrown",
        arguments: &[],
        events: "exception",
        kind: "exception",
        from: 11,
        native: false,
    },
    Program {
        name: "Locks",
        arguments: &[],
        events: "lock",
        kind: "lock",
        from: 11,
        native: false,
    },
    Program {
        name: "Locks",
        arguments: &["--virtual"],
        events: "lock",
        kind: "lock",
        from: 25,
        native: false,
    },
    Program {
        name: "Unseen",
        arguments: &[],
        events: "alloc=all",
        kind: "alloc",
        from: 11,
        native: true,
    },
];

/// A way to run Java, and options of the agent.
type Mode = (&'static str, &'static [&'static str], &'static str);

const MODES: [Mode; 8] = [
    ("default", &[], "tracking=lazy,verify=1"),
    ("int", &["-Xint", "-Xcheck:jni"], "tracking=lazy,verify=1"),
    (
        "comp",
        &[
            COMPILE_PROGRAMS,
            "-XX:-TieredCompilation",
            "-XX:+UseSerialGC",
        ],
        "tracking=lazy,verify=1",
    ),
    (
        "z",
        &["-XX:+UseZGC", "-Xcheck:jni"],
        "tracking=lazy,verify=0",
    ),
    ("cct", &[], "tracking=cct,verify=1"),
    ("walked", &["-Xcheck:jni"], "verify=1"),
    ("walked-comp", &[COMPILE_PROGRAMS], "verify=1"),
    (
        OUTSIDE,
        &["-Xcheck:jni"],
        "include=io.lucce.programs.*,verify=1",
    ),
];

/// What waits is out of scope: of locks, parking has hooks of its own there.
const OUTSIDE: &str = "outside";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for program in PROGRAMS
            .iter()
            .filter(|program| jdk.version >= program.from)
        {
            let modes = MODES.iter();
            for mode in modes.filter(|mode| program.runs_in(mode.0)) {
                let quick = jdk == setup.jdk() && mode.0 == "default";
                let name = program.test(jdk, mode);
                let name = format!("vm-events::{}", name.replace('-', "::"));
                tests.push(test(name, quick, move || program.check(setup, jdk, mode)));
            }
        }
    }
    tests
}

/// Count and sum by class (with how) and line.
type Counts = BTreeMap<(String, i64), (u64, u64)>;

impl Program {
    fn runs_in(&self, mode: &str) -> bool {
        match mode {
            OUTSIDE => self.kind == "lock",
            // The others need hooks.
            "walked" | "walked-comp" => self.kind == "exception",
            _ => true,
        }
    }

    fn test(&self, jdk: &Jdk, (mode, ..): &Mode) -> String {
        let arguments = self.arguments.concat().replace("--", "");
        format!("{}-{mode}-{}{arguments}", jdk.version, self.name)
    }

    fn check(&self, setup: &Setup, jdk: &Jdk, mode: &Mode) -> Checked {
        let (_, flags, options) = mode;
        let java = Java::new(setup, jdk, &format!("vm-events-{}", self.test(jdk, mode)));
        let natives = self
            .native
            .then(|| format!("-Dlucce.native={}", setup.natives.display()));
        let access =
            (self.native && jdk.version >= 24).then_some("--enable-native-access=ALL-UNNAMED");
        let main = format!("io.lucce.programs.{}", self.name);
        let java = java
            .agent(&format!("events={},{options}", self.events))
            .flags(*flags)
            .flags(natives)
            .flags(access)
            .main([main.as_str()].iter().chain(self.arguments));
        let ended = java.run()?.expect(0)?;
        let expected: Counts = ended.stdout.lines().filter_map(expected).collect();
        ended.ensure(expected.len() >= 4, "the program says what to expect")?;
        let found = self.reported(java.lucce(), &java.log(), &main)?;
        for (place, (count, least)) in &expected {
            let of = found.get(place).copied().unwrap_or_default();
            ensure(of.0 == *count && of.1 >= *least, || {
                format!(
                    "{place:?}: {count} expected, at least {least} in all, but {of:?}\n{found:#?}"
                )
            })?;
        }
        if self.kind == "exception" {
            counts_each_catch(java.lucce(), &java.log())?;
        }
        if self.kind == "alloc" {
            says_of_all_allocations(java.lucce(), &java.log(), &ended)?;
        }
        // What the program does not expect of the kinds that it knows all of.
        let more = found.keys().filter(|place| self.knows(&place.0));
        let more: Vec<_> = more.filter(|place| !expected.contains_key(place)).collect();
        ensure(more.is_empty(), || format!("not expected: {more:?}"))?;
        if !options.ends_with("verify=0") {
            java.lucce().check(&java.log())?;
        }
        java.clean();
        Ok(())
    }

    /// Whether the program alone makes such events.
    fn knows(&self, class: &str) -> bool {
        match self.kind {
            "exception" => true,
            // Classes are initialised under locks as well: the VM's are of `int[]`.
            "lock" => {
                class.ends_with("(enter)")
                    && (class.contains("Locks$") || class.starts_with("long[]"))
            }
            // Its `new` is at other lines.
            _ => false,
        }
    }

    /// By the line of the program's innermost frame; events without such a frame are not its own.
    fn reported(&self, lucce: Lucce, log: &Path, main: &str) -> Result<Counts, String> {
        let log = log.to_string_lossy();
        let report = lucce.json(&[
            "report", "--json", "--top", "0", "--event", self.kind, &*log,
        ])?;
        let mut counts = Counts::new();
        for row in report["contexts"].as_array().ok_or("no contexts")? {
            let frames = row["frames"].as_array().ok_or("no frames")?;
            let own = |class: &str| class == main || class.starts_with(&format!("{main}$"));
            let own = frames
                .iter()
                .find(|frame| frame["class"].as_str().is_some_and(own));
            let line = own.and_then(|frame| frame["line"].as_i64());
            if let (Some(line), Some(class)) = (line, row["class"].as_str()) {
                // Who makes what depends on the scope: a native method, or the VM.
                let class = match self.kind {
                    "alloc" => class.split(" (").next().unwrap_or_default(),
                    _ => class,
                };
                let sums = counts.entry((class.to_owned(), line)).or_default();
                sums.0 += row["count"].as_u64().ok_or("no count")?;
                sums.1 += row["value"].as_u64().ok_or("no value")?;
            }
        }
        Ok(counts)
    }
}

/// Each caught exception has a handler, in the same context.
fn counts_each_catch(lucce: Lucce, log: &Path) -> Checked {
    let log = log.to_string_lossy();
    let by_context = |kind: &str, is_wanted: fn(&str) -> bool| {
        let report = lucce.json(&["report", "--json", "--top", "0", "--event", kind, &*log])?;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for row in report["contexts"].as_array().ok_or("no contexts")? {
            if row["class"].as_str().is_some_and(is_wanted) {
                let frames = row["frames"].to_string();
                *counts.entry(frames).or_default() += row["count"].as_u64().ok_or("no count")?;
            }
        }
        Ok::<_, String>(counts)
    };
    let caught = by_context("exception", |class| class.ends_with("(caught)"))?;
    let catches = by_context("exception-catch", |_| true)?;
    ensure(!caught.is_empty() && caught == catches, || {
        format!("caught: {caught:#?}, by handler: {catches:#?}")
    })
}

/// The agent's last line counts allocations once, those with and those without a hook: as many, and under as many numbers, as
/// the report does.
fn says_of_all_allocations(lucce: Lucce, log: &Path, ended: &Ended) -> Checked {
    let log = log.to_string_lossy();
    let report = lucce.json(&["report", "--json", "--top", "0", "--event", "alloc", &*log])?;
    let events = &report["totals"]["count"];
    let mut numbers = BTreeSet::new();
    for row in report["contexts"].as_array().ok_or("no contexts")? {
        numbers.extend(row["id"].as_str());
        let aliases = row["aliases"].as_array().ok_or("no aliases")?;
        numbers.extend(aliases.iter().filter_map(|alias| alias.as_str()));
    }
    let numbers = numbers.len();
    let line = format!("lucce: {events} allocations under {numbers} context numbers recorded in ");
    ended.ensure(ended.stderr.contains(&line), &line)
}
