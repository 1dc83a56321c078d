//! Parses what HotSpot prints at its end with `-XX:+CITime` and `-XX:+PrintCodeCache`:
//!
//! ```text
//!   Total compilation time   :   3.286 s
//! CodeHeap 'profiled nmethods': size=120028Kb used=5423Kb max_used=5423Kb free=114604Kb
//! ```

use std::collections::BTreeMap;

use crate::Metric;

/// Returns the compilers' milliseconds, and the peak bytes of each code heap; missing values are omitted.
pub fn parse(printed: &str) -> BTreeMap<Metric, Vec<f64>> {
    let mut metrics = BTreeMap::new();
    let mut add = |metric, value: Option<f64>| {
        if let Some(value) = value {
            metrics.insert(metric, vec![value]);
        }
    };
    add(Metric::Compilation, compilation(printed));
    add(Metric::CodeCache, code(printed));
    metrics
}

fn compilation(printed: &str) -> Option<f64> {
    let line = |line: &str| {
        let (name, time) = line.split_once(':')?;
        let seconds = time.trim().strip_suffix(" s")?;
        (name.trim() == "Total compilation time").then_some(seconds)?;
        seconds.parse::<f64>().ok()
    };
    printed.lines().find_map(line).map(|seconds| seconds * 1e3)
}

fn code(printed: &str) -> Option<f64> {
    let heap = |line: &str| {
        let heap = line.starts_with("CodeHeap ") || line.starts_with("CodeCache:");
        let (_, rest) = line.split_once("max_used=").filter(|_| heap)?;
        let (kilobytes, _) = rest.split_once("Kb")?;
        kilobytes.parse::<f64>().ok()
    };
    let heaps: Vec<f64> = printed.lines().filter_map(heap).collect();
    (!heaps.is_empty()).then(|| heaps.iter().sum::<f64>() * 1024.0)
}

#[cfg(test)]
mod jit_tests {
    use super::*;

    #[test]
    fn both_kinds_of_lines_are_found() {
        let text = "iteration 1: 5 ms wall, 5 ms cpu\n\
            \x20 Total compilation time   :   3.286 s\n\
            \x20   Standard compilation   :   3.190 s, Average : 0.001 s\n\
            CodeHeap 'non-profiled nmethods': size=120032Kb used=800Kb max_used=1000Kb free=1Kb\n\
            \x20bounds [0x0, 0x1, 0x2]\n\
            CodeHeap 'profiled nmethods': size=120028Kb used=5423Kb max_used=24Kb free=114604Kb\n";
        let metrics = parse(text);
        assert_eq!(metrics[&Metric::Compilation], [3286.0]);
        assert_eq!(metrics[&Metric::CodeCache], [1024.0 * 1024.0]);
        let one = "CodeCache: size=245760Kb used=2Kb max_used=2Kb free=245758Kb";
        assert_eq!(parse(one)[&Metric::CodeCache], [2048.0]);
    }

    #[test]
    fn nothing_is_made_up() {
        assert!(parse("Total compilation time\nmax_used=7Kb\nCodeHeap 'x': size=1Kb").is_empty());
    }
}
