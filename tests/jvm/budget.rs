//! `budget=`: samples keep to the budget, and their sums are as near to the truth as reports say.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::expected::expected;
use crate::running::Running;
use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Budgeted";
const BUDGET: f64 = 10.0;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    // The JVMs that sample with and without a bias.
    let jdks = setup.jdks.iter();
    let jdks = jdks.filter(|jdk| [17, 25].contains(&jdk.version));
    let of = |jdk: &'static Jdk| {
        let quick = jdk == setup.jdk();
        let name = format!("budget::{}::estimates", jdk.version);
        test(name, quick, move || estimates(setup, jdk))
    };
    let others = [
        test("budget::attached", false, move || attached(setup)),
        test("budget::refused", false, move || refused(setup)),
    ];
    jdks.map(of).chain(others).collect()
}

/// The truth is what the program says of each line.
fn estimates(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("budget-{}", jdk.version));
    let java = java.agent("budget=10%,verify=100").main([PROGRAM, "5"]);
    let ended = java.run()?.expect(0)?;
    let said: BTreeMap<_, _> = ended.stdout.lines().filter_map(expected).collect();
    ended.ensure(said.len() == 22, "the program says what to expect")?;
    ended.ensure(
        ended
            .stderr
            .contains("budget=10%: allocations are sampled without hooks"),
        "the agent says what it chose",
    )?;
    let log = java.log();
    let log = &*log.to_string_lossy();
    let report = java
        .lucce()
        .json(&["report", "--json", "--top", "0", log])?;
    check_budget(&report)?;
    let rows = report["contexts"].as_array().ok_or("no contexts")?;
    let (mut within, mut lines) = (0, 0);
    for ((class, line), (_, truth)) in &said {
        let is_of_line = |row: &&Value| {
            let frame = &row["frames"][0];
            row["class"] == **class && frame["class"] == PROGRAM && frame["line"] == *line
        };
        let of_line: Vec<_> = rows.iter().filter(is_of_line).collect();
        let list = |key: &str| -> Vec<u64> {
            let amounts = of_line.iter().filter_map(|row| row[key].as_u64());
            amounts.collect()
        };
        let bytes: u64 = list("bytes").iter().sum();
        let errors = list("error_bytes");
        let squares: f64 = errors.iter().map(|error| (*error as f64).powi(2)).sum();
        let (error, off) = (squares.sqrt(), bytes.abs_diff(*truth) as f64);
        lines += 1;
        within += u32::from(off <= error);
        let largest = said.values().map(|(_, bytes)| *bytes).max();
        let is_near = Some(*truth) < largest || error < 0.6 * *truth as f64;
        ensure(off <= 3.0 * error && is_near, || {
            format!("line {line}: {truth} bytes, but {bytes} ±{error}")
        })?;
    }
    // 19 of 20 on the mean: the probability of fewer than 17 of 22 is below 1 in 300.
    ensure(within >= 17, || {
        format!("{within} of {lines} lines are within their errors")
    })?;
    let text = java.lucce().text(0, &["report", log])?;
    let is_told = text.contains("budget: samples may cost 10% of") && text.contains(" ±");
    ensure(is_told, || text.clone())?;
    let page = java.log().with_extension("html");
    let page = &*page.to_string_lossy();
    java.lucce().text(0, &["view", log, "-o", page])?;
    let html = std::fs::read_to_string(page).map_err(|e| e.to_string())?;
    ensure(html.contains("Budget: samples may cost 10%"), || {
        "no budget on the page".into()
    })?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// The interval has followed the load, and the agent's own measurement is within the budget.
fn check_budget(report: &Value) -> Checked {
    let budget = &report["budget"];
    let least = budget["least_bytes"].as_u64();
    let most = budget["most_bytes"].as_u64();
    let cost = budget["cost_percent"].as_f64().unwrap_or(f64::MAX);
    let is_kept = cost > BUDGET / 20.0 && cost <= BUDGET + 1.0;
    ensure(budget["percent"] == 10 && least < most && is_kept, || {
        budget.to_string()
    })
}

/// An attached agent keeps to a budget too, and the VM has its own interval afterwards.
fn attached(setup: &Setup) -> Checked {
    let java = Java::new(setup, setup.jdk(), "budget-attached").main([PROGRAM, "200"]);
    let mut jvm = Running::with_line(java, "started")?;
    let (pid, log) = (jvm.child.id().to_string(), jvm.java.log());
    let log = &*log.to_string_lossy();
    let lucce = jvm.java.lucce();
    lucce.text(0, &["attach", &pid, "--out", log, "--budget", "10%"])?;
    std::thread::sleep(std::time::Duration::from_secs(2));
    jvm.ctl(&["detach"])?;
    let report = lucce.json(&["report", "--json", "--top", "0", log])?;
    check_budget(&report)?;
    // Both threads' bytes, by the VM's own count.
    let percent = report["coverage"]["percent"].as_f64().unwrap_or(0.0);
    ensure((80.0..125.0).contains(&percent), || {
        report["coverage"].to_string()
    })?;
    jvm.child.kill().map_err(|e| e.to_string())?;
    jvm.child.wait().map_err(|e| e.to_string())?;
    jvm.java.clean();
    Ok(())
}

/// What samples cannot keep is refused before the program starts.
fn refused(setup: &Setup) -> Checked {
    for (options, why) in [
        ("budget=40%", "1% to 25%, which samples keep to"),
        (
            "budget=10%,events=alloc+lock",
            "budget= measures the cost of sampled allocations alone",
        ),
    ] {
        let java = Java::new(setup, setup.jdk(), "budget-refused").agent(options);
        let java = java.main([PROGRAM, "1"]);
        let ended = java.run()?.expect(1)?;
        let is_refused = ended.stderr.contains(why) && !ended.stdout.contains("started");
        ended.ensure(is_refused, why)?;
        java.clean();
    }
    Ok(())
}
