//! `page-tests`: the page of `lucce view` and that of `lucce serve` in a real Chromium, driven by Playwright.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Outcome, jdk, paths, requirements, tools};

/// # Errors
/// A tool is missing, or a test failed.
pub fn tests() -> Outcome {
    requirements::check(&[requirements::PAGES])?;
    let folder = paths::target().join("page-tests");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    compile(&folder)?;
    let logs = [record(&folder, "old", 1)?, record(&folder, "one", 4)?];
    let [old, one] = &logs;
    view(&[one], &folder.join("one.html"))?;
    view(&[old, one], &folder.join("two.html"))?;
    let mut diff = Command::new(paths::lucce());
    diff.arg("diff").args([old, one]).arg("--html");
    diff.arg(folder.join("changed.html"));
    tools::run_quietly(diff.args(["--by", "type", "--per", "lock"]))?;
    let mut told = Command::new(paths::lucce());
    told.args(["diff", "--json", "--top", "0"]).args([old, one]);
    save(&mut told, &folder.join("two.json"))?;
    let leaks = folder.join("leaks.lucce");
    let mut followed = program(&folder, (&leaks, "events=leak=1k"), 24)?;
    tools::run_quietly(followed.arg("collect"))?;
    view(&[&leaks], &folder.join("leaks.html"))?;
    report((one, "alloc"), &[], &folder.join("one.json"))?;
    report((one, "lock"), &[], &folder.join("one-lock.json"))?;
    let facts = folder.join("facts.lucce");
    let events = "events=lock+thread+class+time:Shop.orders+Shop.tree";
    tools::run_quietly(&mut program(&folder, (&facts, events), 2)?)?;
    view(&[&facts], &folder.join("facts.html"))?;
    for kind in ["lock", "thread", "class", "time"] {
        let to = folder.join(format!("facts-{kind}.json"));
        report((&facts, kind), &[], &to)?;
    }
    let tags = tagged(&folder)?;
    view(&[&tags], &folder.join("tags.html"))?;
    report(
        (&tags, "alloc"),
        &["--by", "tag"],
        &folder.join("tags.json"),
    )?;
    let shop = record_shop(&folder)?;
    view(&[&shop], &folder.join("shop.html"))?;
    for kind in ["alloc", "lock", "exception", "request"] {
        let to = folder.join(format!("shop-{kind}.json"));
        report((&shop, kind), &["--by", "request"], &to)?;
    }
    let live = Live::start(&folder)?;
    let mut node = Command::new("node");
    node.arg("--test")
        .arg(sources().join("view.test.mjs"))
        .arg(sources().join("shop.test.mjs"))
        .arg(sources().join("serve.test.mjs"));
    node.env("PAGES", &folder)
        .env("REQUESTS", SHOP_REQUESTS)
        .env("SERVED", &live.address)
        .env("PROGRAM", live.program.0.id().to_string())
        .env("CHROMIUM", browser()?)
        .env("PLAYWRIGHT", installed()?);
    tools::run(&mut node)
}

