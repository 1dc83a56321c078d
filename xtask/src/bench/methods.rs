//! Named methods: what counting and timing 1 to 1,000 methods costs, beside Flight Recorder (JDK 25).
//!
//! Each program calls its methods in turns, ten million times a second or less often, always equally many times. So whole
//! processes are compared.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use lucce_bench::{Program, Report};

use super::measured;
use super::method_variants::{PROGRAMS, class_name};
use super::options::BenchOptions;
use crate::tools;

/// Iterations of these loops in a process.
const WORK: u64 = 3_000_000_000;

/// # Errors
/// There is no such JDK, or it does not compile the programs.
pub fn run(options: &BenchOptions) -> Result<Report, String> {
    let jdk = options.jdk()?;
    let folder = options.out.join("methods");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut programs = Vec::new();
    for (methods, loops) in PROGRAMS {
        let name = class_name(methods, loops);
        if !options.names.is_empty() && !options.names.contains(&name) {
            continue;
        }
        compile_program(&jdk.tool("javac"), &folder, (methods, loops))?;
        programs.push(Program {
            command: options.command(
                &jdk,
                vec!["-cp".into(), folder.clone().into(), name.clone().into()],
            ),
            name,
            whole: true,
            turns: false,
            warm_up: None,
        });
    }
    Ok(measured(&options.plan(programs), "methods", &options.out))
}

fn compile_program(
    javac: &Path,
    folder: &Path,
    (methods, loops): (usize, u32),
) -> Result<(), String> {
    let name = class_name(methods, loops);
    let file = folder.join(format!("{name}.java"));
    let source = program_source(methods, loops);
    fs::write(&file, source).map_err(|e| format!("{}: {e}", file.display()))?;
    tools::run(Command::new(javac).arg("-d").arg(folder).arg(&file))
}

fn program_source(methods: usize, loops: u32) -> String {
    let name = class_name(methods, loops);
    let rounds = WORK / u64::from(loops) / methods as u64;
    let mut text = format!("public class {name} {{\n  static class Methods {{\n");
    for method in 0..methods {
        let _ = writeln!(
            text,
            "    static long m{method}(long x) {{ for (int i = 0; i < {loops}; i++) {{ x ^= x << 13; x ^= x >>> 7; }} return x; }}"
        );
    }
    text += "  }\n";
    // Groups of 100: a method that calls 1,000 is too large for the compiler.
    for group in 0..methods.div_ceil(100) {
        let _ = write!(text, "  static long group{group}(long x) {{");
        for method in (group * 100..methods).take(100) {
            let _ = write!(text, " x = Methods.m{method}(x);");
        }
        text += " return x; }\n";
    }
    let _ = write!(
        text,
        "  public static void main(String[] args) {{\n    long x = 1;\n    for (long i = 0; i < {rounds}L; i++) {{"
    );
    for group in 0..methods.div_ceil(100) {
        let _ = write!(text, " x = group{group}(x);");
    }
    text + " }\n    System.out.println(x);\n  }\n}\n"
}
