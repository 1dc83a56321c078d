//! `lucce ctl PID holders`: objects that are held in known ways.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Holders";
const OWN: &str = "io.lucce.programs.Holders";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for (name, flags, options) in [
            ("default", &[][..], Some("events=leak=1k")),
            (
                "z",
                &["-XX:+UseZGC", "-Xcheck:jni"],
                Some("events=alloc+leak=1k"),
            ),
            // Not Parallel: that of JDK 17 unloads a class of which an empty array is left, and the JVM crashes (JDK-8297499).
            ("attached", &["-XX:+UseSerialGC"], None),
        ] {
            let quick = jdk == setup.jdk() && name == "default";
            let name_of = format!("holders::{}::{name}", jdk.version);
            tests.push(test(name_of, quick, move || {
                held(setup, jdk, (name, flags, options))
            }));
        }
        let name = format!("holders::{}::mixed", jdk.version);
        tests.push(test(name, false, move || mixed(setup, jdk)));
    }
    tests
}

type Mode = (&'static str, &'static [&'static str], Option<&'static str>);

fn held(setup: &Setup, jdk: &Jdk, (name, flags, options): Mode) -> Checked {
    let java = Java::new(setup, jdk, &format!("holders-{}-{name}", jdk.version));
    let java = match options {
        Some(options) => java.agent(options),
        None => java,
    };
    let java = java.flags(["-Xmx200m"]).flags(flags).main([PROGRAM]);
    let mut running = Running::of(java)?;
    let pid = running.child.id().to_string();
    if options.is_none() {
        let log = running.java.log().to_string_lossy().into_owned();
        let attach = ["attach", &pid, "--out", &log, "--opt", "events=leak=1k"];
        running.java.lucce().text(0, &attach)?;
    }
    // What was made before an agent came is not followed.
    let wanted: &[&str] = match options {
        Some(_) => &ALL,
        None => &["later"],
    };
    let mut ids = BTreeMap::new();
    running.until("all that lives is known", |running| {
        ids = places(running, &pid)?;
        Ok(wanted.iter().all(|way| ids.contains_key(*way)))
    })?;
    for way in wanted {
        let collect = *way == "inClassValue";
        let found = holders(&running, &pid, (&ids[*way], collect))?;
        as_expected(way, &found)?;
    }
    if let Some(id) = ids.get("inChain") {
        ends_with_its_budget(&running, &pid, id)?;
    }
    // Several numbers are answered one after another. Objects of other methods may have died: there is no walk for them.
    let asked: Vec<&str> = wanted.iter().take(2).map(|way| &*ids[*way]).collect();
    let text = [&["ctl", &pid, "holders"], &asked[..]].concat();
    let text = running.java.lucce().text(0, &text)?;
    ensure(
        text.matches("the JVM stood still for").count() == asked.len() && !text.contains('\u{1b}'),
        || text.clone(),
    )?;
    // Each begins with the number and the content id, as the decoder has them.
    for id in asked {
        let log = running.java.log();
        let decoded =
            running
                .java
                .lucce()
                .json(&["decode", "--json", &log.to_string_lossy(), id])?;
        let stack = decoded["stack"].as_str().ok_or("no content id")?;
        ensure(text.contains(&format!("context {id}  {stack}\n")), || {
            format!("{id} {stack}: {text}")
        })?;
        let asked = holders(&running, &pid, (id, false))?;
        ensure(asked["stack"] == stack, || format!("{stack}: {asked}"))?;
    }
    refused(&running, &pid)?;
    running.works_on()
}

/// No walk through this heap is over within a millisecond, on any machine.
fn ends_with_its_budget(running: &Running<'_>, pid: &str, id: &str) -> Checked {
    let asked = [
        "ctl",
        pid,
        "holders",
        id,
        "--json",
        "--type",
        "byte[]",
        "--pause-budget",
        "0.001",
    ];
    let found = running.java.lucce().json(&asked)?;
    let told = || format!("{found:#}");
    ensure(
        found["over"] == true && found["out_of_budget"] == true,
        told,
    )?;
    ensure(found["paths"] == Value::Array(Vec::new()), told)?;
    // It is not said that nothing holds the object.
    ensure(
        found["not_held"] == 0 && found["unfinished"][0]["objects"] == 1,
        told,
    )?;
    let walks = found["pauses"].as_array().map(Vec::len);
    ensure(walks == Some(1), told)
}

/// Methods of the program that make what lives, and whose holders are known.
const ALL: [&str; 23] = [
    "outer",
    "map",
    "inChain",
    "grid",
    "derived",
    "inLambda",
    "threadLocal",
    "variable",
    "soft",
    "both",
    "several",
    "later",
    "inLoader",
    "inArrayLoader",
    "inClassLoader",
    "inContextLoader",
    "finalizable",
    "interned",
    "cleaned",
    "locked",
    "inLongChain",
    "inLinkedList",
    "inClassValue",
];

/// The number of the context in each method.
fn places(running: &Running<'_>, pid: &str) -> Result<BTreeMap<String, String>, String> {
    let output = running
        .java
        .lucce()
        .run(&["leaks", "--json", "--top", "0", pid])?;
    let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else {
        return Ok(BTreeMap::new());
    };
    let rows = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let mut places = BTreeMap::new();
    for row in rows("suspects").iter().chain(&rows("leaks")) {
        let frame = match row["at"].is_object() {
            true => &row["at"],
            false => &row["frames"][0],
        };
        if row["class"] == "byte[]" && frame["class"] == OWN {
            let method = frame["method"].as_str().unwrap_or("?").to_owned();
            places.insert(method, row["id"].as_str().unwrap_or("?").to_owned());
        }
    }
    Ok(places)
}

/// Of the arrays alone: where one is made the VM may have sampled what is made beside it.
fn holders(running: &Running<'_>, pid: &str, (id, collect): (&str, bool)) -> Result<Value, String> {
    let mut asked = vec![
        "ctl", pid, "holders", id, "--json", "--yes", "--type", "byte[]",
    ];
    asked.extend(collect.then_some("--gc"));
    running.java.lucce().json(&asked)
}

/// Each link as `by member: type`, from the root on.
fn links(path: &Value) -> Vec<String> {
    let text = |link: &Value, key: &str| link[key].as_str().unwrap_or("").to_owned();
    let links = path["links"].as_array().into_iter().flatten();
    links
        .map(|link| {
            let class = text(link, "class").replace(OWN, "Holders");
            let member = match text(link, "name") {
                name if name.is_empty() => link["index"]
                    .as_i64()
                    .map_or_else(String::new, |at| at.to_string()),
                name => format!("{class}.{name}"),
            };
            let soft = if link["soft"] == true { "soft " } else { "" };
            let of = text(link, "of").replace(OWN, "Holders");
            format!("{soft}{} {member}: {of}", text(link, "by"))
        })
        .collect()
}

fn as_expected(way: &str, found: &Value) -> Checked {
    let told = || format!("{way}: {found:#}");
    let path = &found["paths"][0];
    let links = links(path);
    let is = |wanted: &[&str]| {
        ensure(links == wanted, || {
            format!("expected {wanted:#?}, found {links:#?}\n{}", told())
        })
    };
    ensure(
        found["schema"] == "lucce-holders" && found["cut"] == false,
        told,
    )?;
    ensure(
        found["pauses"]
            .as_array()
            .is_some_and(|all| !all.is_empty()),
        told,
    )?;
    match way {
        "outer" => is(&[
            "static Holders.inner: Holders$Inner",
            "field Holders$Inner.this$0: Holders",
            "field Holders.own: byte[]",
        ]),
        "map" => is(&[
            "static Holders.MAP: java.util.HashMap",
            "field java.util.HashMap.table: java.util.HashMap$Node[]",
            &links.get(2).cloned().unwrap_or_default(),
            "field java.util.HashMap$Node.value: byte[]",
        ]),
        "inChain" => {
            is(&[
                "static Holders.chain: Holders$Node",
                "field Holders$Node.next: Holders$Node",
                "field Holders$Node.payload: byte[]",
            ])?;
            // A walk for each link would be 22.
            let walks = found["pauses"].as_array().map_or(0, Vec::len);
            ensure(path["links"][1]["times"] == 20 && walks < 15, told)
        }
        "grid" => is(&[
            "static Holders.grid: java.lang.Object[][]",
            "element 1: java.lang.Object[]",
            "element 2: byte[]",
        ]),
        "derived" => is(&[
            "static Holders.derived: Holders$Derived",
            "field Holders$Base.held: byte[]",
        ]),
        "inLambda" => {
            ensure(links.len() == 2, told)?;
            ensure(
                links[0].starts_with("static Holders.lambda: Holders$$Lambda"),
                told,
            )?;
            ensure(links[1].starts_with("field Holders$$Lambda"), told)
        }
        "threadLocal" => {
            let last = "field java.lang.ThreadLocal$ThreadLocalMap$Entry.value: byte[]";
            ensure(links.last().is_some_and(|link| link == last), told)?;
            ensure(links[0] == "thread : java.lang.Thread", told)?;
            let name = path["links"][0]["thread"].as_str();
            ensure(name == Some("holder \u{1b}[2J<b>"), told)
        }
        "variable" => {
            ensure(links == ["local Holders.holds: byte[]"], told)?;
            ensure(path["links"][0]["thread"] == "holder \u{1b}[2J<b>", told)
        }
        "soft" => is(&[
            "static Holders.softly: java.lang.ref.SoftReference",
            "soft field java.lang.ref.Reference.referent: byte[]",
        ]),
        "both" => {
            ensure(
                links.len() == 3 && links[0] == "static Holders.KEPT: java.util.ArrayList",
                told,
            )?;
            ensure(links[2].starts_with("element "), told)
        }
        "several" => {
            ensure(links.len() == 3 && links[2].starts_with("element "), told)?;
            ensure(links[0] == "static Holders.KEPT: java.util.ArrayList", told)
        }
        // Two classes of one loader: an object of one holds the loader, which holds the other.
        "inLoader" => {
            let class = [
                "field java.lang.ThreadLocal$ThreadLocalMap$Entry.value: Holders$Plugin",
                "class : java.lang.Class",
                "class_loader : java.net.URLClassLoader",
                "loaded_class : java.lang.Class",
                "static Holders$Unit.held: byte[]",
            ];
            ensure(links.len() == 9 && links[4..] == class, told)?;
            let thread = &path["links"][0]["thread"];
            let names = [5, 7].map(|at| path["links"][at]["names"].clone());
            let wanted = ["Plugin", "Unit"].map(|class| format!("{OWN}${class}"));
            ensure(
                thread == "pool-thread" && names == wanted.map(Value::from),
                told,
            )
        }
        "inArrayLoader" => {
            let class = [
                "class : java.lang.Class",
                "class_loader : java.net.URLClassLoader",
            ];
            ensure(links.len() == 7 && links[3..5] == class, told)?;
            ensure(links[2].ends_with(": Holders$Plugin[]"), told)
        }
        "inClassLoader" => {
            ensure(
                links.len() == 6 && links[2].ends_with(": java.lang.Class"),
                told,
            )?;
            let loader = "class_loader : java.net.URLClassLoader";
            ensure(
                links[3] == loader && links[5] == "static Holders$Unit.held: byte[]",
                told,
            )
        }
        "inContextLoader" => {
            is(&[
                "thread : java.lang.Thread",
                "field java.lang.Thread.contextClassLoader: Holders$OwnLoader",
                "field Holders$OwnLoader.held: byte[]",
            ])?;
            ensure(path["links"][0]["thread"] == "context", told)
        }
        "finalizable" => {
            let last = [
                "field java.lang.ref.Reference.referent: Holders$Slow",
                "field Holders$Slow.held: byte[]",
            ];
            let held = links.len().checked_sub(2).ok_or_else(told)?;
            ensure(links[held..] == last, told)?;
            ensure(path["links"][held]["finalizer"] == true, told)
        }
        "interned" => {
            ensure(
                links.len() == 4 && links[0] == "static Holders.KEPT: java.util.ArrayList",
                told,
            )?;
            ensure(links[3] == "field java.lang.String.value: byte[]", told)
        }
        "cleaned" => {
            ensure(
                links
                    .last()
                    .is_some_and(|link| link == "field Holders$Action.held: byte[]"),
                told,
            )?;
            let action = links.get(links.len() - 2);
            ensure(
                action.is_some_and(|link| link.ends_with(".action: Holders$Action")),
                told,
            )
        }
        "locked" => {
            ensure(links == ["local Holders.locks: byte[]"], told)?;
            ensure(path["links"][0]["thread"] == "locker", told)
        }
        "inLongChain" => {
            is(&[
                "static Holders.longChain: Holders$Node",
                "field Holders$Node.next: Holders$Node",
                "field Holders$Node.payload: byte[]",
            ])?;
            ensure(path["links"][1]["times"] == 100_000, told)
        }
        "inLinkedList" => {
            let list = path["links"].as_array().map_or(&[][..], Vec::as_slice);
            let times: u64 = list
                .iter()
                .map(|link| link["times"].as_u64().unwrap_or(1))
                .sum();
            // The list, one of its ends, half of its elements, and what is in the middle.
            ensure((50_000..50_004).contains(&times), told)?;
            ensure(
                links[0] == "static Holders.linked: java.util.LinkedList",
                told,
            )?;
            ensure(
                links
                    .last()
                    .is_some_and(|link| link.ends_with("$Node.item: byte[]")),
                told,
            )
        }
        // No walk reports fields of a java.lang.Class. What is alive is not said to be held by nothing.
        "inClassValue" => {
            let none = found["paths"].as_array().is_some_and(Vec::is_empty);
            ensure(
                none && found["not_held"] == 1 && found["collected"] == 0,
                told,
            )?;
            ensure(
                found["unreported"] == 1 && found["collection"].is_f64(),
                told,
            )
        }
        // They go while others come.
        "later" => {
            let all = found["paths"].as_array().into_iter().flatten();
            let in_array = |path: &Value| match crate::holders::links(path).as_slice() {
                [field, element] => {
                    field == "static Holders.LATE: java.lang.Object[]"
                        && element.starts_with("element ")
                }
                _ => false,
            };
            let number = |path: &Value| path["objects"].as_u64().unwrap_or(0);
            let held: u64 = all.filter(|path| in_array(path)).map(number).sum();
            // A JVM to which the agent came just now has few of them.
            let looked_for = found["looked_for"].as_u64().unwrap_or(0);
            ensure(held > 0 && 2 * held >= looked_for, told)
        }
        other => Err(format!("no such way: {other}")),
    }
}

/// Of the types that are made at one line one leaks: the command that `leaks` prints asks what holds that one.
fn mixed(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("holders-{}-mixed", jdk.version));
    let java = java.agent("events=leak=1k").flags(["-Xmx200m"]);
    let mut running = Running::of(java.main([MIXED]))?;
    let pid = running.pid();
    let mut report = Value::Null;
    running.until("the leak is proven", |running| {
        let output = running.java.lucce().run(&["leaks", "--json", &pid])?;
        report = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok(report["leaks"][0].is_object())
    })?;
    ensure(report["leaks"][0]["class"] == LEAKING, || {
        format!("{report:#}")
    })?;
    let id = report["leaks"][0]["id"].as_str().unwrap_or("?");
    // A cache that is not full for long looks like a leak, too, until more collections have come.
    let mut why = String::new();
    let says_all = running.until(
        "the node is the first leak, with what holds it",
        |running| {
            let said = says_what_holds_the_leak(running, &pid)
                .and_then(|()| one_command_says_all(running, &pid));
            let is_right = said.is_ok();
            why = said.err().unwrap_or_default();
            Ok(is_right)
        },
    );
    says_all.map_err(|error| format!("{error}\n{why}"))?;
    each_type_has_its_own_holders(&running, &pid, id)?;
    let cached = running.ctl(&["holders", id, "--yes", "--type", CACHED])?;
    held_by(BOTH[1], &cached)?;
    running.refused(&["holders", id, "--type", "long[][]"], CACHED)?;
    running.works_on()
}

