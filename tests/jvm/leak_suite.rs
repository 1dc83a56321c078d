//! Programs that leak in a known way or not at all, under each collector: no leak is denied, none is invented, and what
//! holds the objects is named.
//!
//! Each program runs once, so that each collector of each JDK has some. `cargo xtask leak-suite` runs all with all:
//! `LUCCE_LEAK_SUITE` has what it is to run, as `jdk=25,gc=Z,program=cache`, each part or none.

use std::process::Output;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.LeakSuite";
const PLUGIN: &str = "io.lucce.programs.LeakSuite$Plugin";
const COLLECTORS: [&str; 4] = ["Serial", "Parallel", "G1", "Z"];
const AGENT: &str = "events=leak=2k";
const HEAP: &str = "-Xmx64m";

/// A program of the suite, and what is true of it.
#[derive(Clone, Copy)]
struct LeakProgram {
    name: &'static str,
    truth: Truth,
}

/// What a program does with its objects.
#[derive(Clone, Copy)]
enum Truth {
    /// Ever more of them live. `class`: their type, where it is one; a method on their trace; `holder`: a name on the path that
    /// holds them.
    Leaks {
        class: &'static str,
        method: &'static str,
        holder: &'static str,
    },
    /// One object becomes larger, or the oldest go while more come: that is no proof, and no reason to deny a leak.
    Grows {
        method: &'static str,
    },
    Clean,
    /// It keeps some, and then allocates nothing any more.
    Hangs {
        method: &'static str,
    },
    /// It keeps all until the heap is exhausted; `flag`: and ends by it.
    Exhausts {
        method: &'static str,
        flag: Option<&'static str>,
    },
}

const fn leak(
    name: &'static str,
    class: &'static str,
    method: &'static str,
    holder: &'static str,
) -> LeakProgram {
    let truth = Truth::Leaks {
        class,
        method,
        holder,
    };
    LeakProgram { name, truth }
}

const fn program(name: &'static str, truth: Truth) -> LeakProgram {
    LeakProgram { name, truth }
}

const PROGRAMS: [LeakProgram; 33] = [
    leak("cache", "byte[]", "cache", "CACHE"),
    leak("concurrent-map", "byte[]", "concurrent", "CONCURRENT"),
    leak("listener", "byte[]", "listen", "LISTENERS"),
    leak("thread-local", "char[]", "remember", "ThreadLocalMap"),
    leak("class-loader", "byte[]", "table", "PLUGINS"),
    leak(
        "finalizer",
        "byte[]",
        "finalizable",
        "java.lang.ref.Finalizer",
    ),
    leak("static-array", "int[]", "store", "table"),
    leak("queue", "long[]", "enqueue", "QUEUE"),
    leak("soft-in-name", "byte[]", "softInName", "SOFT_IN_NAME"),
    leak("weak-keys", "byte[]", "weakKey", "WEAK_KEYS"),
    leak("lambda", "byte[]", "capture", "CALLBACKS"),
    leak("thread", "byte[]", "waitForEver", "waitForEver"),
    leak("timer", "byte[]", "schedule", "DelayedWorkQueue"),
    leak("linked-list", "byte[]", "link", "head"),
    leak("bad-keys", "byte[]", "addKey", "KEYS"),
    leak(
        "weak-list",
        "java.lang.ref.WeakReference",
        "watch",
        "WEAK_LISTENERS",
    ),
    leak("failures", "", "fail", "FAILURES"),
    program("growing-array", Truth::Grows { method: "append" }),
    program("backlog", Truth::Grows { method: "produce" }),
    program("recent", Truth::Clean),
    program("ring", Truth::Clean),
    program("waves", Truth::Clean),
    program("start-up", Truth::Clean),
    program("bounded", Truth::Clean),
    program("interned", Truth::Clean),
    program("soft", Truth::Clean),
    program("slots", Truth::Clean),
    program("nothing", Truth::Clean),
    program(
        "hang",
        Truth::Hangs {
            method: "cacheThenHang",
        },
    ),
    program(
        "exhausted-cache",
        Truth::Exhausts {
            method: "cache",
            flag: None,
        },
    ),
    program(
        "exhausted-heap-dump",
        Truth::Exhausts {
            method: "cache",
            flag: Some("HeapDumpOnOutOfMemoryError"),
        },
    ),
    program(
        "exhausted-exit",
        Truth::Exhausts {
            method: "cache",
            flag: Some("ExitOnOutOfMemoryError"),
        },
    ),
    program(
        "exhausted-crash",
        Truth::Exhausts {
            method: "cache",
            flag: Some("CrashOnOutOfMemoryError"),
        },
    ),
];

