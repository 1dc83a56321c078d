//! What must hold for any bytes: errors, never panics; and what is written can be read.

use lucce_bytecode::{
    BytecodeError, BytecodeErrorKind, ClassFile, ClassPlan, CodeInsertion, EntryHook, HelperMethod,
    MethodPlan, rewrite, rewrite_all_wide,
};

/// Parses, scans and rewrites whatever it is given, with hooks wherever the code can be scanned.
pub fn fuzz_body(bytes: &[u8]) {
    let Ok(class) = ClassFile::parse(bytes) else {
        return;
    };
    let copy = rewrite(&class, &ClassPlan::default()).expect("nothing to do");
    assert!(copy.bytes == bytes);
    let plan = hostile_plan(&class);
    for rewritten in [rewrite(&class, &plan), rewrite_all_wide(&class, &plan)] {
        let Ok(rewritten) = rewritten else { continue };
        let written = ClassFile::parse(&rewritten.bytes).expect("what was written can be read");
        assert_eq!(written.methods().len(), plan.methods.len());
        check(&class, &written, &rewritten.skipped);
    }
}

/// Hooks are only in methods that keep to their limits, and those keep to their new ones: hooks can be put into
/// them once more.
fn check(class: &ClassFile<'_>, written: &ClassFile<'_>, skipped: &[(usize, BytecodeError)]) {
    let is_skipped = |index: usize| skipped.iter().any(|(skipped, _)| *skipped == index);
    let again = rewrite(written, &hostile_plan(written));
    for (index, (old, new)) in class.methods().iter().zip(written.methods()).enumerate() {
        let (Some(old), Some(new)) = (&old.code, &new.code) else {
            continue;
        };
        if is_skipped(index) {
            assert_eq!(old.bytes, new.bytes);
            assert_eq!(
                (old.max_stack, old.max_locals),
                (new.max_stack, new.max_locals)
            );
            continue;
        }
        assert!(highest_local(old.bytes) < u32::from(old.max_locals).max(1));
        let found = again.as_ref().map(|again| {
            let mut found = again.skipped.iter();
            found
                .find(|(skipped, _)| *skipped == index)
                .map(|(_, error)| error.kind)
        });
        let is_sound = match found {
            Ok(kind) => !matches!(kind, Some(BytecodeErrorKind::OutOfBounds)),
            Err(error) => error.kind != BytecodeErrorKind::OutOfBounds,
        };
        assert!(is_sound, "{}", written.methods()[index].name);
    }
}

/// The highest local variable that the instructions name, found another way than the rewriter does; 0: none.
fn highest_local(code: &[u8]) -> u32 {
    let (mut at, mut highest) = (0, 0);
    while at < code.len() {
        let word = |at: usize| {
            let bytes: [u8; 4] = code[at..at + 4].try_into().expect("four bytes");
            i32::from_be_bytes(bytes)
        };
        let (op, next) = (code[at], at + 1);
        let aligned = (at & !3) + 4;
        let is_two = |op: u8| matches!(op, 22 | 24 | 55 | 57);
        let (local, len) = match op {
            21..=25 | 54..=58 => (u32::from(code[next]) + u32::from(is_two(op)), 2),
            169 => (u32::from(code[next]), 2),
            132 => (u32::from(code[next]), 3),
            26..=45 => (
                u32::from((op - 26) % 4) + u32::from(is_two(21 + (op - 26) / 4)),
                1,
            ),
            59..=78 => (
                u32::from((op - 59) % 4) + u32::from(is_two(54 + (op - 59) / 4)),
                1,
            ),
            196 => {
                let local = u32::from(code[next + 1]) << 8 | u32::from(code[next + 2]);
                let len = if code[next] == 132 { 6 } else { 4 };
                (local + u32::from(is_two(code[next])), len)
            }
            170 => {
                let count = word(aligned + 8) - word(aligned + 4) + 1;
                (0, aligned - at + 12 + 4 * count as usize)
            }
            171 => (0, aligned - at + 8 + 8 * word(aligned + 4) as usize),
            16 | 18 | 188 => (0, 2),
            17 | 19 | 20 | 153..=168 | 178..=184 | 187 | 189 | 192 | 193 | 198 | 199 => (0, 3),
            197 => (0, 4),
            185 | 186 | 200 | 201 => (0, 5),
            _ => (0, 1),
        };
        highest = highest.max(local);
        at += len;
    }
    highest
}

const fn hook(name: &'static str, descriptor: &'static str) -> HelperMethod<'static> {
    let class = "lucce/Hooks";
    HelperMethod {
        name,
        class,
        descriptor,
    }
}

/// Plans for all methods, those without code and those that cannot be scanned included.
fn hostile_plan(class: &ClassFile<'_>) -> ClassPlan<'static> {
    let mut plan = ClassPlan::default();
    for (index, method) in class.methods().iter().enumerate() {
        let scan = method
            .code
            .as_ref()
            .and_then(|code| class.scan_code(code).ok());
        let bcis = scan
            .iter()
            .flat_map(|scan| scan.calls.iter().map(|call| call.bci));
        let (helper, site) = (hook("mark", "(JI)V"), 1 << 20);
        let method_plan = MethodPlan {
            entry: Some(EntryHook {
                helper: hook("enter", "()J"),
                argument: None,
            }),
            exit: Some(hook("exit", "(J)V")),
            begin: vec![CodeInsertion::Mark { helper, site }],
            unwind: (method.name != "<init>").then_some(hook("unwind", "(J)V")),
            inserts: bcis
                .map(|bci| (bci, CodeInsertion::Mark { helper, site }))
                .collect(),
        };
        plan.methods.insert(index, method_plan);
    }
    plan
}