const MIXED: &str = "io.lucce.programs.Mixed";
const LEAKING: &str = "io.lucce.programs.Mixed$Node";
const CACHED: &str = "long[]";
/// The most objects that one search looks for.
const MAX_OBJECTS: u64 = 16;
/// The types, which field holds their objects, and at least how many of eight: all those in the cache may go meanwhile.
const BOTH: [(&str, &str, u64); 2] = [(LEAKING, "Mixed.LEAK", 8), (CACHED, "Mixed.CACHE", 0)];

/// The command as it is printed, in a shell.
fn says_what_holds_the_leak(running: &Running<'_>, pid: &str) -> Checked {
    let told = running.java.lucce().run(&["leaks", pid])?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let command = told.lines().find_map(|line| {
        let (_, arguments) = line.split_once("what holds such objects: lucce ")?;
        Some(format!("exec \"$0\" {arguments} --yes"))
    });
    let command = command.ok_or_else(|| format!("no command in\n{told}"))?;
    let lucce = running.java.lucce().command();
    let mut shell = Command::new("sh");
    let shell = shell.arg("-c").arg(&command).arg(lucce.get_program());
    let shell = shell.stdin(Stdio::null()).output();
    let shell = shell.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&shell.stdout);
    ensure(
        text.lines()
            .nth(1)
            .is_some_and(|line| line.starts_with(&format!("{LEAKING}: ")))
            && text.contains("8 of 8 are held by")
            && text.contains("static field io.lucce.programs.Mixed.LEAK")
            && !text.contains("CACHE"),
        || format!("{command}\n{shell:?}"),
    )
}