/// What is to run.
#[derive(Default)]
struct Selection {
    jdk: Option<String>,
    gc: Option<String>,
    program: Option<String>,
    is_full: bool,
}

impl Selection {
    fn from_env() -> Selection {
        let Ok(text) = std::env::var("LUCCE_LEAK_SUITE") else {
            return Selection::default();
        };
        let part = |key: &str| {
            let parts = text.split(',').filter_map(|part| part.split_once('='));
            let mut parts = parts.filter(|(name, _)| *name == key);
            parts.next().map(|(_, value)| value.to_owned())
        };
        Selection {
            jdk: part("jdk"),
            gc: part("gc"),
            program: part("program"),
            is_full: true,
        }
    }

    /// `pair`: the number of the JDK and the collector, of so many `pairs`; `program`: its number.
    fn has(&self, (jdk, gc): (&Jdk, &str), (pair, pairs): (usize, usize), program: usize) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        match self.is_full {
            true => {
                is(&self.jdk, &jdk.version.to_string())
                    && is(&self.gc, gc)
                    && is(&self.program, PROGRAMS[program].name)
            }
            false => program % pairs == pair,
        }
    }
}

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let [oldest, .., newest] = &setup.jdks[..] else {
        return Vec::new();
    };
    let selection = Selection::from_env();
    let pairs = [oldest, newest].into_iter();
    let pairs: Vec<(&Jdk, &str)> = pairs
        .flat_map(|jdk| COLLECTORS.into_iter().map(move |gc| (jdk, gc)))
        .collect();
    let mut tests = Vec::new();
    for (number, program) in PROGRAMS.into_iter().enumerate() {
        for (pair, (jdk, gc)) in pairs.iter().copied().enumerate() {
            if selection.has((jdk, gc), (pair, pairs.len()), number) {
                let name = format!("leak_suite::{}::{gc}::{}", jdk.version, program.name);
                tests.push(test(name, false, move || judge(setup, (jdk, gc), program)));
            }
        }
    }
    tests
}

fn judge(setup: &Setup, (jdk, gc): (&Jdk, &str), program: LeakProgram) -> Checked {
    let name = format!("leak-suite-{}-{gc}-{}", jdk.version, program.name);
    let main = match program.truth {
        Truth::Exhausts { .. } => "exhausted-cache",
        _ => program.name,
    };
    let java = Java::new(setup, jdk, &name)
        .agent(AGENT)
        .flags([HEAP.to_owned(), format!("-XX:+Use{gc}GC")])
        .main([PROGRAM, main]);
    if let Truth::Exhausts { method, flag } = program.truth {
        return exhausts(java, (gc, method), flag);
    }
    let running = Running::with_line(java, "ready")?;
    match program.truth {
        Truth::Hangs { method } => hangs(&running, method)?,
        truth => as_expected(&running, truth)?,
    }
    let Running { java, child } = running;
    drop(child);
    java.clean();
    Ok(())
}

fn as_expected(running: &Running<'_>, truth: Truth) -> Checked {
    let pid = running.pid();
    let mut asked = vec!["leaks", "--json", "--top", "0"];
    if let Truth::Leaks { .. } = truth {
        asked.extend(["--holders", "--pause-budget", "60"]);
    }
    asked.push(&pid);
    let output = running.lucce().run(&asked)?;
    let report = parse(&output)?;
    let told = || format!("{report:#}");
    let leaks = report["leaks"].as_array().ok_or("no list of leaks")?;
    let has_snapshots = report["totals"]["snapshots"].as_u64() >= Some(4);
    let code = output.status.code();
    match truth {
        Truth::Leaks {
            class,
            method,
            holder,
        } => {
            let first = leaks
                .first()
                .ok_or_else(|| format!("no leak found\n{}", told()))?;
            let is_class = class.is_empty() || first["class"] == class;
            ensure(is_class && code == Some(1), told)?;
            let is_expected = |leak: &Value| has_method(leak, method);
            ensure(is_expected(first), told)?;
            // What else is kept comes with it, such as the thread of a variable: nothing is invented of what dies.
            let is_invented = |leak: &Value| !has_own_frame(leak);
            ensure(!leaks.iter().any(is_invented), told)?;
            let holders = report["holders"].to_string();
            ensure(holders.contains(holder), || {
                format!("{holder} holds them: {holders}")
            })
        }
        Truth::Grows { method } => {
            let suspects = report["suspects"].as_array().ok_or("no list of suspects")?;
            let is_denied = |row: &Value| {
                let at = row["at"]["method"] == method;
                at && row["verdict"] == "steady"
            };
            ensure(leaks.is_empty() && !suspects.iter().any(is_denied), told)
        }
        _ => ensure(
            leaks.is_empty() && code == Some(0) && has_snapshots && report["exhausted"].is_null(),
            told,
        ),
    }
}

