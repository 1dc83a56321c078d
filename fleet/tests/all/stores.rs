//! Where a dataset may be, and what a store, a network and a collector that fail leave of it.
//!
//! With `LUCCE_TEST_STORE=s3://BUCKET/PREFIX`, and access in the environment, these tests and those of other modules that call
//! `new_dataset` use an object store. `cargo xtask fleet` runs them on an S3 server, `fleet/tests/stores/serve.py` on others.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use lucce_fleet::commits::CommitLog;
use lucce_fleet::compact::{RetentionPolicy, compact_dataset};
use lucce_fleet::engine::QueryLimits;
use lucce_fleet::ingest::RunIngester;
use lucce_fleet::store::{SharedStore, open_store};

use crate::common::client::{Served, push_log};
use crate::common::lagging_store::LaggingStore;
use crate::common::lossy_proxy::{FaultPlan, LossyProxy, ProxyFault};
use crate::common::{
    add, check_whole, command, labels, lucce_fleet, new_dataset, runs, store, text,
};

#[test]
fn urls_are_places_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    for (url, what) in [
        ("ftp://bucket/x", "must begin with s3:// or az://"),
        ("s3:///x", "no bucket"),
        (
            "s3://name:secret@bucket/x",
            "must not contain credentials; set them in the environment",
        ),
        ("s3://bucket/x?secret=1", "must be SCHEME://BUCKET/PREFIX"),
        ("s3://bucket/x#secret", "must be SCHEME://BUCKET/PREFIX"),
        ("s3://bucket//x", "is not valid"),
    ] {
        let views = lucce_fleet(dir.path(), &["views", "--dataset", url], &[]);
        let told = text(&views.stderr);
        assert_eq!(views.status.code(), Some(2), "{url}: {told}");
        assert!(told.contains(what), "{url}: {told}");
        assert!(!told.contains("secret"), "{url}: {told}");
    }
    let collect = lucce_fleet(dir.path(), &["collect", "s3://bucket/x"], &[]);
    let told = text(&collect.stderr);
    assert!(told.contains("--spool: which folder?"), "{told}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Two writers of one name, many times: one of them wins, and its bytes are there.
#[test]
fn one_of_two_writers_wins() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = new_dataset(dir.path());
    CommitLog::open_or_create(&store(&dataset)).unwrap();
    for round in 0..30 {
        let path = format!("commits/{round}");
        let write = |writer: u8| {
            let own = open_store(&dataset).unwrap();
            own.create_file(&path, &[writer; 100]).unwrap()
        };
        let won: Vec<bool> = thread::scope(|scope| {
            let writers = [1, 2].map(|writer| scope.spawn(move || write(writer)));
            writers.map(|writer| writer.join().unwrap()).into()
        });
        let bytes = store(&dataset).read_file(&path).unwrap().unwrap();
        let expected = match won[..] {
            [true, false] => 1,
            [false, true] => 2,
            _ => panic!("{round}: {won:?}"),
        };
        assert_eq!(bytes, [expected; 100]);
    }
}

/// Files that are uploaded in parts, and listed beside others.
#[test]
fn files_of_any_size_are_what_was_written() {
    use std::io::Write;

    let dir = tempfile::tempdir().unwrap();
    let dataset = new_dataset(dir.path());
    let own = store(&dataset);
    CommitLog::open_or_create(&own).unwrap();
    let sizes = [0, 1, 8 << 20, (8 << 20) + 1, (20 << 20) + 7];
    for size in sizes {
        let bytes: Vec<u8> = (0..size).map(|at: u32| (at / 251) as u8).collect();
        let (staged, mut file) = own.create_staged("bin").unwrap();
        file.write_all(&bytes).unwrap();
        let path = format!("events/service=a~20b/day=2026-11-27/{size}.bin");
        own.publish_file(staged, &path).unwrap();
        let copy = own.fetch_file(&path).unwrap();
        assert!(fs::read(copy.path()).unwrap() == bytes, "{size}");
    }
    let mut listed = own.list_files("events").unwrap();
    listed.sort_by_key(|file| file.path.len());
    assert_eq!(listed.len(), sizes.len());
    assert!(listed.iter().all(|file| file.modified.is_some()));
    for file in listed {
        own.remove_file(&file.path).unwrap();
        // A second time there is nothing to do.
        own.remove_file(&file.path).unwrap();
        assert_eq!(own.read_file(&file.path).unwrap(), None);
        assert!(
            own.fetch_file(&file.path)
                .and_then(|file| file.open())
                .is_err()
        );
    }
    assert_eq!(own.list_files("events").unwrap(), []);
}

/// The test above, on a store that answers 503 twice to each request, be it for a file, one of its parts or the end of its upload.
#[test]
#[ignore = "needs an S3 server, so `cargo xtask fleet` runs it there: LUCCE_TEST_STORE=s3://…, AWS_ENDPOINT_URL=http://…"]
fn files_of_any_size_reach_a_busy_store() {
    let proxy = LossyProxy::start(&server_address(), FaultPlan::EachTwice);
    let mut test = Command::new(std::env::current_exe().unwrap());
    let name = "stores::files_of_any_size_are_what_was_written";
    test.args(["--exact", name]);
    let ran = test.env("AWS_ENDPOINT_URL", proxy.url()).output().unwrap();
    let told = text(&ran.stdout);
    assert!(ran.status.success(), "{told}{}", text(&ran.stderr));
    assert!(told.contains("1 passed"), "{told}");
    // Of the five files two go in parts: 4 and 5 requests at least. All are read, listed and removed.
    let refused = proxy.count(ProxyFault::Refused);
    assert!(refused > 25, "{refused} requests");
    assert!(proxy.count(ProxyFault::WrongAnswer) >= refused - 1);
}

