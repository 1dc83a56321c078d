//! The command: what it prints, refuses and leaves alone.

use std::fs;
use std::path::Path;

use crate::common::{add, engine, lucce_fleet, number, pairs, text};
use lucce_fleet::ingest::{IngestOutcome, IngestReport};
use lucce_fleet::questions::ALL;

/// Standard output, standard error and the exit code.
fn fleet(dir: &Path, args: &[&str]) -> (String, String, i32) {
    let output = lucce_fleet(dir, args, &[]);
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code().unwrap(),
    )
}

fn shop(dir: &Path) {
    lucce_testkit::kinds(&dir.join("kinds.log"));
    let labels = [
        "add",
        "data",
        "kinds.log",
        "--service",
        "shop",
        "--version",
        "1.0",
        "--host",
        "h1",
    ];
    let (_, err, code) = fleet(dir, &labels);
    assert_eq!(code, 0, "{err}");
}

/// A packed log that becomes far more than it is: it is told, and the others go in.
#[test]
fn a_bomb_among_logs_keeps_no_other_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    lucce_testkit::kinds(&path("one.log"));
    lucce_testkit::sample(&path("two.log"));
    let two = fs::read(path("two.log")).unwrap();
    // The other runs have the same id.
    let mut other = fs::read(path("one.log")).unwrap();
    other[32] ^= 1;
    let sum = crc32fast::hash(&other[..60]).to_le_bytes();
    other[60..64].copy_from_slice(&sum);
    fs::write(path("one.log"), other).unwrap();
    // A reader takes 64 MB of zeros.
    let bomb = [two, vec![0; 80 << 20]].concat();
    fs::write(path("bomb.log.gz"), lucce_testkit::packed(&bomb)).unwrap();
    assert!(fs::metadata(path("bomb.log.gz")).unwrap().len() < 1 << 20);
    let made = std::process::Command::new("mkfifo")
        .arg(path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let add = [
        "add",
        "data",
        "one.log",
        "bomb.log.gz",
        "pipe",
        "two.log",
        "--service=shop",
    ];
    let (out, err, code) = fleet(dir.path(), &add);
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("bomb.log.gz: refused: ") && err.contains("of zeros"),
        "{err}"
    );
    assert!(err.contains("pipe: refused: a pipe (FIFO)"), "{err}");
    assert!(
        out.starts_with("added 2 runs") && out.contains("2 refused"),
        "{out}"
    );
}

/// Arguments are in the dataset if that is asked for.
#[test]
fn arguments_are_masked_in_a_dataset() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::kinds(&dir.path().join("kinds.log"));
    for (data, more, command) in [
        ("masked", None, "app.Main *"),
        ("shown", Some("--arguments"), "app.Main --fast"),
    ] {
        let add = ["add", data, "kinds.log", "--service=shop"];
        let add: Vec<_> = add.into_iter().chain(more).collect();
        assert_eq!(fleet(dir.path(), &add).2, 0);
        let sql = "SELECT command FROM runs";
        let query = ["query", sql, "--dataset", data, "--output", "csv"];
        let (out, err, _) = fleet(dir.path(), &query);
        assert_eq!(out.lines().last(), Some(command), "{out}{err}");
        let mut found = 0;
        let mut folders = vec![dir.path().join(data)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false if path.extension().is_some_and(|name| name == "lsym") => {
                        let symbols = lucce_decoder::Profile::open(&path).unwrap();
                        assert_eq!(symbols.meta["command"], "app.Main *");
                        let mut symbols = symbols;
                        symbols.show_arguments();
                        assert_eq!(symbols.meta["command"], command);
                        found += 1;
                    }
                    false => {}
                }
            }
        }
        assert_eq!(found, 1);
    }
}

