//! Perfetto's own description of its traces, of its package for Python, by Google's decoder.

use std::path::Path;

use serde_json::Value;

use super::{Logs, consumers, decodes, equal, totals};
use crate::Outcome;

const PACKAGES: [&str; 2] = ["perfetto==0.59.1", "protobuf==7.36.2"];

/// Every event of the stream, with its value, on its thread's track; what lasts, as long as the log says.
pub fn events(logs: &Logs) -> Outcome {
    let options = ["--content-ids"];
    let file = logs.export(&logs.shop, "perfetto", "shop.perfetto", &options)?;
    let told = read(&file)?;
    for kind in ["alloc", "lock"] {
        let (value, count) = totals(&logs.shop, kind)?;
        let of = &told["kinds"][kind];
        equal(kind, &of["events"], &count.into())?;
        equal(kind, &of["sum"], &value.into())?;
        let lasted = if kind == "lock" { value } else { 0 };
        equal("on tracks", &of["lasted"], &lasted.into())?;
    }
    equal("command", &told["command"], &"Shop *".into())?;
    let threads = told["threads"].as_object().ok_or("no threads")?;
    let hostile = "<img src=x onerror=alert(1)></script><script>alert(2)</script>";
    for name in ["main", "pool-1-thread-2", hostile] {
        equal(name, &threads.contains_key(name), &true)?;
    }
    equal("a thread without a name", &threads.contains_key(""), &false)?;
    let contents = told["contents"].as_u64().unwrap_or_default();
    equal("content ids", &(contents > 100), &true)?;
    decodes(&logs.shop, &told["stacks"])
}

/// Without a stream: each row, with its count.
pub fn sums(logs: &Logs) -> Outcome {
    let options = ["--min-value", "0"];
    let file = logs.export(&logs.less, "perfetto", "less.perfetto", &options)?;
    let told = read(&file)?;
    let (bytes, count) = totals(&logs.less, "alloc")?;
    equal("bytes", &told["kinds"]["alloc"]["sum"], &bytes.into())?;
    equal("objects", &told["kinds"]["alloc"]["count"], &count.into())
}

fn read(file: &Path) -> Result<Value, String> {
    let mut python = consumers::python(&PACKAGES)?;
    python.arg(consumers::sources().join("perfetto_trace.py"));
    consumers::json(&mut python, file)
}
