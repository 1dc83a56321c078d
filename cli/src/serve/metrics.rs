//! The figures of a run in the text format of Prometheus. `lucce-micrometer` has the same names and labels.

use std::cmp::Reverse;
use std::fmt::Write;

use lucce_decoder::{ALLOC, Profile, list_open_resources, list_recorded_kinds};

use super::super::report::group_by_own_line;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Maximum number of lines of own code.
const MAX_LINES: usize = 20;

/// The figures of a run: allocated bytes, in total and by line of own code, dropped events and open resources. `dropped`: the
/// number of dropped events. Figures that the run does not record are left out; those that it records begin with 0.
pub fn format_metrics(profile: &Profile, dropped: u64) -> String {
    let mut text = String::new();
    if records_allocations(profile) {
        let (total, lines) = sum_allocations(profile);
        write_head(
            &mut text,
            "lucce_allocated_bytes_total",
            "counter",
            "Allocated bytes",
        );
        let _ = writeln!(text, "lucce_allocated_bytes_total {total}");
        write_head(
            &mut text,
            "lucce_line_allocated_bytes_total",
            "counter",
            "Allocated bytes by line of own code, of the lines with most",
        );
        for (line, bytes) in lines {
            let line = escape_label(&line);
            let _ = writeln!(
                text,
                "lucce_line_allocated_bytes_total{{line=\"{line}\"}} {bytes}"
            );
        }
    }
    write_head(
        &mut text,
        "lucce_events_lost_total",
        "counter",
        "Events that no counter contains",
    );
    let _ = writeln!(text, "lucce_events_lost_total {dropped}");
    if let Ok(Some(resources)) = list_open_resources(profile, None) {
        let open: usize = resources.rows.iter().map(|row| row.open.len()).sum();
        write_head(
            &mut text,
            "lucce_resources_open",
            "gauge",
            "Open resources: files, sockets and others",
        );
        let _ = writeln!(text, "lucce_resources_open {open}");
    }
    text
}

/// Whether the log has allocations, or the run was to record them.
fn records_allocations(profile: &Profile) -> bool {
    let counted = profile.counted_kinds();
    let mut counted = counted.iter().map(|kind| &*kind.name);
    counted.any(|kind| ALLOC.is_kind(kind))
        || list_recorded_kinds(profile)
            .into_iter()
            .any(|kind| ALLOC.is_kind(kind))
}

/// All allocated bytes, and those of the largest lines of own code.
fn sum_allocations(profile: &Profile) -> (u64, Vec<(String, u64)>) {
    let contexts = profile.list_contexts_of(&profile.events_of_kind(ALLOC.name), &|_| ());
    let ids: Vec<_> = contexts.list.iter().map(|context| context.id).collect();
    let focus = profile.find_focus(&ids);
    let (groups, _) = group_by_own_line(profile, contexts.list.iter().zip(&focus));
    let lines = groups.into_iter().map(|(frame, contexts)| {
        let bytes = contexts.iter().map(|context| context.value);
        (frame.to_string(), bytes.fold(0, u64::saturating_add))
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    lines.truncate(MAX_LINES);
    (contexts.total_value(), lines)
}

fn write_head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Escapes a label's value. Line breaks of names are escaped already.
fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod metrics_tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("run.lucce");
        lucce_testkit::sample(&log);
        let profile = Profile::open(&log).unwrap();
        let text = format_metrics(&profile, 7);
        let value = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let number = line.and_then(|line| line.rsplit(' ').next());
            number.and_then(|number| number.parse::<u64>().ok())
        };
        assert_eq!(value("lucce_events_lost_total"), Some(7));
        let total = profile
            .list_contexts_of(&profile.events_of_kind("alloc"), &|_| ())
            .list
            .iter()
            .map(|context| context.value)
            .sum();
        assert_eq!(value("lucce_allocated_bytes_total "), Some(total));
        let line = "lucce_line_allocated_bytes_total{line=\"app.Main.work(Main.java:21)\"}";
        assert!(value(line) > Some(0), "{text}");
        // The run does not record resources.
        assert_eq!(value("lucce_resources_open"), None);
    }

    /// A counter that appears with its first value hides that value from a rate.
    #[test]
    fn counters_of_recorded_kinds_begin_with_zero() {
        let dir = tempfile::tempdir().unwrap();
        let text = |options: &'static str| {
            let log = dir.path().join("run.lucce");
            lucce_testkit::without_events(&log, options);
            format_metrics(&Profile::open(&log).unwrap(), 0)
        };
        let allocated = "\nlucce_allocated_bytes_total 0\n";
        assert!(text("events=alloc,delay=1h").contains(allocated));
        assert!(!text("events=lock").contains("lucce_allocated_bytes_total"));
    }

    #[test]
    fn a_label_has_no_open_quotes() {
        assert_eq!(escape_label(r#"a\u0022"b"#), r#"a\\u0022\"b"#);
    }
}