#[test]
fn every_question_has_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    shop(dir.path());
    for question in ALL {
        let mut args = vec![
            "ask".to_owned(),
            question.name.to_owned(),
            "--dataset=data".to_owned(),
        ];
        for slot in question
            .parameter_specs()
            .filter(|slot| slot.default.is_none())
        {
            let value = match slot.name {
                "class" => "app.Main",
                "method" => "work",
                "service" => "shop",
                "from" | "to" => "17",
                _ => "1.0",
            };
            args.push(format!("--{}={value}", slot.name));
        }
        let output = lucce_fleet(dir.path(), &[], &args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{}: {err}", question.name);
        assert!(out.starts_with("+-"), "{}: {out}", question.name);
    }
    let (top, _, _) = fleet(
        dir.path(),
        &[
            "ask",
            "top",
            "--dataset",
            "data",
            "--output",
            "csv",
            "--top",
            "1",
        ],
    );
    let expected = "place,service,class,method,line,type,events,amount\n1,shop,app.Main,work,";
    assert!(top.starts_with(expected), "{top}");
    assert_eq!(top.lines().count(), 2);
    let (callers, _, _) = fleet(
        dir.path(),
        &[
            "ask",
            "callers",
            "--dataset",
            "data",
            "--output",
            "csv",
            "--class",
            "app.Main",
            "--method",
            "work",
        ],
    );
    assert!(
        callers.contains("app.Main,main,") && callers.contains("app.Main,work,"),
        "{callers}"
    );
}

#[test]
fn answers_have_four_forms() {
    let dir = tempfile::tempdir().unwrap();
    shop(dir.path());
    let sql = "SELECT service, CAST(COUNT(*) AS BIGINT) AS n, CAST(NULL AS BIGINT) AS no FROM runs GROUP BY service";
    let query = |form: &str| {
        let output = lucce_fleet(
            dir.path(),
            &["query", sql, "--dataset", "data", "--output", form],
            &[],
        );
        assert!(output.status.success());
        output.stdout
    };
    assert_eq!(text(&query("csv")), "service,n,no\nshop,1,\n");
    assert_eq!(text(&query("json")), "[{\"service\":\"shop\",\"n\":1}]\n");
    let table = text(&query("table"));
    assert_eq!(
        table.lines().nth(3),
        Some("| shop    | 1 |    |"),
        "{table}"
    );
    let arrow = query("arrow");
    let reader = arrow::ipc::reader::StreamReader::try_new(&arrow[..], None).unwrap();
    let rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 1);
    let none = lucce_fleet(
        dir.path(),
        &[
            "query",
            "SELECT service FROM runs WHERE 1 = 0",
            "--dataset",
            "data",
            "--output",
            "csv",
        ],
        &[],
    );
    assert_eq!(text(&none.stdout), "service\n");
}

#[test]
fn what_the_engine_says_of_sql_is_told() {
    let dir = tempfile::tempdir().unwrap();
    shop(dir.path());
    for (sql, words) in [
        ("SELEKT 1", "SQL error"),
        ("SELECT nothing FROM runs", "No field named nothing"),
        (
            "SELECT * FROM secrets",
            "table 'datafusion.public.secrets' not found",
        ),
    ] {
        let (out, err, code) = fleet(dir.path(), &["query", sql, "--dataset", "data"]);
        assert_eq!((out.as_str(), code), ("", 2), "{sql}");
        assert!(
            err.starts_with("lucce fleet: ") && err.contains(words),
            "{sql}: {err}"
        );
    }
}

/// Questions read the dataset, and nothing else.
#[test]
fn sql_changes_nothing_and_reads_no_other_files() {
    let dir = tempfile::tempdir().unwrap();
    shop(dir.path());
    fs::write(dir.path().join("secret.csv"), "a,b\n1,2\n").unwrap();
    for sql in [
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'secret.csv'",
        "COPY (SELECT 1) TO 'written.csv'",
        "INSERT INTO runs SELECT * FROM runs",
        "DROP TABLE runs",
        "SET datafusion.execution.batch_size = 1",
        "SELECT * FROM 'secret.csv'",
    ] {
        let (out, err, code) = fleet(dir.path(), &["query", sql, "--dataset", "data"]);
        assert_eq!((out.as_str(), code), ("", 2), "{sql}: {err}");
    }
    assert!(!dir.path().join("written.csv").exists());
}