/// Host and port of the S3 server.
fn server_address() -> String {
    let endpoint = std::env::var("AWS_ENDPOINT_URL").unwrap();
    endpoint.strip_prefix("http://").unwrap().to_owned()
}

/// Listings that show nothing of what came later, while others add and compact.
#[test]
fn listings_that_lag_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = new_dataset(dir.path());
    let log = dir.path().join("kinds.log");
    lucce_testkit::kinds(&log);
    // More than there are commits from one sum of commits to the next.
    let logs = runs(dir.path(), &log, 70);
    add(&dataset, &logs[..1]);
    let folders = ["commits", "events", "runs", "symbols", "temporary"];
    let lagging: SharedStore = Arc::new(LaggingStore::new(store(&dataset), &folders));
    let mut ingest = RunIngester::open(&lagging).unwrap();
    for (number, log) in logs.iter().enumerate() {
        // By turns on a store with listings and on one without.
        match number % 10 {
            0 => drop(add(&dataset, std::slice::from_ref(log))),
            _ => {
                let log = std::slice::from_ref(log);
                let add = ingest.add_runs(log, &labels("1.0"), &mut |_| ());
                add.unwrap();
            }
        }
    }
    let policy = RetentionPolicy {
        numbers: None,
        runs: None,
        sums: None,
        grace: Duration::ZERO,
        now: SystemTime::now() + Duration::from_secs(3 * 86_400),
    };
    compact_dataset(&lagging, &policy, &QueryLimits::default()).unwrap();
    let state = |of: &SharedStore| {
        let state = CommitLog::open(of).unwrap().read_state().unwrap();
        assert!(state.number > 70);
        serde_json::to_value(state).unwrap()
    };
    assert_eq!(state(&lagging), state(&store(&dataset)));
    assert_eq!(check_whole(&dataset).len(), logs.len());
}

/// Two hundred senders, and a collector that is killed twice.
#[test]
fn what_senders_were_answered_for_is_in_the_dataset_once() {
    const SENDERS: u64 = 200;
    let dir = tempfile::tempdir().unwrap();
    let dataset = new_dataset(dir.path());
    let log = dir.path().join("kinds.log");
    lucce_testkit::kinds(&log);
    let logs = runs(dir.path(), &log, SENDERS);
    let collect = || {
        let more = ["--spool=spool", "--interval=1s", "--no-token"];
        Served::collect(dir.path(), dataset.to_str().unwrap(), &more)
    };
    let collector = Mutex::new(Some(collect()));
    let address = || {
        let collector = collector.lock().unwrap();
        collector.as_ref().unwrap().address.clone()
    };
    let left = Mutex::new(logs.clone());
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                loop {
                    let Some(log) = left.lock().unwrap().pop() else {
                        break;
                    };
                    push_log(&log, address);
                }
            });
        }
        for part in [150, 70] {
            while left.lock().unwrap().len() > part {
                thread::sleep(Duration::from_millis(5));
            }
            let mut own = collector.lock().unwrap();
            // By SIGKILL.
            drop(own.take());
            *own = Some(collect());
        }
    });
    drop(collector.into_inner().unwrap());
    let drain = [
        "collect",
        dataset.to_str().unwrap(),
        "--spool=spool",
        "--drain",
    ];
    let drained = lucce_fleet(dir.path(), &drain, &[]);
    assert!(drained.status.success(), "{}", text(&drained.stderr));
    let whole = check_whole(&dataset);
    assert_eq!(whole.len() as u64, SENDERS);
    add(&dataset, &logs);
    assert_eq!(check_whole(&dataset), whole);
}

/// A network that loses requests, answers and the ends of answers between writers and the store: each run is there once.
#[test]
#[ignore = "needs an S3 server, so `cargo xtask fleet` runs it there: LUCCE_TEST_STORE=s3://…, AWS_ENDPOINT_URL=http://…"]
fn a_network_that_loses_answers_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = new_dataset(dir.path());
    let log = dir.path().join("kinds.log");
    lucce_testkit::kinds(&log);
    let logs = runs(dir.path(), &log, 12);
    let proxy = LossyProxy::start(&server_address(), FaultPlan::SomeRequests);
    let write = |verb: &str, log: Option<&Path>| {
        let mut child = command(dir.path());
        child.arg(verb).arg(&dataset).args(log);
        if log.is_some() {
            child.arg("--service=shop");
        }
        child.env("AWS_ENDPOINT_URL", proxy.url());
        child.spawn().unwrap()
    };
    for pair in logs.chunks(3) {
        let adding: Vec<_> = pair.iter().map(|log| write("add", Some(log))).collect();
        for mut child in adding {
            // One may give up: what it could not write is added below.
            child.wait().unwrap();
        }
        check_whole(&dataset);
        write("compact", None).wait().unwrap();
        check_whole(&dataset);
    }
    for fault in ProxyFault::SOME {
        assert!(proxy.count(fault) > 0, "{fault:?}");
    }
    add(&dataset, &logs);
    assert_eq!(check_whole(&dataset).len(), logs.len());
}
