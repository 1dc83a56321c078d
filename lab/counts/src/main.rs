//! Fixed pieces of work, to count instructions of: `counts WORK INPUT`.
//!
//! Instructions, unlike seconds, are the same on a machine that is busy. `cargo xtask perf-check` runs
//! each piece under callgrind, which counts inside [`measured`] only, and compares with
//! `counts.txt`. Each piece checks its own result, so that nothing is counted that does not work.
//!
//! | work | input | counted |
//! |---|---|---|
//! | `rewrite` | a folder of class files | parsing, scanning and rewriting each, hooks everywhere |
//! | `encode` | recorded contexts | numbers for all events, from an empty graph |
//! | `encode-known` | recorded contexts | each context encoded again: no change of the graph is left to make |
//! | `decode` | recorded contexts | each different number back to its frames |
//! | `write` | recorded contexts | the graph's changes and counters into a log |
//! | `read` | recorded contexts | that log's items |
//!
//! `tracking-code` and `alloc-code`, of a folder of class files, print bytes of code instead: what hooks add.

mod contexts;
mod hooks;
mod log;
mod rewrite;

use std::path::Path;
use std::process::ExitCode;

use lucce_instrument::EventKindSet;
use lucce_instrument::kinds::ALLOC;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, input] = &arguments[..] else {
        eprintln!("usage: counts WORK INPUT");
        return ExitCode::from(2);
    };
    let input = Path::new(input);
    let done = match work.as_str() {
        "rewrite" => rewrite::rewrite(input),
        "encode" => contexts::encode(input),
        "encode-known" => contexts::encode_known(input),
        "decode" => contexts::decode(input),
        "write" => log::write(input),
        "read" => log::read(input),
        "tracking-code" => hooks::code_bytes(input, EventKindSet::default()),
        "alloc-code" => hooks::code_bytes(input, EventKindSet::default().with_kind(&ALLOC)),
        _ => {
            eprintln!("unknown work {work}");
            return ExitCode::from(2);
        }
    };
    println!("{done}");
    ExitCode::SUCCESS
}

/// What is counted: callgrind knows this function by its name.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
}