/// A program that goes on under the agent, and `lucce serve` of it. Both end with this.
struct Live {
    program: Process,
    _server: Process,
    address: String,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail for one that has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Live {
    fn start(folder: &Path) -> Result<Live, String> {
        let mut java = program(folder, (&folder.join("live.lucce"), EVENTS), 1)?;
        let (program, _) = said(java.arg("on").stdin(Stdio::piped()))?;
        let mut lucce = Command::new(paths::lucce());
        let pid = program.0.id().to_string();
        let (server, address) = said(lucce.args(["serve", &pid, "--interval", "300ms"]))?;
        Ok(Live {
            program,
            _server: server,
            address,
        })
    }
}

/// Starts it; the first line that it prints.
fn said(command: &mut Command) -> Result<(Process, String), String> {
    let started = command.stdout(Stdio::piped()).spawn();
    let mut process = Process(started.map_err(|e| format!("{command:?}: {e}"))?);
    let out = process.0.stdout.take().ok_or("no standard output")?;
    let mut line = String::new();
    let read = BufReader::new(out).read_line(&mut line);
    read.map_err(|e| format!("{command:?}: {e}"))?;
    let line = line.trim().to_owned();
    match line.is_empty() {
        true => Err(format!("{command:?} has said nothing")),
        false => Ok((process, line)),
    }
}

fn sources() -> PathBuf {
    paths::root().join("tests/browser")
}

/// The program that is recorded.
pub fn compile(folder: &Path) -> Outcome {
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let mut javac = jdk.javac();
    javac.arg("-d").arg(folder).arg(sources().join("Shop.java"));
    tools::run_quietly(&mut javac)
}

/// Runs the program under the agent; the log.
pub fn record(folder: &Path, name: &str, rounds: u32) -> Result<PathBuf, String> {
    let log = folder.join(name).with_extension("lucce");
    tools::run_quietly(&mut program(folder, (&log, EVENTS), rounds)?)?;
    Ok(log)
}

const EVENTS: &str = "events=alloc+lock,stream=on";

/// The program under the agent with these options.
fn program(folder: &Path, (log, options): (&Path, &str), rounds: u32) -> Result<Command, String> {
    let agent = paths::agent();
    let options = format!("out={},{options}", log.display());
    let mut java = jdk::compiler().ok_or("no JDK that compiles")?.light_java();
    java.arg(format!("-agentpath:{}={options}", agent.display()))
        .arg("-cp")
        .arg(folder)
        .arg("Shop")
        .arg(rounds.to_string());
    Ok(java)
}

/// Requests of each kind to the shop: what leaks is much then.
const SHOP_REQUESTS: &str = "400";

/// The log of the shop, a program with known faults.
fn record_shop(folder: &Path) -> Result<PathBuf, String> {
    let log = folder.join("shop.lucce");
    let events = "events=alloc+exception+lock+leak=4k,requests=auto";
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let mut java = jdk.light_java();
    java.arg(format!(
        "-agentpath:{}=out={},{events}",
        paths::agent().display(),
        log.display()
    ));
    // Collections that are frequent tell what lives.
    java.args(["-Xmx64m", "-jar"])
        .arg(paths::harness().join("shop/target/shop.jar"))
        .arg(format!("--shop.requests={SHOP_REQUESTS}"));
    tools::run_quietly(&mut java)?;
    Ok(log)
}

/// The log of a program that opens tags.
fn tagged(folder: &Path) -> Result<PathBuf, String> {
    let log = folder.join("tags.lucce");
    let programs = paths::harness().join("programs/target/programs.jar");
    let (agent, mut java) = (
        paths::agent(),
        jdk::compiler().ok_or("no JDK that compiles")?.light_java(),
    );
    java.arg(format!(
        "-agentpath:{}=out={}",
        agent.display(),
        log.display()
    ))
    .arg("-cp")
    .arg(programs)
    .arg("io.lucce.programs.Tags");
    tools::run_quietly(&mut java)?;
    Ok(log)
}

fn view(logs: &[&PathBuf], page: &Path) -> Outcome {
    let mut lucce = Command::new(paths::lucce());
    tools::run_quietly(lucce.arg("view").args(logs).arg("-o").arg(page))
}

fn report((log, kind): (&Path, &str), more: &[&str], to: &Path) -> Outcome {
    let mut lucce = Command::new(paths::lucce());
    let args = ["report", "--json", "--top", "0", "--event", kind];
    save(lucce.args(args).args(more).arg(log), to)
}

/// What the command prints.
fn save(command: &mut Command, to: &Path) -> Outcome {
    let said = tools::output(command)?;
    fs::write(to, said).map_err(|e| format!("{}: {e}", to.display()))
}

/// The browser that shows the pages.
///
/// # Errors
/// It is missing.
pub fn browser() -> Result<PathBuf, String> {
    requirements::browser().ok_or_else(|| "no Chromium on the PATH".to_owned())
}

/// Where playwright-core is, installed if it is not.
pub fn installed() -> Result<PathBuf, String> {
    let folder = paths::target().join("browser-tests");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(sources().join(file), folder.join(file)).map_err(|e| format!("{file}: {e}"))?;
    }
    if !folder.join("node_modules/playwright-core").exists() {
        let mut npm = Command::new("npm");
        npm.current_dir(&folder)
            .args(["ci", "--silent", "--no-audit", "--no-fund"]);
        tools::run_quietly(&mut npm)?;
    }
    Ok(folder)
}
