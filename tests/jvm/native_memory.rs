//! Memory outside of the heap: what the program allocates and releases in known numbers, the JVM's own buffer pools, and its
//! Native Memory Tracking.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use lucce_tests::{Checked, Java, Jdk, PATIENCE, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

/// Name, events, and flags.
type Mode = (&'static str, &'static str, &'static [&'static str]);

const MODES: [Mode; 3] = [
    ("walked", "native", &[]),
    ("hooks", "alloc+native", &[]),
    ("int", "alloc+native", &["-Xint", "-XX:+UseSerialGC"]),
];
/// The oldest JDKs and the latest one.
const VERSIONS: [u32; 3] = [11, 17, 25];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    let jdks = setup.jdks_from_11();
    for jdk in jdks.filter(|jdk| VERSIONS.contains(&jdk.version)) {
        for mode in &MODES {
            let quick = jdk == setup.jdk() && mode.0 == "walked";
            let name = format!("native_memory::{}::{}", jdk.version, mode.0);
            tests.push(test(name, quick, move || known_numbers(setup, jdk, mode)));
        }
        let name = format!("native_memory::{}::killed", jdk.version);
        tests.push(test(name, false, move || killed(setup, jdk)));
        let name = format!("native_memory::{}::loading", jdk.version);
        tests.push(test(name, false, move || loading(setup, jdk)));
        let name = format!("native_memory::{}::allocator", jdk.version);
        tests.push(test(name, false, move || other_allocator(setup, jdk)));
    }
    tests
}

fn start<'s>(setup: &'s Setup, jdk: &'s Jdk, name: &str, (_, events, flags): &Mode) -> Java<'s> {
    Java::new(setup, jdk, &format!("native-memory-{}-{name}", jdk.version))
        .agent(&format!("events={events},verify=1"))
        .flags(*flags)
        .flags(["-XX:NativeMemoryTracking=summary"])
}