/// The leak, its line, and what holds it.
fn one_command_says_all(running: &Running<'_>, pid: &str) -> Checked {
    let asked = ["leaks", pid, "--holders", "--pause-budget", "600"];
    let text = running.java.lucce().text(1, &asked)?;
    let wanted = [
        &format!("#1 {LEAKING} "),
        "\tat io.lucce.programs.Mixed.handle(Mixed.java:",
        "\nwhat holds such objects:\n",
        "\tstatic field io.lucce.programs.Mixed.LEAK: ",
    ];
    ensure(wanted.iter().all(|part| text.contains(part)), || {
        text.clone()
    })?;
    ensure(
        !text.contains("lucce ctl") && !text.contains("Mixed.CACHE"),
        || text.clone(),
    )?;
    let report = running
        .java
        .lucce()
        .run(&[&asked[..], &["--json"]].concat())?;
    let report: Value = serde_json::from_slice(&report.stdout).map_err(|e| e.to_string())?;
    ensure(report["holders"][0]["class"] == LEAKING, || {
        format!("{report:#}")
    })?;
    held_by(BOTH[0], &report["holders"][0])
}

/// Without a type: one line for each.
fn each_type_has_its_own_holders(running: &Running<'_>, pid: &str, id: &str) -> Checked {
    let asked = ["ctl", pid, "holders", id, "--json", "--yes"];
    let output = running.java.lucce().run(&asked)?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let all: Result<Vec<Value>, _> = lines.lines().map(serde_json::from_str).collect();
    let all = all.map_err(|error| format!("{error}\n{lines}"))?;
    // The VM makes objects at this line, too, when it loads a class. They share the limit of a search.
    let share = MAX_OBJECTS / all.len().max(1) as u64;
    for (class, field, least) in BOTH {
        let found: Vec<_> = all.iter().filter(|of| of["class"] == class).collect();
        ensure(found.len() == 1, || lines.clone())?;
        held_by((class, field, least.min(share)), found[0])?;
    }
    let text = running.java.lucce().text(0, &asked[..4])?;
    ensure(
        [LEAKING, CACHED].iter().all(|class| {
            text.lines()
                .any(|line| line.starts_with(&format!("{class}: ")))
        }) && text.matches("the JVM stood still for").count() == 1,
        || text.clone(),
    )
}