/// A frame of the suite's own code.
fn has_method(row: &Value, method: &str) -> bool {
    let frames = row["frames"].as_array().into_iter().flatten();
    let is_it = |frame: &Value| {
        let class = frame["class"].as_str().unwrap_or_default();
        [PROGRAM, PLUGIN].contains(&class) && frame["method"] == method
    };
    frames.into_iter().any(is_it)
}

/// Of the suite, beside those that all its programs have.
fn has_own_frame(row: &Value) -> bool {
    let frames = row["frames"].as_array().into_iter().flatten();
    let is_own = |frame: &Value| {
        let class = frame["class"].as_str().unwrap_or_default();
        let method = frame["method"].as_str().unwrap_or_default();
        class.starts_with(PROGRAM) && !["main", "garbage"].contains(&method)
    };
    frames.into_iter().any(is_own)
}

/// Nothing is allocated any more, and everything that lives is told.
fn hangs(running: &Running<'_>, method: &str) -> Checked {
    let pid = running.pid();
    let lists = |options: &[&str]| {
        let asked = [
            &["leaks", "--alive", "--json", "--top", "0"],
            options,
            &[&pid],
        ]
        .concat();
        let report = running.lucce().json(&asked)?;
        let told = || format!("{report:#}");
        let rows = report["alive"].as_array().ok_or_else(told)?;
        let is_kept = |row: &&Value| row["class"] == "byte[]" && has_method(row, method);
        let kept = rows.iter().find(is_kept).ok_or_else(told)?;
        // Of 123 arrays of 6,016 bytes, of which the VM samples most.
        let bytes = kept["bytes"].as_u64().unwrap_or(0);
        ensure((600_000..900_000).contains(&bytes), told)?;
        let age = report["as_of"]["age_seconds"].as_u64();
        ensure(age <= Some(30) && report["pid"].as_u64().is_some(), told)?;
        let is_first = rows.first() == Some(kept);
        Ok::<(Value, bool), String>((kept.clone(), is_first))
    };
    lists(&[])?;
    // What was garbage is gone, and what is kept has survived the collection that was asked for.
    let (kept, is_first) = lists(&["--gc"])?;
    ensure(
        is_first && kept["ages"]["old"]["bytes"] == kept["bytes"],
        || format!("{kept:#}"),
    )?;
    let output = running.lucce().run(&["leaks", &pid])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_told = text.contains("no leak proven") && text.contains("as of ");
    ensure(is_told && !text.contains("no sign of a leak"), || text)
}

fn exhausts(java: Java<'_>, (gc, method): (&str, &str), flag: Option<&str>) -> Checked {
    let flags = flag.map(|flag| format!("-XX:+{flag}"));
    let java = java.flags(flags);
    let ended = java.run()?;
    let log = java.log().to_string_lossy().into_owned();
    let output = java.lucce().run(&["leaks", "--json", &log])?;
    let report = parse(&output)?;
    let told = || format!("{report:#}\n{}", ended.text());
    let exhausted = &report["exhausted"];
    let ends_silently = matches!(
        flag,
        Some("ExitOnOutOfMemoryError" | "CrashOnOutOfMemoryError")
    );
    // Nothing of ZGC can be read while the VM ends, so the last census is somewhat older, and has garbage.
    let is_exact = !ends_silently || gc != "Z";
    let alive = exhausted["alive"].as_array().ok_or_else(told)?;
    let is_it = |row: &Value| row["class"] == "byte[]" && has_method(row, method);
    ensure(alive.iter().any(is_it), told)?;
    let is_most = |row: &Value| is_it(row) && row["share"].as_f64() > Some(70.0);
    ensure(!is_exact || is_most(&alive[0]), told)?;
    let suspects = report["suspects"].as_array().into_iter().flatten();
    let is_denied = |row: &Value| row["at"]["method"] == method && row["verdict"] == "steady";
    ensure(!suspects.into_iter().any(is_denied), told)?;
    if ends_silently {
        ensure(exhausted["exits_by"] == flag.unwrap_or_default(), told)?;
    } else {
        ensure(
            exhausted["what"].is_string() && output.status.code() == Some(1),
            told,
        )?;
    }
    if is_exact {
        let (used, most) = (&exhausted["heap_bytes"], &exhausted["max_heap_bytes"]);
        let is_full = used
            .as_f64()
            .zip(most.as_f64())
            .is_some_and(|(used, most)| used > 0.7 * most);
        ensure(is_full, told)?;
    }
    java.clean();
    Ok(())
}

fn parse(output: &Output) -> Result<Value, String> {
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("no JSON from lucce leaks: {error}\n{errors}")
    })
}
