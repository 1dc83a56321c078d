//! Logs that were cut, corrupted, or are none: exit code 3, the offset and the reason, no panic.

use std::fs;
use std::path::Path;

use lucce_tests::{Checked, Java, Lucce, Setup, ensure};

use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    vec![
        test("damage::cut_anywhere", false, || cut(setup)),
        test("damage::corrupt_anywhere", false, || corrupt(setup)),
        test("damage::flipped_anywhere", true, || flipped(setup)),
        test("damage::foreign", true, || foreign(setup)),
    ]
}

const VERBS: [&str; 4] = ["stats", "report", "check", "export"];

/// A log of a real run, as bytes.
fn log(setup: &Setup, java: &Java) -> Result<Vec<u8>, String> {
    java.run()?.expect(0)?;
    Lucce::new(setup).text(0, &["report", &java.log().to_string_lossy()])?;
    fs::read(java.log()).map_err(|e| e.to_string())
}

fn cut(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "cut")
        .agent("events=alloc")
        .main(["io.lucce.programs.Lambdas"]);
    let whole = log(setup, &java)?;
    for percent in [3, 20, 50, 80, 99] {
        let length = whole.len() * percent / 100;
        every_verb(
            setup,
            &java,
            &whole[..length],
            &format!("cut at {percent} %"),
            &[0, 3],
        )?;
    }
    java.clean();
    Ok(())
}

fn corrupt(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "corrupt")
        .agent("events=alloc")
        .main(["io.lucce.programs.Lambdas"]);
    let whole = log(setup, &java)?;
    for percent in [5, 25, 60] {
        let mut bytes = whole.clone();
        let at = whole.len() * percent / 100;
        // Long enough to hit something that is in use.
        bytes[at..at + 8192].fill(0xa5);
        every_verb(
            setup,
            &java,
            &bytes,
            &format!("corrupt at {percent} %"),
            &[3],
        )?;
    }
    java.clean();
    Ok(())
}

/// One bit of a log that its JVM has ended: the answer is the same, or the damage is told.
fn flipped(setup: &Setup) -> Checked {
    const FLIPS: usize = 40;
    let java = Java::new_light(setup, setup.jdk(), "flipped")
        .agent("events=alloc+lock")
        .main(["io.lucce.programs.Lambdas"]);
    let whole = log(setup, &java)?;
    let path = java.folder().join("flipped.lucce");
    let report = |bytes: &[u8]| {
        fs::write(&path, bytes).map_err(|e| e.to_string())?;
        let path = path.to_string_lossy();
        let output = Lucce::new(setup).run(&["report", "--top", "0", "--json", &path])?;
        Ok::<_, String>((output.status.code(), output.stdout))
    };
    let (code, answer) = report(&whole)?;
    ensure(code == Some(0), || format!("the whole log: {code:?}"))?;
    let mut noticed = 0;
    for number in 0..FLIPS {
        let mut bytes = whole.clone();
        let at = whole.len() * number / FLIPS;
        bytes[at] ^= 1 << (number % 8);
        let (code, now) = report(&bytes)?;
        match code {
            Some(0) => ensure(now == answer, || {
                format!("bit {} of byte {at} was not noticed", number % 8)
            })?,
            Some(3) => noticed += 1,
            code => return Err(format!("byte {at}: {code:?}")),
        }
    }
    ensure(noticed > FLIPS / 4, || {
        format!("{noticed} of {FLIPS} were noticed")
    })?;
    java.clean();
    Ok(())
}

fn every_verb(setup: &Setup, java: &Java, bytes: &[u8], what: &str, codes: &[i32]) -> Checked {
    let path = java.folder().join("damaged.lucce");
    fs::write(&path, bytes).map_err(|e| e.to_string())?;
    VERBS.iter().try_for_each(|verb| {
        let code = ended(setup, verb, &path)?;
        ensure(codes.contains(&code.0), || {
            format!("{what}: lucce {verb} ended with {}: {}", code.0, code.1)
        })?;
        let told = code.0 != 3 || code.1.contains("offset");
        ensure(told, || {
            format!("{what}: lucce {verb} names no offset: {}", code.1)
        })
    })
}

/// Exit code and what it said; a panic would be 101.
fn ended(setup: &Setup, verb: &str, path: &Path) -> Result<(i32, String), String> {
    let output = Lucce::new(setup).run(&[verb, &path.to_string_lossy()])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.code().unwrap_or(-1), said))
}

fn foreign(setup: &Setup) -> Checked {
    let folder = setup.scratch.join("foreign");
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let images: [(&str, &[u8]); 3] = [
        ("empty", b""),
        ("text", b"not a log\n"),
        ("zeros", &[0; 70_000]),
    ];
    for (name, bytes) in images {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|e| e.to_string())?;
        for verb in VERBS {
            let (code, said) = ended(setup, verb, &path)?;
            ensure(code == 3 && said.lines().count() == 1, || {
                format!("{name}: lucce {verb}: {code}: {said}")
            })?;
        }
    }
    fs::remove_dir_all(&folder).map_err(|e| e.to_string())
}