/// All paths lead from one static field to objects of one type.
fn held_by((class, field, least): (&str, &str, u64), found: &Value) -> Checked {
    let told = || format!("{class}: {found:#}");
    let number = |of: &Value| of.as_u64().unwrap_or(0);
    let paths = found["paths"].as_array().cloned().unwrap_or_default();
    let is_so = |path: &Value| {
        let links = links(path);
        links[0].starts_with(&format!("static io.lucce.programs.{field}: "))
            && links
                .last()
                .is_some_and(|link| link.ends_with(&format!(": {class}")))
    };
    let held: u64 = paths.iter().map(|path| number(&path["objects"])).sum();
    ensure(found["class"] == class && paths.iter().all(is_so), told)?;
    // Some may have died when they were chosen; each of the others is told of.
    let looked_for = number(&found["looked_for"]);
    let rest = number(&found["not_held"]) + number(&found["changed"]);
    let unfinished = found["unfinished"].as_array().map_or(1, Vec::len) as u64;
    ensure(looked_for <= 8 && held >= least, told)?;
    ensure(unfinished == 0 && held + rest == looked_for, told)?;
    ensure(number(&found["followed"]) >= number(&found["alive"]), told)
}

/// What is no context of this run.
fn refused(running: &Running<'_>, pid: &str) -> Checked {
    for id in ["lucce:0123456789abcdef:0x1", "0x7", "no number"] {
        let output = running.java.lucce().run(&["ctl", pid, "holders", id])?;
        ensure(output.status.code() == Some(2), || {
            format!("{id}: {output:?}")
        })?;
    }
    Ok(())
}
