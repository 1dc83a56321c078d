//! `kill -9` at any moment loses nothing that was appended.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lucce_callgraph::ContextId;
use lucce_tracelog::{InMemoryLog, LogHeader, LogItem, LogRecord, LogWriter, StatRecord, ThreadId};

const CHILD: &str = "LUCCE_TEST_KILL";

/// The process that gets killed: appends, counts, and says how far it is sure to be.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let mut writer = LogWriter::create(PathBuf::from(path), &LogHeader::default()).unwrap();
    let counters = writer.add_counters(ThreadId(1), 1).unwrap();
    counters[0].claim(ContextId(1));
    for value in 0.. {
        writer
            .append(StatRecord {
                key: "n".into(),
                value,
            })
            .unwrap();
        counters[0].count_event(value);
        if value % 1000 == 0 {
            println!("sure {value}");
        }
    }
}

fn start(path: &PathBuf) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, path);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// The last number that the child was sure of when it died.
fn kill_after(path: &PathBuf, pause: Duration) -> u64 {
    let mut child = start(path);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.find(|l| l.as_ref().unwrap().contains("sure "));
    assert!(first.is_some());
    let rest = std::thread::spawn(move || {
        let confirmed = lines.filter_map(|l| l.ok()?.strip_prefix("sure ")?.parse().ok());
        confirmed.last().unwrap_or(0)
    });
    std::thread::sleep(pause);
    child.kill().unwrap();
    child.wait().unwrap();
    rest.join().unwrap()
}

#[test]
fn nothing_appended_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.lucce");
    for round in 0..8 {
        let _ = std::fs::remove_file(&path);
        let sure = kill_after(&path, Duration::from_millis(7 * round));
        let log = InMemoryLog::open(&path).unwrap();
        let (mut next, mut counted) = (0, 0);
        for item in log.items() {
            match item.unwrap() {
                LogItem::Record(entry) => {
                    let expected = StatRecord {
                        key: "n".into(),
                        value: next,
                    };
                    assert_eq!(entry.record, Some(LogRecord::Stat(expected)));
                    next += 1;
                }
                LogItem::EventCounters(_) | LogItem::Totals(_) | LogItem::VmCounters(_) => {
                    panic!("nobody asked for them")
                }
                LogItem::Counters(cells) => counted = cells.iter().map(|c| c.count).sum(),
            }
        }
        assert!(next > sure);
        assert!(counted == next || counted + 1 == next);
    }
}
