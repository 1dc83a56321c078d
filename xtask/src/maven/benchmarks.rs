//! JMH benchmarks of the new project of Maven, under `-prof lucce`: operations that make known objects, and a limit.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Maven;
use super::project_files::failure;
use crate::{Outcome, jdk, tools};

/// What an operation of a benchmark of `Sizes.java` makes.
struct OperationSize {
    benchmark: &'static str,
    bytes: f64,
    objects: f64,
    /// Bytes that reach the heap.
    heap_bytes: f64,
}

const SIZES: [OperationSize; 3] = [
    OperationSize {
        benchmark: "bytes",
        bytes: 120.0,
        objects: 1.0,
        heap_bytes: 120.0,
    },
    OperationSize {
        benchmark: "nested",
        bytes: 56.0,
        objects: 2.0,
        heap_bytes: 56.0,
    },
    OperationSize {
        benchmark: "removed",
        bytes: 24.0,
        objects: 1.0,
        heap_bytes: 0.0,
    },
];

/// Counts by bytecode: class loading and linking may happen once in millions of operations.
const COUNT_TOLERANCE: f64 = 0.01;
/// Bytes on the heap, estimated from samples, or with all that JMH itself allocates.
const HEAP_TOLERANCE: f64 = 0.1;

/// Runs the benchmarks of a project whose classes are in `target/classes` and whose libraries are in `target/lib`.
///
/// # Errors
/// JMH cannot use the profiler, a result differs, or the limit does not fail.
pub fn try_out(maven: &Maven, project: &Path) -> Outcome {
    let results = project.join("results.json");
    let measured = [
        "com.acme.Sizes",
        "-f",
        "1",
        "-wi",
        "2",
        "-w",
        "300ms",
        "-i",
        "2",
        "-r",
        "200ms",
        // The compiler removes objects after a number of operations, not after a time.
        "-jvmArgsAppend",
        "-Xbatch",
        "-prof",
        "gc",
        "-prof",
        "lucce:events=alloc+heap=4k;limit=bytes:120+24.5+nested:56;html=pages",
        "-rf",
        "json",
        "-rff",
        "results.json",
    ];
    let text = tools::output(&mut jmh(maven, project, &measured)?)?;
    has_lines(&String::from_utf8_lossy(&text))?;
    let written = fs::read(&results).map_err(|e| format!("{}: {e}", results.display()))?;
    let written: Value = serde_json::from_slice(&written).map_err(|e| e.to_string())?;
    SIZES.iter().try_for_each(|size| compare(&written, size))?;
    let pages = fs::read_dir(project.join("pages")).map_err(|e| e.to_string())?;
    let pages = pages.count();
    if pages != SIZES.len() {
        return Err(format!("{pages} pages, not one for each benchmark"));
    }
    let limited = [
        "com.acme.Sizes.bytes",
        "-f",
        "1",
        "-wi",
        "0",
        "-i",
        "1",
        "-r",
        "100ms",
        "-prof",
        "lucce:limit=119",
    ];
    let text = failure(&mut jmh(maven, project, &limited)?)?;
    let expected = "com.acme.Sizes.bytes allocates 120.";
    match text.contains(expected) && text.contains("more than the limit of 119.0") {
        true => Ok(()),
        false => Err(format!("JMH does not say {expected:?}: {text}")),
    }
}

fn jmh(maven: &Maven, project: &Path, arguments: &[&str]) -> Result<Command, String> {
    let mut java = jdk::compiler().ok_or("no JDK that compiles")?.java();
    java.current_dir(project)
        .env("LUCCE_HOME", maven.to.join("unpacked"))
        .args(["-cp", "target/classes:target/lib/*", "org.openjdk.jmh.Main"])
        .args(arguments);
    Ok(java)
}

/// The largest lines, with their traces.
fn has_lines(text: &str) -> Outcome {
    let expected = [
        "#1 100.00%  120.000 B in 1.000 objects: byte[]",
        "\tat com.acme.Sizes.bytes(Sizes.java:17)\n",
        "#1 100.00%  56.000 B in 2.000 objects: byte[] and 1 more type",
        "\tat com.acme.Sizes.nested(Sizes.java:23)\n",
        "#1 100.00%  24.000 B in 1.000 objects: com.acme.Sizes$Point; removed by the compiler",
        "\tat com.acme.Sizes.removed(Sizes.java:29)\n",
    ];
    match expected.iter().find(|line| !text.contains(**line)) {
        Some(line) => Err(format!("-prof lucce does not say {line:?}: {text}")),
        None => Ok(()),
    }
}

fn compare(results: &Value, size: &OperationSize) -> Outcome {
    let name = format!("com.acme.Sizes.{}", size.benchmark);
    let mut all = results.as_array().into_iter().flatten();
    let result = all.find(|result| result["benchmark"] == name.as_str());
    let result = result.ok_or_else(|| format!("no result of {name}"))?;
    let heap = size.heap_bytes;
    for (metric, expected, tolerance) in [
        ("lucce.alloc.norm", size.bytes, COUNT_TOLERANCE),
        ("lucce.objects.norm", size.objects, COUNT_TOLERANCE),
        ("lucce.heap.norm", heap, HEAP_TOLERANCE * heap.max(1.0)),
        ("gc.alloc.rate.norm", heap, HEAP_TOLERANCE * heap.max(1.0)),
    ] {
        let score = result["secondaryMetrics"][metric]["score"].as_f64();
        let score = score.ok_or_else(|| format!("{name} has no {metric}: {result}"))?;
        if (score - expected).abs() > tolerance {
            return Err(format!("{name}: {metric} is {score}, not {expected}"));
        }
    }
    Ok(())
}
