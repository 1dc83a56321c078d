//! What must hold for any bytes: errors, never panics; and what is written can be read.

use lucce_bytecode::{
    ClassFile, Entry, Helper, Insert, MethodPlan, Plan, rewrite, rewrite_all_wide,
};

/// Parses, scans and rewrites whatever it is given, with hooks wherever the code can be scanned.
pub fn fuzz_body(bytes: &[u8]) {
    let Ok(class) = ClassFile::parse(bytes) else {
        return;
    };
    let copy = rewrite(&class, &Plan::default()).expect("nothing to do");
    assert!(copy.bytes == bytes);
    let plan = hostile_plan(&class);
    for rewritten in [rewrite(&class, &plan), rewrite_all_wide(&class, &plan)] {
        let Ok(rewritten) = rewritten else { continue };
        let class = ClassFile::parse(&rewritten.bytes).expect("what was written can be read");
        assert_eq!(class.methods().len(), plan.methods.len());
    }
}

const fn hook(name: &'static str, descriptor: &'static str) -> Helper<'static> {
    let class = "lucce/Hooks";
    Helper {
        name,
        class,
        descriptor,
    }
}

/// Plans for all methods, those without code and those that cannot be scanned included.
fn hostile_plan(class: &ClassFile<'_>) -> Plan<'static> {
    let mut plan = Plan::default();
    for (index, method) in class.methods().iter().enumerate() {
        let scan = method.code.as_ref().and_then(|code| class.scan(code).ok());
        let bcis = scan
            .iter()
            .flat_map(|scan| scan.calls.iter().map(|call| call.bci));
        let (helper, site) = (hook("mark", "(JI)V"), 1 << 20);
        let method_plan = MethodPlan {
            entry: Some(Entry {
                helper: hook("enter", "()J"),
                argument: None,
            }),
            exit: Some(hook("exit", "(J)V")),
            unwind: (method.name != "<init>").then_some(hook("unwind", "(J)V")),
            inserts: bcis
                .map(|bci| (bci, Insert::Mark { helper, site }))
                .collect(),
        };
        plan.methods.insert(index, method_plan);
    }
    plan
}
