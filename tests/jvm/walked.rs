//! `tracking=auto`, the default: where only rare events are asked for no class has hooks, and everything else is as it is with them.

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::running::Running;
use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let of = |jdk: &'static Jdk| {
        let quick = jdk == setup.jdk();
        [
            test(
                format!("walked::{}::nothing_is_hooked", jdk.version),
                quick,
                move || nothing_is_hooked(setup, jdk),
            ),
            test(
                format!("walked::{}::controlled", jdk.version),
                quick,
                move || controlled(setup, jdk),
            ),
            test(
                format!("walked::{}::hooks_where_needed", jdk.version),
                false,
                move || hooks_where_needed(setup, jdk),
            ),
        ]
    };
    let too_many = test("walked::too_many", true, move || too_many(setup));
    let numbers = test("walked::numbers_after_detach", false, move || {
        numbers_after_detach(setup)
    });
    let tests = setup.jdks_from_11().flat_map(of);
    tests.chain([too_many, numbers]).collect()
}

fn java<'a>(setup: &'a Setup, jdk: &'a Jdk, name: &str, options: &str) -> Java<'a> {
    let java = Java::new(setup, jdk, &format!("walked-{}-{name}", jdk.version));
    java.agent(options)
}

/// Of a JVM that has ended: how many classes were rewritten.
fn rewritten(java: &Java) -> Result<u64, String> {
    let log = java.log();
    let stats = java.lucce().stats(&log)?;
    let count = stats["agent"]["classes.rewritten"].as_u64();
    count.ok_or_else(|| format!("no number of classes in {stats:#}"))
}

/// `-Xshare:on`: the VM does not start without its archive of classes, which not every image has.
fn nothing_is_hooked(setup: &Setup, jdk: &Jdk) -> Checked {
    let archive = jdk.tool("../lib/server/classes.jsa").exists();
    let share = if archive {
        "-Xshare:on"
    } else {
        "-Xshare:auto"
    };
    let options = "events=alloc=16k+leak=16k+exception,verify=1";
    let java = java(setup, jdk, "nothing", options)
        .flags([share, "-Xcheck:jni"])
        .main(["io.lucce.programs.Sampled"]);
    java.run()?.expect(0)?;
    ensure(rewritten(&java)? == 0, || "classes were rewritten".into())?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// Single allocations need hooks, with whatever they are asked for.
fn hooks_where_needed(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, "hooks", "events=alloc+exception,verify=100");
    let java = java.main(["io.lucce.programs.Sampled"]);
    java.run()?.expect(0)?;
    ensure(rewritten(&java)? > 100, || "no class was rewritten".into())?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// What needs hooks is refused; samples end and begin again; the agent can leave.
fn controlled(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(
        setup,
        jdk,
        "controlled",
        "events=alloc=64k,log=warn,verify=1",
    );
    let mut jvm = Running::of(java.main(["Forever"]))?;
    let recorded =
        |jvm: &Running| Ok::<u64, String>(jvm.ctl(&["status"])?["recorded"].as_u64().unwrap_or(0));
    jvm.until("samples are taken", |jvm| Ok(recorded(jvm)? > 0))?;
    let status = jvm.ctl(&["status"])?;
    ensure(status["attached"] == false && status["lost"] == 0, || {
        format!("{status}")
    })?;
    jvm.refused(
        &["set", "events=lock"],
        "start the JVM with events=lock, or with ctl=all",
    )?;
    jvm.refused(&["set", "events=alloc"], "start the JVM with events=alloc")?;
    jvm.ctl(&["set", "events=none"])?;
    let stopped = recorded(&jvm)?;
    jvm.works_on()?;
    ensure(recorded(&jvm)? == stopped, || "it still counts".into())?;
    jvm.ctl(&["set", "events=alloc=64k"])?;
    jvm.until(
        "samples are taken again",
        |jvm| Ok(recorded(jvm)? > stopped),
    )?;
    let last = jvm.ctl(&["detach"])?;
    let fine = last["lost"] == 0 && last["panics"] == 0;
    ensure(fine, || format!("at the end: {last}"))?;
    jvm.works_on()?;
    let java = jvm.end()?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// Samples so small that walks take more than hooks would: the user is told, once.
fn too_many(setup: &'static Setup) -> Checked {
    let java = java(setup, setup.jdk(), "too-many", "events=alloc=64");
    let mut jvm = Running::of(java.main(["Forever"]))?;
    const TOLD: &str = "hooks would take less";
    let told = |jvm: &Running| jvm.java.printed("stderr").matches(TOLD).count();
    jvm.until("the user is told", |jvm| Ok(told(jvm) > 0))?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    let text = jvm.java.printed("stderr");
    let fine = told(&jvm) == 1 && text.contains("tracking=lazy");
    ensure(fine, || text.clone())?;
    jvm.end()?.clean();
    Ok(())
}

/// If the agent has left, numbers have no frames, and there are no new ones.
fn numbers_after_detach(setup: &'static Setup) -> Checked {
    let java = java(setup, setup.jdk(), "numbers", "events=alloc=64k");
    let mut jvm = Running::of(java.main(["DetachedNumbers"]))?;
    jvm.ctl(&["detach"])?;
    jvm.until("numbers have no frames", |jvm| {
        Ok(jvm.java.printed("stdout").ends_with("detached\n"))
    })?;
    jvm.end()?.clean();
    Ok(())
}
