//! The code by which JDK Mission Control reads recordings.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Logs, consumers, equal, told};
use crate::{Outcome, jdk, tools};

/// What is known of a context: count, value, class, frames.
type Contexts = BTreeMap<String, (u64, u64, String, String)>;

/// Each context has the count, the sum, the class and the whole stack that `lucce report` has.
pub fn contexts(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.less, "jfr", "jmc.jfr", &["--min-value", "0"])?;
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let mut java = jdk.light_java();
    java.arg("-cp").arg(consumers::jars()?.join("*"));
    java.arg(consumers::sources().join("JmcEvents.java"));
    let said = tools::output(java.arg(&file))?;
    let said = String::from_utf8_lossy(&said);
    for kind in ["alloc", "lock"] {
        let report = ["report", "--top", "0", "--event", kind];
        let expected = reported(&told(&logs.less, &report)?)?;
        let is_alloc = kind == "alloc";
        let lines = said
            .lines()
            .filter(|line| line.starts_with("jdk.ObjectAllocationSample") == is_alloc);
        let read = read(lines)?;
        equal("contexts", &read.len(), &expected.len())?;
        for (number, context) in &expected {
            equal(number, &read.get(number), &Some(context))?;
        }
    }
    Ok(())
}

/// Of several events of a context, the sums.
fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Contexts, String> {
    let mut contexts = Contexts::new();
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[_, context, count, value, class, _, frames] = &fields[..] else {
            return Err(format!("not seven fields: {line}"));
        };
        let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{e}: {line}"));
        let own = (0, 0, class.to_owned(), frames.to_owned());
        let all = contexts.entry(format!("0x{context}")).or_insert(own);
        equal("class", &&*all.2, &class)?;
        equal("frames", &&*all.3, &frames)?;
        all.0 += number(count)?;
        all.1 += number(value)?;
    }
    Ok(contexts)
}

fn reported(report: &Value) -> Result<Contexts, String> {
    let rows = report["contexts"].as_array().ok_or("no contexts")?;
    let context = |row: &Value| {
        let id = row["id"].as_str()?.rsplit(':').next()?.to_owned();
        // A hidden class has a slash in its name, and class files have slashes where names have dots.
        let class = row["class"].as_str()?.split(' ').next()?.replace('/', ".");
        let frames: Option<Vec<String>> = row["frames"].as_array()?.iter().map(frame).collect();
        let (count, value) = (row["count"].as_u64()?, row["value"].as_u64()?);
        Some((id, (count, value, class, frames?.join(";"))))
    };
    let contexts: Option<Contexts> = rows.iter().map(context).collect();
    contexts.ok_or_else(|| "a row without its fields".to_owned())
}

/// A method that is native, or of which the line is not known, has 0 in recordings.
fn frame(frame: &Value) -> Option<String> {
    let line = frame["line"].as_i64().unwrap_or(0).max(0);
    let (class, method) = (frame["class"].as_str()?, frame["method"].as_str()?);
    Some(format!("{class}.{method}:{line}"))
}
