//! Classes as large as the format allows: what is done to them takes time in proportion to their size.

use std::time::Duration;

use lucce_bytecode::{ClassFile, ClassPlan, MethodPlan, rewrite, rewrite_all_wide};

use crate::assembled::{Assembler, Body, u2};
use lucce_classkit::plans::{entry, rewrite_everything};

/// Far more than it takes, and far less than a number that grows with the square.
const ENOUGH: Duration = Duration::from_secs(4);

fn in_time(name: &str, run: impl FnOnce()) {
    let start = worked();
    run();
    let taken = worked() - start;
    assert!(taken < ENOUGH, "{name}: {taken:?}");
}

/// What this thread has had of a processor: how long it had to wait for one is none of its business.
fn worked() -> Duration {
    const TICKS: u64 = 100;
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux");
    let (_, behind_the_name) = stat.rsplit_once(')').expect("a name in brackets");
    let words: Vec<u64> = behind_the_name
        .split(' ')
        .map(|word| word.parse().unwrap_or(0))
        .collect();
    // `utime` and `stime`, 14th and 15th of all, the first of which has gone with the name.
    Duration::from_millis((words[12] + words[13]) * 1000 / TICKS)
}

/// 15,000 targets of a switch, and lines that all begin inside of it.
#[test]
fn lines_inside_a_long_instruction() {
    let mut code = vec![3, 170, 0, 0];
    code.extend(60_019_u32.to_be_bytes());
    code.extend([0; 4]);
    code.extend(15_000_u32.to_be_bytes());
    code.resize(1 + 3 + 12 + 60_004, 0);
    for at in (16..code.len()).step_by(4) {
        code[at..at + 4].copy_from_slice(&60_019_u32.to_be_bytes());
    }
    code.push(177);
    let mut lines = u2(65_535).to_vec();
    for n in 0..65_535 {
        lines.extend(u2(60_000 - n % 7));
        lines.extend(u2(n));
    }
    let mut asm = Assembler::new("Lines", 48);
    let attributes = vec![("LineNumberTable", lines)];
    let body = Body {
        code,
        attributes,
        ..Body::default()
    };
    for n in 0..8 {
        asm.method(&format!("m{n}"), "()V", &body);
    }
    let bytes = asm.finish();
    in_time("lines", || {
        assert!(rewrite_everything(&bytes).skipped.is_empty())
    });
}

/// `iload_0; ifeq next` as often as it fits, with a frame each.
fn branches(frames: impl FnMut(usize) -> Vec<u8>) -> Body {
    const BRANCHES: usize = 12_000;
    let mut code = vec![3, 59];
    code.extend([26, 153, 0, 3].repeat(BRANCHES));
    code.push(177);
    let mut table = u2(BRANCHES).to_vec();
    table.extend((0..BRANCHES).flat_map(frames));
    Body {
        code,
        frames: Some(table),
        locals: 65_000,
        ..Body::default()
    }
}

/// The bci of the first frame, else the distance from the one before.
fn delta(n: usize) -> u8 {
    if n == 0 { 6 } else { 3 }
}

fn without_a_new_local(class: &ClassFile<'_>) -> ClassPlan<'static> {
    let all = 0..class.methods().len();
    ClassPlan {
        methods: all.map(|at| (at, MethodPlan::default())).collect(),
        ..ClassPlan::default()
    }
}

/// Frames with all locals, or with few of many.
#[test]
fn frames_of_many_variables() {
    let same = branches(|n| match n {
        0 => vec![252, 0, 6, 1],
        n => vec![delta(n)],
    });
    // All locals are ints from the first frame on; then nothing changes.
    let full = branches(|n| match n {
        0 => [&[255, 0, 6][..], &u2(65_000), &[1; 65_000], &[0, 0]].concat(),
        n => vec![delta(n)],
    });
    // The last local comes and goes.
    let coming = branches(|n| match n {
        0 => [&[255, 0, 6][..], &u2(64_999), &[1; 64_999], &[0, 0]].concat(),
        n if n % 2 == 0 => vec![250, 0, 3],
        _ => vec![252, 0, 3, 1],
    });
    for (name, body) in [("same", same), ("full", full), ("coming", coming)] {
        let mut asm = Assembler::new("Frames", 52);
        for n in 0..4 {
            asm.method(&format!("m{n}"), "()V", &body);
        }
        let bytes = asm.finish();
        in_time(name, || drop(rewrite_everything(&bytes)));
        let class = ClassFile::parse(&bytes).expect("sound");
        for rewrite in [rewrite, rewrite_all_wide] {
            in_time(name, || drop(rewrite(&class, &without_a_new_local(&class))));
            let mut plan = without_a_new_local(&class);
            for method in plan.methods.values_mut() {
                method.entry = Some(entry(0));
            }
            in_time(name, || drop(rewrite(&class, &plan)));
        }
    }
}

/// Each widened branch puts another one out of reach.
#[test]
fn branches_that_widen_each_other() {
    const HALF: usize = 8100;
    // `goto` to just the farthest place: each jumps over all that follow.
    let mut code = Vec::new();
    for n in 0..HALF {
        let target = 32_767_usize.min(4 * HALF + 2 * (n / 2) - 4 * n);
        code.extend([3, 153]);
        code.extend(u2(target.saturating_sub(1)));
    }
    code.extend(vec![0; 33_000]);
    code.push(177);
    let mut asm = Assembler::new("Wide", 48);
    asm.method(
        "run",
        "()V",
        &Body {
            code,
            ..Body::default()
        },
    );
    let bytes = asm.finish();
    in_time("widening", || drop(rewrite_everything(&bytes)));
}