fn known_numbers(setup: &Setup, jdk: &Jdk, mode: &Mode) -> Checked {
    let library = setup.memory.to_string_lossy();
    let java = start(setup, jdk, mode.0, mode).main(["NativeMemory", &library]);
    java.run()?.expect(0)?;
    let report = read_report(&java)?;
    check_known(&java, jdk, &report)?;
    ensure(report["ended"] == true, || report["ended"].to_string())?;
    let log = java.log().to_string_lossy().into_owned();
    let text = java
        .lucce()
        .text(0, &["report", "--event", "native", &log])?;
    let first: Vec<_> = text.lines().take(7).collect();
    let first = first.join("\n");
    let says = ": NativeMemory.directKept(NativeMemory.java:";
    ensure(
        first.contains("125.8 MB in 120 blocks alive, the oldest for ") && first.contains(says),
        || text,
    )?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// While the JVM runs, and after it was killed.
fn killed(setup: &Setup, jdk: &Jdk) -> Checked {
    let library = setup.memory.to_string_lossy();
    let java = start(setup, jdk, "killed", &MODES[0]);
    let java = java.main(["NativeMemory", &library, "wait"]);
    let mut jvm = Running::with_line(java, "ready")?;
    let running = read_report(&jvm.java)?;
    check_known(&jvm.java, jdk, &running)?;
    check_tracked(&jvm.java, &running)?;
    jvm.child.kill().map_err(|e| e.to_string())?;
    jvm.child.wait().map_err(|e| e.to_string())?;
    let report = read_report(&jvm.java)?;
    check_known(&jvm.java, jdk, &report)?;
    ensure(report["ended"] == false, || report["ended"].to_string())?;
    jvm.java.clean();
    Ok(())
}

/// Libraries whose constructors allocate, loaded while the VM looks for native methods and collects.
fn loading(setup: &Setup, jdk: &Jdk) -> Checked {
    const COPIES: usize = 60;
    let java = start(setup, jdk, "loading", &MODES[0]).limit(PATIENCE);
    let boot = java.folder().join("boot");
    // Of a run that failed.
    let _ = fs::remove_dir_all(&boot);
    fs::create_dir_all(&boot).map_err(|e| e.to_string())?;
    let class = "BootNatives.class";
    fs::copy(setup.classes.join(class), boot.join(class)).map_err(|e| e.to_string())?;
    let flag = format!("-Xbootclasspath/a:{}", boot.display());
    let [library, constructor, folder] =
        [&setup.memory, &setup.constructor, &boot].map(|path| path.display().to_string());
    let copies = COPIES.to_string();
    let java = java.flags([flag]);
    let java = java.main(["NativeMemory", &library, &constructor, &folder, &copies]);
    java.run()?.expect(0)?;
    let printed = java.printed("stdout");
    ensure(printed.contains("missing true, collected true"), || {
        printed.clone()
    })?;
    let found = sums(&read_report(&java)?);
    let sum = found.get(&("loadCopy".to_owned(), "(malloc)".to_owned()));
    // The JDK's own library allocates and releases a few texts for each copy.
    let (blocks, own) = (500 * COPIES as u64, 10 * COPIES as u64);
    let is_known = sum.is_some_and(|&[allocated, _, living, bytes]| {
        (blocks..=blocks + own).contains(&allocated)
            && (living, bytes) == (blocks / 2, blocks / 2 * 40)
    });
    ensure(is_known, || format!("{sum:?}"))?;
    java.clean();
    Ok(())
}

/// All known numbers with an allocator that replaces the C library's. It maps memory within its locks.
fn other_allocator(setup: &Setup, jdk: &Jdk) -> Checked {
    let allocator = find_allocator().ok_or("libjemalloc.so.2 is missing: install libjemalloc2")?;
    let library = setup.memory.to_string_lossy();
    let java = start(setup, jdk, "allocator", &MODES[0]).limit(PATIENCE);
    let java = java.main(["NativeMemory", &library]);
    let mut command = Command::new(jdk.tool("java"));
    command.env("LD_PRELOAD", &allocator);
    java.run_as(&mut command, &java.arguments())?.expect(0)?;
    let report = read_report(&java)?;
    check_known(&java, jdk, &report)?;
    let rows = report["memory"]["sources"].as_array().into_iter().flatten();
    let mapped: u64 = rows
        .filter(|row| row["how"] == "(mmap)")
        .filter_map(|row| row["allocated"]["blocks"].as_u64())
        .sum();
    ensure(mapped == 4, || format!("{mapped} mappings"))?;
    java.clean();
    Ok(())
}

fn find_allocator() -> Option<PathBuf> {
    let folders = [
        "/usr/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
    ];
    let files = folders.map(|folder| PathBuf::from(folder).join("libjemalloc.so.2"));
    files.into_iter().find(|file| file.exists())
}

fn read_report(java: &Java<'_>) -> Result<Value, String> {
    let log = java.log().to_string_lossy().into_owned();
    let args = ["report", "--json", "--top", "0", "--event", "native", &log];
    java.lucce().json(&args)
}

/// Allocated blocks and bytes, and those that live, by the program's method and the way.
type Sums = BTreeMap<(String, String), [u64; 4]>;

fn sums(report: &Value) -> Sums {
    let mut sums = Sums::new();
    for row in report["memory"]["sources"].as_array().into_iter().flatten() {
        let frames = row["frames"].as_array().cloned().unwrap_or_default();
        let own = frames.iter().find(|frame| frame["class"] == "NativeMemory");
        let method = own.and_then(|frame| frame["method"].as_str());
        let way = row["how"].as_str().unwrap_or_default();
        let key = (method.unwrap_or("-").to_owned(), way.to_owned());
        let sum = sums.entry(key).or_default();
        let amounts = [
            &row["allocated"]["blocks"],
            &row["allocated"]["bytes"],
            &row["living"]["blocks"],
            &row["living"]["bytes"],
        ];
        for (sum, amount) in sum.iter_mut().zip(amounts) {
            *sum += amount.as_u64().unwrap_or_default();
        }
    }
    sums
}

/// Returns how many lines state expected numbers.
fn check_rows(printed: &str, found: &Sums) -> Result<usize, String> {
    let mut expected = 0;
    for line in printed.lines() {
        let Some(line) = line.strip_prefix("expect ") else {
            continue;
        };
        let words: Vec<_> = line.split(' ').collect();
        let [method, way, numbers @ ..] = &words[..] else {
            return Err(format!("no method and way: {line}"));
        };
        let numbers: Vec<u64> = numbers.iter().filter_map(|n| n.parse().ok()).collect();
        let key = ((*method).to_owned(), way.replace('_', " "));
        let sum = found.get(&key).map(|sum| sum.to_vec());
        ensure(sum.as_ref() == Some(&numbers), || {
            format!("{line}: found {sum:?}")
        })?;
        expected += 1;
    }
    Ok(expected)
}

fn check_known(java: &Java<'_>, jdk: &Jdk, report: &Value) -> Checked {
    let (printed, found) = (java.printed("stdout"), sums(report));
    let expected = check_rows(&printed, &found)?;
    let least = if jdk.version < 22 { 15 } else { 17 };
    ensure(expected == least && printed.contains("forked true"), || {
        printed.clone()
    })?;
    // The library allocates once while it is loaded.
    let loaded = found.get(&("main".to_owned(), "(malloc)".to_owned()));
    ensure(loaded.is_some_and(|sum| sum[2..] == [1, 4444]), || {
        format!("{loaded:?}")
    })?;
    let memory = &report["memory"];
    let outside = &memory["no_context"];
    ensure(
        outside["blocks"].as_u64() >= Some(1) && outside["bytes"].as_u64() >= Some(123_456),
        || memory["no_context"].to_string(),
    )?;
    ensure(
        memory["unlisted"]["blocks"] == 0 && report["lost"] == 0,
        || report["lost"].to_string(),
    )?;
    let oldest = memory["oldest_millis"].as_u64();
    ensure(oldest >= Some(300) && oldest < Some(60_000), || {
        format!("{oldest:?}")
    })?;
    check_pools(&printed, report)
}

/// The JVM's buffer pools, which know nothing of contexts.
fn check_pools(printed: &str, report: &Value) -> Checked {
    for (pool, class, way) in [
        ("direct", "java.nio.DirectByteBuffer", "(Unsafe)"),
        ("mapped", "", "(mapped file)"),
    ] {
        let own = report["memory"]["sources"].as_array().into_iter().flatten();
        let own = own.filter(|row| {
            let frames = row["frames"].as_array().into_iter().flatten();
            let mut classes = frames.filter_map(|frame| frame["class"].as_str());
            row["how"] == way
                && classes.clone().any(|name| name == "NativeMemory")
                && (class.is_empty() || classes.any(|name| name == class))
        });
        // The channels of the JDK keep a buffer for each thread, outside of the pool.
        let own = own.filter(|row| !row.to_string().contains("getTemporaryDirectBuffer"));
        let mut sum = [0; 2];
        for row in own {
            for (sum, key) in sum.iter_mut().zip(["blocks", "bytes"]) {
                *sum += row["living"][key].as_u64().unwrap_or_default();
            }
        }
        let says = format!("pool {pool} {} {}", sum[0], sum[1]);
        ensure(printed.lines().any(|line| line == says), || {
            format!("not {says}: {printed}")
        })?;
    }
    Ok(())
}

/// Native Memory Tracking has all memory of `Unsafe`, also what was allocated before the VM was initialized.
fn check_tracked(java: &Java<'_>, report: &Value) -> Checked {
    const BEFORE: u64 = 64 << 10;
    let printed = java.printed("stdout");
    let tracked = printed
        .lines()
        .find_map(|line| line.strip_prefix("tracked "));
    let tracked: u64 = tracked
        .and_then(|number| number.parse().ok())
        .ok_or("nothing tracked")?;
    let rows = report["memory"]["sources"].as_array().into_iter().flatten();
    let own = rows.filter(|row| row["how"] == "(Unsafe)");
    let living: u64 = own.filter_map(|row| row["living"]["bytes"].as_u64()).sum();
    ensure((living..=living + BEFORE).contains(&tracked), || {
        format!("{living} bytes live, the JVM tracks {tracked}")
    })
}
