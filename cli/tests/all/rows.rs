//! What a person sees as one stack is one row with one sum, wherever it is listed.
//!
//! The oracle decodes each number by itself and adds up what its trace's content id, its kind and its type say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use lucce_decoder::{ExportOptions, Profile, StackFrame, export_run};
use lucce_testkit::random;
use serde_json::Value;

const SEEDS: std::ops::Range<u64> = 1..13;

/// By content id and type, events and the sum of their values.
type Rows = BTreeMap<(String, String), (u64, u64)>;

fn json(dir: &Path, args: &[&str]) -> Value {
    let mut lucce = Command::new(env!("CARGO_BIN_EXE_lucce"));
    let output = lucce.current_dir(dir).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Whether the innermost frame that is not the waiting's own is that of a pool's thread without a task.
fn waits_for_work(innermost_first: &[StackFrame]) -> bool {
    const POOL: &str = "java.util.concurrent.ThreadPoolExecutor";
    let mut of_pool = innermost_first
        .iter()
        .take_while(|frame| frame.class == POOL);
    of_pool.any(|frame| frame.method == "getTask")
}

/// Of one kind; `idle`: threads that wait for work, or the others.
fn expected(profile: &Profile, kind: &str, idle: bool) -> Rows {
    expected_of((profile, profile), kind, idle)
}

/// `whole`: the same log, of which all frames are shown.
fn expected_of((profile, whole): (&Profile, &Profile), kind: &str, idle: bool) -> Rows {
    let mut rows = Rows::new();
    for share in profile.events_of_kind(kind).as_slice() {
        let trace = profile.decode_trace(share.id).unwrap();
        if trace.frames.is_empty() {
            continue;
        }
        let site = whole.decode_frames(share.id).unwrap()[0].site;
        let waits = kind == "lock" && waits_for_work(&whole.decode_trace(share.id).unwrap().frames);
        if waits != idle || share.count == 0 {
            continue;
        }
        let what = profile.event_detail(share.event, site).unwrap_or_default();
        let row = rows.entry((trace.stack.to_string(), what.to_owned()));
        let row = row.or_default();
        row.0 += share.count;
        row.1 += share.value + share.count * profile.value_per_event(share.event, site);
    }
    rows
}

/// Panics where two rows have one name.
fn listed(rows: &Value) -> Rows {
    let rows = rows.as_array().unwrap();
    let all: Vec<_> = rows
        .iter()
        .map(|row| {
            let name = (text(&row["stack"]), text(&row["class"]));
            (name, (number(&row["count"]), number(&row["value"])))
        })
        .collect();
    let by_name: Rows = all.iter().cloned().collect();
    assert_eq!(by_name.len(), all.len(), "two rows read alike");
    by_name
}

fn random_profile(dir: &Path, seed: u64) -> (PathBuf, Profile) {
    let path = dir.join(format!("{seed}.lucce"));
    random::log(&path, seed, 0);
    let profile = Profile::open(&path).unwrap();
    (path, profile)
}

#[test]
fn a_report_has_one_row_for_each_stack_and_type() {
    let dir = tempfile::tempdir().unwrap();
    let mut united = 0;
    for seed in SEEDS {
        let (path, profile) = random_profile(dir.path(), seed);
        let log = path.to_str().unwrap();
        for kind in ["alloc", "lock"] {
            let all = ["report", log, "--json", "--event", kind, "--top"];
            let report = json(dir.path(), &[&all[..], &["0"]].concat());
            let rows = listed(&report["contexts"]);
            assert_eq!(rows, expected(&profile, kind, false), "{kind} of {seed}");
            let sums = rows
                .values()
                .fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
            let totals = &report["totals"];
            assert_eq!(
                (number(&totals["count"]), number(&totals["value"])),
                sums,
                "{kind} of {seed}"
            );
            let stacks: BTreeSet<_> = rows.keys().map(|(stack, _)| stack).collect();
            assert_eq!(number(&totals["contexts"]), stacks.len() as u64);
            let idle = expected(&profile, kind, true);
            let waited: u64 = idle.values().map(|row| row.0).sum();
            assert_eq!(report["idle"]["count"].as_u64().unwrap_or(0), waited);
            let contexts = report["contexts"].as_array().unwrap();
            united += contexts
                .iter()
                .filter(|row| !row["aliases"].as_array().unwrap().is_empty())
                .count();
            // The largest ones, and no more; small ones are one sum.
            let values = |report: &Value| -> Vec<u64> {
                let rows = report["contexts"].as_array().unwrap();
                rows.iter().map(|row| number(&row["value"])).collect()
            };
            let mut largest: Vec<u64> = rows.values().map(|row| row.1).collect();
            largest.sort_unstable_by(|a, b| b.cmp(a));
            let top = json(dir.path(), &[&all[..], &["7"]].concat());
            assert_eq!(values(&top), largest[..7]);
            let share = ["0", "--min-share", "0.8"];
            let shared = json(dir.path(), &[&all[..], &share].concat());
            let is_large = |value: &&u64| **value as f64 * 100.0 / sums.1 as f64 >= 0.8;
            let large: Vec<u64> = largest.iter().filter(is_large).copied().collect();
            assert_eq!(values(&shared), large);
            let rest = sums.1 - large.iter().sum::<u64>();
            assert_eq!(number(&shared["rest"]["value"]), rest);
        }
    }
    assert!(united > 100, "{united} rows have several numbers");
}

/// The data of a page.
fn page(dir: &Path, log: &Path, more: &[&str]) -> Value {
    let page = dir.join("page.html");
    let mut lucce = Command::new(env!("CARGO_BIN_EXE_lucce"));
    let lucce = lucce.arg("view").arg(log).arg("-o").arg(&page).args(more);
    assert!(lucce.output().unwrap().status.success());
    let page = std::fs::read_to_string(&page).unwrap();
    let (_, data) = page.split_once("id=\"data\"").unwrap();
    let (_, data) = data.split_once('>').unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// The contexts of a kind in a page, without those of threads that wait for work.
fn page_rows(data: &Value, kind: &str) -> Rows {
    let (contexts, shares) = (&data["contexts"], &data["shares"]);
    let list = |of: &Value| of.as_array().unwrap().clone();
    let idle: BTreeSet<u64> = list(&contexts["idle"]).iter().map(number).collect();
    let kinds = list(&data["kinds"]);
    let kind = kinds.iter().position(|of| text(&of["name"]) == kind);
    let mut rows = Rows::new();
    let mut by_number: BTreeMap<u64, (String, String)> = BTreeMap::new();
    for (at, of) in (0..).zip(list(&contexts["kind"])) {
        if Some(number(&of) as usize) != kind || idle.contains(&at) {
            continue;
        }
        let what = contexts["type"][at as usize].as_i64().unwrap();
        let what = usize::try_from(what).map(|what| text(&data["types"][what]));
        let stack = text(&contexts["stack"][at as usize]);
        let row = (stack, what.unwrap_or_default());
        assert_eq!(
            rows.insert(row.clone(), (0, 0)),
            None,
            "two rows read alike"
        );
        by_number.insert(at, row);
    }
    for (at, context) in list(&shares["context"]).iter().enumerate() {
        if let Some(row) = by_number.get(&number(context)) {
            let row = rows.get_mut(row).unwrap();
            row.0 += number(&shares["count"][at]);
            row.1 += number(&shares["value"][at]);
        }
    }
    rows
}

#[test]
fn a_page_has_one_context_for_each_stack_and_type() {
    let dir = tempfile::tempdir().unwrap();
    for seed in SEEDS {
        let (path, profile) = random_profile(dir.path(), seed);
        let data = page(dir.path(), &path, &[]);
        for kind in ["alloc", "lock"] {
            let rows = page_rows(&data, kind);
            assert_eq!(rows, expected(&profile, kind, false), "{kind} of {seed}");
        }
    }
}

/// With frames left out, threads that wait for work are the same ones, and what has no frame is in no sum.
#[test]
fn frames_out_of_scope_change_no_idle_thread() {
    let dir = tempfile::tempdir().unwrap();
    for seed in SEEDS {
        let (path, whole) = random_profile(dir.path(), seed);
        let mut profile = Profile::open(&path).unwrap();
        let mut filter = lucce_filter::ClassFilter::default();
        let patterns = lucce_filter::PatternList::parse("app.Main").unwrap();
        filter.include.extend(patterns);
        profile.restrict_scope(&filter);
        let log = path.to_str().unwrap();
        let data = page(dir.path(), &path, &["--include", "app.Main"]);
        for kind in ["alloc", "lock"] {
            let both = (&profile, &whole);
            let busy = expected_of(both, kind, false);
            let args = ["report", log, "--json", "--top", "0", "--event", kind];
            let report = json(
                dir.path(),
                &[&args[..], &["--include", "app.Main"]].concat(),
            );
            assert_eq!(listed(&report["contexts"]), busy, "{kind} of {seed}");
            assert_eq!(page_rows(&data, kind), busy, "{kind} of {seed}");
            let idle = expected_of(both, kind, true).into_values();
            let idle: u64 = idle.map(|(count, _)| count).sum();
            assert_eq!(report["idle"]["count"].as_u64().unwrap_or(0), idle);
        }
    }
}

/// What differs has one row for each stack and type, and all together is the difference of the sums.
#[test]
fn a_difference_has_one_row_for_each_stack_and_type() {
    let dir = tempfile::tempdir().unwrap();
    for seed in SEEDS {
        let (old_path, old) = random_profile(dir.path(), seed);
        let (new_path, new) = random_profile(dir.path(), seed + 100);
        for kind in ["alloc", "lock"] {
            let logs = [old_path.to_str().unwrap(), new_path.to_str().unwrap()];
            let args = ["--json", "--top", "0", "--event", kind];
            let diff = json(dir.path(), &[&["diff"], &logs[..], &args].concat());
            let sides = [&old, &new].map(|profile| expected(profile, kind, false));
            let value = |side: usize, name| sides[side].get(name).map_or(0, |row| row.1) as f64;
            let names: BTreeSet<_> = sides.iter().flat_map(BTreeMap::keys).collect();
            let changes = names.into_iter().map(|name| {
                let stack_and_type = (name.0.clone(), name.1.clone());
                (stack_and_type, value(1, name) - value(0, name))
            });
            let changes: Vec<_> = changes.filter(|(_, change)| *change != 0.0).collect();
            let rows = diff["rows"].as_array().unwrap();
            let mut listed: Vec<_> = rows
                .iter()
                .map(|row| {
                    let name = (text(&row["stack"]), text(&row["name"]));
                    (name, row["change"].as_f64().unwrap())
                })
                .collect();
            listed.sort_by(|a, b| a.0.cmp(&b.0));
            assert_eq!(listed, changes, "{kind} of {seed}");
        }
    }
}

/// Other tools are given each stack once for each thread.
#[test]
fn an_export_has_one_row_for_each_stack_type_and_thread() {
    let dir = tempfile::tempdir().unwrap();
    for seed in SEEDS {
        let (_, profile) = random_profile(dir.path(), seed);
        let options = ExportOptions {
            kind: None,
            value: None,
            leaf_type: false,
            content_ids: true,
            admits: &|_, _| true,
        };
        let run = export_run(&profile, &options, None, &|_| ()).run;
        let mut names = BTreeSet::new();
        let mut sums: BTreeMap<String, Rows> = BTreeMap::new();
        for row in &run.rows {
            let kind = run.kinds[row.kind as usize].name.clone();
            let content = run.content_id_text(row).unwrap();
            let what = row.type_index.map(|what| run.types[what as usize].clone());
            let name = (kind.clone(), content.clone(), what.clone(), row.thread);
            assert!(names.insert(name), "two rows read alike");
            let rows = sums.entry(kind).or_default();
            let sum = rows.entry((content, what.unwrap_or_default())).or_default();
            sum.0 += row.count;
            sum.1 += row.value;
        }
        for (kind, mut rows) in sums {
            for (name, (count, value)) in expected(&profile, &kind, true) {
                let row = rows.get_mut(&name).unwrap();
                row.0 -= count;
                row.1 -= value;
            }
            rows.retain(|_, row| row.0 > 0);
            assert_eq!(rows, expected(&profile, &kind, false), "{kind} of {seed}");
        }
    }
}
