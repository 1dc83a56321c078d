//! The plan that hooks everything.

use lucce_bytecode::{
    AllocationOpcode, ClassFile, ClassFileMethod, ClassPlan, CodeInsertion, CodeScan, EntryHook,
    HelperMethod, MethodCall, MethodPlan, NewField, RewrittenClass, rewrite, rewrite_all_wide,
};

const HOOKS: &str = "lucce/Hooks";

pub const fn hook(name: &'static str, descriptor: &'static str) -> HelperMethod<'static> {
    HelperMethod {
        class: HOOKS,
        name,
        descriptor,
    }
}

pub const MARK: HelperMethod<'_> = hook("mark", "(JI)V");
pub const MARK_TWO: HelperMethod<'_> = hook("markTwo", "(JII)V");
pub const BEFORE: HelperMethod<'_> = hook("before", "(J)V");
pub const ALLOC: HelperMethod<'_> = hook("alloc", "(JI)V");
pub const ARRAY: HelperMethod<'_> = hook("array", "(Ljava/lang/Object;JI)V");
pub const ALLOC_KEEPING: HelperMethod<'_> = hook("alloc", "(JIJ)J");
pub const ARRAY_KEEPING: HelperMethod<'_> = hook("array", "(Ljava/lang/Object;JIJ)J");
pub const INT: HelperMethod<'_> = hook("number", "(IJI)V");
pub const LONG: HelperMethod<'_> = hook("number", "(JJI)V");
pub const PAIR: HelperMethod<'_> = hook("pair", "(IIJI)V");
pub const CURRENT: HelperMethod<'_> = hook("current", "(JI)J");
pub const CONCAT: HelperMethod<'_> = hook(
    "concat",
    "(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;",
);

/// A field that classes of programs get.
const FIELD: NewField<'_> = NewField {
    name: "$kept",
    descriptor: "J",
    access: 0x1082,
};

/// Hooks at every place that can have one.
pub fn everything(class: &ClassFile<'_>) -> ClassPlan<'static> {
    let mut plan = ClassPlan::default();
    for (index, method) in class.methods().iter().enumerate() {
        let Some(code) = &method.code else { continue };
        // An empty finalizer must stay empty: other code makes every object finalizable.
        if method.name == "finalize" && code.bytes.len() == 1 {
            continue;
        }
        let scan = class.scan_code(code).expect("sound code");
        let mut planned = method_plan(index, method, &scan);
        if has_field(class) {
            planned.inserts.extend(around_field(class, method, &scan));
            planned.inserts.sort_by_key(|(bci, _)| *bci);
        }
        plan.methods.insert(index, planned);
    }
    plan.fields.extend(has_field(class).then_some(FIELD));
    plan
}

/// Whether it is a class of a program. The VM knows the fields of some classes of the JDK.
fn has_field(class: &ClassFile<'_>) -> bool {
    const INTERFACE_OR_MODULE: u16 = 0x8200;
    const JDK: [&str; 6] = ["java/", "javax/", "jdk/", "sun/", "com/sun/", "org/"];
    class.access() & INTERFACE_OR_MODULE == 0
        && !JDK.iter().any(|prefix| class.name().starts_with(prefix))
}

/// What reads and writes the field, at some calls of instance methods.
fn around_field(
    class: &ClassFile<'_>,
    method: &ClassFileMethod<'_>,
    scan: &CodeScan<'_>,
) -> Vec<(u16, CodeInsertion<'static>)> {
    const STATIC: u16 = 0x0008;
    const INVOKEVIRTUAL: u8 = 182;
    let field = FIELD.name;
    let of_this = method.access & STATIC == 0 && method.name != "<init>";
    let takes_one = |call: &MethodCall<'_>| {
        let one = ["(Ljava/lang/Object;)", "(I)", "(Ljava/lang/String;)"];
        one.iter().any(|one| call.descriptor.starts_with(one))
    };
    let mut inserts = Vec::new();
    for (n, call) in scan.calls.iter().enumerate() {
        let site = n as i32 * 77;
        if of_this && n % 16 == 3 {
            let helper = LONG;
            let read = CodeInsertion::MarkOwnField {
                helper,
                site,
                field,
            };
            let helper = CURRENT;
            let written = CodeInsertion::AfterStore {
                helper,
                site,
                field,
            };
            inserts.extend([(call.bci, read), (call.bci, written)]);
        }
        if call.opcode == INVOKEVIRTUAL && call.owner == class.name() && takes_one(call) {
            let helper = LONG;
            let read = CodeInsertion::MarkReceiverField {
                helper,
                site,
                field,
            };
            inserts.push((call.bci, read));
        }
    }
    inserts
}