#[test]
fn numbers_of_any_run_are_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let ids = lucce_testkit::kinds(&dir.path().join("kinds.log"));
    shop(dir.path());
    let number = format!("lucce:0123456789abcdef:{}", ids[&'A']);
    let (out, err, code) = fleet(dir.path(), &["decode", &number, "--dataset", "data"]);
    let trace = "\tat app.Main.work(Main.java:21)\n\tat app.Main.main(Main.java:5)\n";
    assert_eq!(
        (out, err.as_str(), code),
        (
            format!("{number}  f00403cbb399c9ee83ee35588751f6b8\n{trace}"),
            "",
            0
        )
    );
    let (_, err, code) = fleet(
        dir.path(),
        &["decode", "lucce:00000000000000aa:0x1", "--dataset", "data"],
    );
    assert_eq!(code, 1);
    assert_eq!(
        err,
        "lucce fleet: lucce:00000000000000aa:0x1: run 00000000000000aa is not in the dataset\n"
    );
    let (_, err, code) = fleet(
        dir.path(),
        &[
            "decode",
            "lucce:0123456789abcdef:0xfffffff",
            "--dataset",
            "data",
        ],
    );
    assert!(code == 1 && err.contains("0xfffffff"), "{err}");
    assert_eq!(
        fleet(dir.path(), &["decode", "0x1", "--dataset", "data"]).2,
        2
    );
}

/// Names that try to be commands of a terminal, other lines, formulas, patterns, folders or SQL.
#[test]
fn hostile_names_stay_names() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::hostile::all(dir.path());
    let log = dir.path().join("hostile.log");
    let services = lucce_testkit::hostile::NAMES
        .iter()
        .filter(|name| !name.contains('\0'));
    let services = services.chain(&["../../up", "a*b?{c,d}[e]%2e", "'; DROP TABLE runs; --", "."]);
    let mut added = 0;
    for (run, service) in services.enumerate() {
        let mut bytes = fs::read(&log).unwrap();
        lucce_testkit::rename_run(&mut bytes, run as u64 + 1);
        let copy = dir.path().join("copy.log");
        fs::write(&copy, bytes).unwrap();
        let args = [
            "add",
            "data",
            "copy.log",
            &format!("--service={service}"),
            &format!("--version={service}"),
        ];
        let (_, err, code) = fleet(dir.path(), &args);
        assert_eq!(code, 0, "{service:?}: {err}");
        added += 1;
        let (out, err, _) = fleet(
            dir.path(),
            &[
                "ask",
                "coverage",
                "--dataset=data",
                "--output=json",
                &format!("--service={service}"),
            ],
        );
        let rows: serde_json::Value =
            serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
        assert_eq!(rows.as_array().map(Vec::len), Some(1), "{service:?}: {out}");
        assert_eq!(rows[0]["service"].as_str(), Some(*service));
    }
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        names
            .iter()
            .all(|name| name == "data" || name.to_string_lossy().contains('.')),
        "{names:?}"
    );
    for form in ["table", "csv", "json"] {
        let sql = "SELECT * FROM runs JOIN events ON events.run_id = runs.run_id JOIN stacks ON stacks.stack_id = events.stack_id JOIN frames ON frames.frame_id = stacks.frame_id";
        let (out, _, code) = fleet(
            dir.path(),
            &["query", sql, "--dataset", "data", "--output", form],
        );
        assert_eq!(code, 0);
        assert!(
            out.chars()
                .all(|c| lucce_tracelog::escape::is_plain(c) || c == '\n'),
            "{form}"
        );
        assert!(
            !out.lines()
                .any(|line| line.starts_with(lucce_testkit::hostile::FORGED)),
            "{form}"
        );
        assert!(form != "csv" || !out.contains(",=cmd"), "{form}");
    }
    let (count, ..) = fleet(
        dir.path(),
        &[
            "query",
            "SELECT COUNT(*) AS n FROM runs",
            "--dataset=data",
            "--output=csv",
        ],
    );
    assert_eq!(count, format!("n\n{added}\n"));
    // The views of other engines name the same files.
    let (views, _, code) = fleet(
        dir.path(),
        &["views", "--dataset", "data", "--for", "duckdb"],
    );
    // Seven tables, and the view of requests.
    assert!(code == 0 && views.lines().count() == 8, "{views}");
}

/// A join and a sort of more rows than the memory holds.
#[test]
fn memory_is_bounded_and_what_has_no_room_goes_to_files() {
    let dir = tempfile::tempdir().unwrap();
    shop(dir.path());
    let sql = "SELECT COUNT(*) AS n FROM (SELECT a.value AS v, b.value AS w, c.value AS x FROM generate_series(1, 200) a
        CROSS JOIN generate_series(1, 200) b CROSS JOIN generate_series(1, 40) c ORDER BY x, w, v) many";
    let args = [
        "query",
        sql,
        "--dataset=data",
        "--output=csv",
        "--memory=32m",
        "--spill=spilled",
    ];
    fs::create_dir(dir.path().join("spilled")).unwrap();
    let (out, err, code) = fleet(dir.path(), &args);
    assert_eq!((out.as_str(), code), ("n\n1600000\n", 0), "{err}");
}

