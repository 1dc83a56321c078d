//! async-profiler's converter reads collapsed stacks. Recordings it reads by places of fields that it knows by heart, so events that have
//! the context's number, too, are none to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Logs, consumers, equal};
use crate::{Outcome, jdk, tools};

const JAR: &str = "jfr-converter-4.1.jar";

/// Stacks that it has made a page of and read from there again are those that it was given.
pub fn collapsed(logs: &Logs) -> Outcome {
    let given = logs.export(&logs.less, "collapsed", "given.collapsed", &[])?;
    let page = converted(&["-o", "html"], &given, "given.html")?;
    let back = converted(&["-o", "collapsed"], &page, "back.collapsed")?;
    let (given, back) = (stacks(&given)?, stacks(&back)?);
    equal("stacks", &back.len(), &given.len())?;
    equal("all of them", &(back == given), &true)
}

fn converted(options: &[&str], file: &Path, name: &str) -> Result<PathBuf, String> {
    let to = file.with_file_name(name);
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let mut java = jdk.light_java();
    java.arg("-jar")
        .arg(consumers::jars()?.join(JAR))
        .args(options);
    tools::run_quietly(java.arg(file).arg(&to))?;
    Ok(to)
}

/// By their frames: of equal ones the sums. The converter adds how a frame was compiled: `_[j]`.
fn stacks(file: &Path) -> Result<BTreeMap<String, u64>, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut stacks = BTreeMap::new();
    for line in text.lines() {
        let (frames, value) = line.rsplit_once(' ').ok_or(line)?;
        let frames: Vec<&str> = frames.split(';').map(plain).collect();
        let value: u64 = value.parse().map_err(|e| format!("{e}: {line}"))?;
        *stacks.entry(frames.join(";")).or_insert(0) += value;
    }
    Ok(stacks)
}

fn plain(frame: &str) -> &str {
    let marks = ["_[0]", "_[j]", "_[i]", "_[k]", "_[1]"];
    let marked = marks.iter().find_map(|mark| frame.strip_suffix(mark));
    marked.unwrap_or(frame)
}
