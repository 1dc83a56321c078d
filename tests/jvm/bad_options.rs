//! Options that the agent does not take: the JVM does not start, and one line says why.

use lucce_tests::{Checked, Java, LAB_OPTIONS, Setup};

use crate::{Test, test};

/// Options, and what the line must name.
const BAD: [(&str, &[&str]); 27] = [
    ("evnts=alloc", &["'evnts'", "'events'"]),
    ("events=aloc", &["'aloc'", "'alloc'"]),
    ("log=wran", &["'wran'", "'warn'"]),
    ("verify", &["'verify'"]),
    ("verify=-1", &["verify=-1"]),
    ("verify=often", &["verify=often"]),
    ("limit=5x", &["limit=5x"]),
    ("burst=2ms", &["burst=2ms", "ON/PERIOD"]),
    (
        "burst=2ms/2ms",
        &["burst=2ms/2ms", "shorter than its period"],
    ),
    ("burst=1ms/9ms,events=leak", &["burst=", "events=leak"]),
    ("encoding=statc", &["'statc'", "'static'"]),
    ("encoding=static", &["graph=FILE"]),
    ("graph=a.lucce", &["encoding=static"]),
    ("tracking=ccct", &["'ccct'", "'cct'"]),
    ("tracking=papr", &["'papr'", "'paper'"]),
    ("calls=on,tracking=cct", &["calls=on", "tracking=lazy"]),
    ("instrument=ap", &["'ap'", "'app'"]),
    ("include=org/h2/*", &["include", "'org/h2/*'", "dots"]),
    ("exclude=a.B+", &["exclude", "''", "empty"]),
    ("calls=on,exclude=a.*", &["calls=on", "all classes"]),
    (
        "strict=on,out=/no/such/folder/a.lucce",
        &["/no/such/folder/a.lucce"],
    ),
    ("out=/dev/full,strict=on", &["/dev/full"]),
    ("strict=on,limit=1k", &["no room"]),
    ("strict=yes", &["'yes'", "'off'"]),
    ("only=a/B", &["only", "'a/B'", "dots"]),
    (
        "out=%{LUCCE_NO_SUCH_VARIABLE}.lucce",
        &["LUCCE_NO_SUCH_VARIABLE", "not set"],
    ),
    ("out=a%q", &["a%q"]),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let tests = BAD.iter().enumerate().map(|(number, (options, named))| {
        let name = format!("bad_options::{options}");
        test(name, number == 0, move || {
            refused(setup, number, options, named)
        })
    });
    let of_lab = LAB_OPTIONS.map(|option| {
        let name = format!("bad_options::without_lab::{option}");
        test(name, option == LAB_OPTIONS[0], move || {
            without_lab(setup, option)
        })
    });
    tests.chain(of_lab).collect()
}

/// The agent does not follow what only the lab's agent can. It names that library, and the program runs as without an agent.
fn without_lab(setup: &Setup, option: &str) -> Checked {
    let java = Java::new(setup, setup.jdk(), &format!("without-lab-{option}"));
    let log = java.log();
    let mut options = format!("out={},{option}", log.display());
    if option == "encoding=static" {
        options.push_str(",graph=a.lucce");
    }
    let agent = format!("-agentpath:{}={options}", setup.agent.display());
    let java = java.flags([agent]).main(["io.lucce.programs.Lambdas"]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.stdout.contains("contexts"), "the program must run")?;
    let lines = ended.agent_lines();
    let expected = format!("lucce: {option} needs liblucce-lab.so");
    ended.ensure(
        lines.len() == 1 && lines[0].starts_with(&expected),
        "one line names the library",
    )?;
    ended.ensure(!log.exists(), "there must be no log")?;
    java.clean();
    Ok(())
}

fn refused(setup: &Setup, number: usize, options: &str, named: &[&str]) -> Checked {
    let java = Java::new(setup, setup.jdk(), &format!("bad-{number}"));
    let java = java.agent(options).main(["io.lucce.programs.Lambdas"]);
    let ended = java.run()?;
    ended.ensure(
        ended.code.is_some_and(|code| code != 0),
        "the JVM must not start",
    )?;
    ended.ensure(
        !ended.stdout.contains("contexts"),
        "the program must not run",
    )?;
    let lines = ended.agent_lines();
    ended.ensure(lines.len() == 1, "one line says why")?;
    let names_all = named.iter().all(|name| lines[0].contains(name));
    ended.ensure(
        names_all,
        &format!("the line names {}", named.join(" and ")),
    )?;
    java.clean();
    Ok(())
}