/// A join by keys that come in no order.
const JOINED: &str = "SELECT COUNT(*) AS n
    FROM (SELECT value * 7919 % 4000037 AS k FROM generate_series(1, 4000000)) a
    JOIN (SELECT value * 104729 % 4000037 AS k FROM generate_series(1, 4000000)) b ON a.k = b.k";

fn joined(memory: &str) -> (String, String, i32) {
    let dir = tempfile::tempdir().unwrap();
    shop(dir.path());
    let memory = format!("--memory={memory}");
    let args = ["query", JOINED, "--dataset=data", "--output=csv", &memory];
    fleet(dir.path(), &args)
}

/// What was told before is not told again.
#[test]
fn a_join_that_cannot_hold_a_side_sorts_both() {
    let (out, err, code) = joined("100m");
    assert_eq!((out.as_str(), code), ("n\n3999964\n", 0), "{err}");
}

/// Where not even a sort has room: refused, not waited for.
#[test]
fn a_join_that_cannot_be_sorted_is_refused() {
    let (_, err, code) = joined("16m");
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("Resources exhausted") && err.contains("ExternalSorter"),
        "{err}"
    );
}

#[test]
fn each_request_has_its_bytes_waits_and_exceptions() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("received.log");
    lucce_testkit::received(&log);
    let runs = crate::common::runs(dir.path(), &log, 2);
    let outcomes = add(&dir.path().join("data"), &runs);
    let is_new = |report: &IngestReport| report.outcome == IngestOutcome::New;
    assert!(outcomes.iter().all(is_new), "{outcomes:?}");
    let ask = |args: &[&str]| {
        let asked = ["ask", "requests", "--dataset", "data", "--output", "csv"];
        let answer = lucce_fleet(dir.path(), &[&asked[..], args].concat(), &[]);
        assert_eq!(answer.status.code(), Some(0), "{}", text(&answer.stderr));
        text(&answer.stdout)
    };
    let [get, post] = lucce_testkit::RECEIVED;
    let head =
        "service,request,event,unit,requests,events,amount,events_per_request,amount_per_request";
    let rows = [
        format!("shop,{get},alloc,bytes,10,8,720,0.8,72.0"),
        format!("shop,{get},exception,,10,8,0,0.8,0.0"),
        format!("shop,{get},lock,ns,10,6,5000,0.6,500.0"),
        format!("shop,{post},alloc,bytes,2,14,224,7.0,112.0"),
        format!("shop,{post},exception,,2,2,0,1.0,0.0"),
    ];
    let answer = ask(&[]);
    let mut lines = answer.lines();
    assert_eq!(lines.next(), Some(head));
    // What happened outside of requests is in one row, which has no requests.
    let outside = lines.next().unwrap_or_default();
    assert!(
        outside.starts_with("shop,(no request),alloc,bytes,,") && outside.ends_with(",,"),
        "{answer}"
    );
    assert_eq!(lines.collect::<Vec<_>>(), rows);
    let one = ask(&["--request", post, "--event", "alloc"]);
    assert_eq!(one.lines().collect::<Vec<_>>(), [head, &rows[3]]);
    // The view has each row of the events, with tags of both kinds.
    let engine = engine(&dir.path().join("data"));
    let same = "SELECT COUNT(*) FROM requests r JOIN events e ON r.run_id = e.run_id AND r.stack_id = e.stack_id AND r.event = e.event AND r.tags = e.tags AND r.count = e.count";
    assert_eq!(
        number(&engine, same),
        number(&engine, "SELECT COUNT(*) FROM events")
    );
    let by_tags = pairs(
        &engine,
        "SELECT tags || ': ' || request, SUM(count) FROM requests WHERE event = 'request' GROUP BY tags, request",
    );
    let expected = [
        (format!("request={get}, tenant=a: {get}"), 4),
        (format!("request={get}: {get}"), 6),
        (format!("request={post}, tenant=b: {post}"), 2),
    ];
    assert_eq!(by_tags, expected.into());
    let views = lucce_fleet(
        dir.path(),
        &["views", "--dataset", "data", "--for", "duckdb"],
        &[],
    );
    assert!(text(&views.stdout).contains("CREATE OR REPLACE VIEW requests AS SELECT *, CASE"));
}