fn method_plan(
    index: usize,
    method: &ClassFileMethod<'_>,
    scan: &CodeScan<'_>,
) -> MethodPlan<'static> {
    let is_constructor = method.name == "<init>";
    MethodPlan {
        entry: Some(entry(index)),
        begin: match index % 3 {
            0 => vec![mark(index)],
            1 => vec![mark(index), mark(index + 1)],
            _ => Vec::new(),
        },
        exit: Some(hook("exit", "(J)V")),
        unwind: (!is_constructor).then_some(hook("unwind", "(J)V")),
        inserts: inserts(scan),
    }
}

fn mark(index: usize) -> CodeInsertion<'static> {
    CodeInsertion::Mark {
        helper: MARK,
        site: index as i32,
    }
}

pub fn entry(index: usize) -> EntryHook<'static> {
    if index.is_multiple_of(2) {
        EntryHook {
            helper: hook("enter", "()J"),
            argument: None,
        }
    } else {
        EntryHook {
            helper: hook("enter", "(I)J"),
            argument: Some(index as i32 * 1000),
        }
    }
}

fn inserts(scan: &CodeScan<'_>) -> Vec<(u16, CodeInsertion<'static>)> {
    let mut inserts = Vec::new();
    for (n, call) in scan.calls.iter().enumerate() {
        let site = n as i32 * 77;
        let is_constructor = call.name == "<init>";
        let returns_array = call.descriptor.contains(")[") || call.descriptor.contains(")L");
        inserts.push((call.bci, call_insert(call, n, site)));
        // Not at all of them: some methods of the tests are as long as may be.
        if n % 8 == 6 {
            let numbers = around_numbers(&call.descriptor, site);
            inserts.extend(numbers.map(|insert| (call.bci, insert)));
        }
        if returns_array && !is_constructor && n.is_multiple_of(5) {
            inserts.push((
                call.bci,
                CodeInsertion::AfterDup {
                    helper: ARRAY,
                    site,
                },
            ));
        }
    }
    for (n, alloc) in scan.allocations.iter().enumerate() {
        let site = n as i32 - 1;
        // Before a `new`, too: the types in frames name the instruction itself.
        inserts.push((alloc.bci, CodeInsertion::Mark { helper: MARK, site }));
        inserts.push((
            alloc.bci,
            match alloc.kind {
                AllocationOpcode::New if n % 4 == 1 => CodeInsertion::AfterKeeping {
                    helper: ALLOC_KEEPING,
                    site,
                    kept: (n % 3) as u8,
                },
                AllocationOpcode::NewArray | AllocationOpcode::ANewArray if n % 4 == 3 => {
                    CodeInsertion::AfterKeeping {
                        helper: ARRAY_KEEPING,
                        site,
                        kept: (n % 2) as u8,
                    }
                }
                AllocationOpcode::New => CodeInsertion::After {
                    helper: ALLOC,
                    site,
                },
                _ => CodeInsertion::AfterDup {
                    helper: ARRAY,
                    site,
                },
            },
        ));
    }
    inserts.sort_by_key(|(bci, _)| *bci);
    inserts
}

/// What sees the last two arguments of a call if they are ints, and what it returned if that is a number.
fn around_numbers(descriptor: &str, site: i32) -> impl Iterator<Item = CodeInsertion<'static>> {
    let takes_two = descriptor.contains("II)") && !descriptor.contains("[II)");
    let pair = takes_two.then_some(CodeInsertion::MarkPair { helper: PAIR, site });
    let returned = match descriptor.rsplit_once(')') {
        Some((_, "I")) => Some(CodeInsertion::AfterDup { helper: INT, site }),
        Some((_, "J")) => Some(CodeInsertion::AfterDup2 { helper: LONG, site }),
        _ => None,
    };
    pair.into_iter().chain(returned)
}

fn call_insert(
    call: &lucce_bytecode::MethodCall<'_>,
    n: usize,
    site: i32,
) -> CodeInsertion<'static> {
    if call.owner == "Site" && call.name == "current" {
        return CodeInsertion::ReplaceWithContext {
            helper: CURRENT,
            site: 42,
        };
    }
    if call.owner == "java/lang/String" && call.name == "concat" {
        return CodeInsertion::Redirect { helper: CONCAT };
    }
    match n % 3 {
        0 => CodeInsertion::Mark { helper: MARK, site },
        1 => CodeInsertion::MarkTwo {
            helper: MARK_TWO,
            site,
            inner: 7,
        },
        _ => CodeInsertion::Before { helper: BEFORE },
    }
}

pub fn rewrite_everything(bytes: &[u8]) -> RewrittenClass {
    let class = ClassFile::parse(bytes).expect("a sound class");
    rewrite(&class, &everything(&class)).unwrap_or_else(|e| panic!("{}: {e}", class.name()))
}

pub fn rewrite_everything_wide(bytes: &[u8]) -> RewrittenClass {
    let class = ClassFile::parse(bytes).expect("a sound class");
    rewrite_all_wide(&class, &everything(&class))
        .unwrap_or_else(|e| panic!("{}: {e}", class.name()))
}
