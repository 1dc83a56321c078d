//! `events=open`: methods that open resources (`resource_table`, and the option `resource=`), and methods that close them.
//!
//! A hook before each return of an opening method reports the object: what the method returns, else its own object. A hook at
//! the entry of a closing method reports its own object and its arguments. The agent knows which of them are open.

use lucce_bytecode::{
    ClassFile, ClassPlan, CodeInsertion, HelperMethod, MethodCall, MethodPlan, return_bcis,
};
use lucce_options::ResourceRules;

use crate::helpers::{PUBLISH, helper_of};
use crate::instrumentation::{HookPlace, HookSiteKind};
use crate::jdk::roles::role_name;
use crate::method_insertions::MethodInsertions;

use super::named_methods::{NAMED, NO_CALL};
use super::{AnalyzedMethod, EventHooks, OPEN, event_call, outside_site, resource_table};

/// The hooks of the kind.
pub(super) struct OpenHooks;

/// What a hook reports. Its number is `which` of an event call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResourceHook {
    /// The value that the method returns is open.
    OpenReturned,
    /// The method's own object is open.
    OpenThis,
    /// As [`ResourceHook::OpenThis`], at the entry of the method.
    OpenThisAtEntry,
    /// A call returns what a cleaner will close.
    OpenCalled,
    /// The object in this local may be a resource that is closed.
    Close(u8),
}

const FIRST_CLOSE: u8 = 2;
const OPEN_AT_ENTRY: u8 = u8::MAX - 1;
/// Maximum number of objects that one closing method reports.
const MAX_CLOSED: usize = 4;

impl ResourceHook {
    fn from_number(which: u8) -> ResourceHook {
        match which {
            0 => ResourceHook::OpenReturned,
            1 => ResourceHook::OpenThis,
            OPEN_AT_ENTRY => ResourceHook::OpenThisAtEntry,
            u8::MAX => ResourceHook::OpenCalled,
            close => ResourceHook::Close(close - FIRST_CLOSE),
        }
    }

    fn number(self) -> u8 {
        match self {
            ResourceHook::OpenReturned => 0,
            ResourceHook::OpenThis => 1,
            ResourceHook::OpenThisAtEntry => OPEN_AT_ENTRY,
            ResourceHook::OpenCalled => u8::MAX,
            ResourceHook::Close(local) => FIRST_CLOSE + local,
        }
    }

    /// Its code then runs once, also where the method jumps back to its first instruction.
    fn runs_at_entry(self) -> bool {
        matches!(self, ResourceHook::OpenThisAtEntry | ResourceHook::Close(_))
    }

    fn insertion(
        self,
        [opens, closes]: [HelperMethod<'static>; 2],
        site: i32,
    ) -> CodeInsertion<'static> {
        let of_local = |helper, local| CodeInsertion::MarkLocal {
            helper,
            site,
            local,
        };
        match self {
            ResourceHook::OpenReturned => CodeInsertion::MarkTop {
                helper: opens,
                site,
            },
            ResourceHook::OpenThis | ResourceHook::OpenThisAtEntry => of_local(opens, 0),
            ResourceHook::OpenCalled => CodeInsertion::AfterDup {
                helper: opens,
                site,
            },
            ResourceHook::Close(local) => of_local(closes, local),
        }
    }
}

const ABSTRACT_OR_NATIVE: u16 = 0x0500;

/// The hooks of a method, each with its bci. `site`: of a hook.
fn find_insertions(
    at: &AnalyzedMethod<'_>,
    helpers: [HelperMethod<'static>; 2],
    site: impl Fn(ResourceHook) -> i32,
) -> MethodInsertions {
    let mut insertions = MethodInsertions::default();
    for (bci, hook) in find_hooks(at) {
        let insertion = hook.insertion(helpers, site(hook));
        insertions.add_hooks(vec![(bci, insertion)], hook.runs_at_entry());
    }
    insertions
}

/// The hooks of a method, each with its bci.
fn find_hooks(at: &AnalyzedMethod<'_>) -> Vec<(u16, ResourceHook)> {
    let method = at.method;
    let Some(code) = method.code.as_ref() else {
        return Vec::new();
    };
    if method.access & ABSTRACT_OR_NATIVE != 0 {
        return Vec::new();
    }
    let mut hooks = Vec::new();
    if resource_table::opens(at)
        && let Some(hook) = opening_hook(at)
    {
        let returns = return_bcis(code.bytes).into_iter();
        hooks.extend(returns.map(|bci| (bci, hook)));
    }
    if resource_table::opens_at_entry(at) && !method.is_static() {
        hooks.push((0, ResourceHook::OpenThisAtEntry));
    }
    // In a constructor, the object is not initialized yet.
    if method.name != "<init>" && resource_table::closes(at) {
        let objects = object_locals(&method.descriptor, method.is_static()).into_iter();
        let objects = objects.take(MAX_CLOSED);
        hooks.extend(objects.map(|local| (0, ResourceHook::Close(local))));
    }
    hooks
}

fn opening_hook(at: &AnalyzedMethod<'_>) -> Option<ResourceHook> {
    match at.method.descriptor.split_once(')')?.1 {
        result if result.starts_with('L') => Some(ResourceHook::OpenReturned),
        // A method may use the variable of `this` for another value.
        "V" => (!at.method.is_static() && !at.scan.writes_first_local)
            .then_some(ResourceHook::OpenThis),
        _ => None,
    }
}

/// The locals that hold objects at the entry of a method: `this` and arguments.
fn object_locals(descriptor: &str, is_static: bool) -> Vec<u8> {
    let mut locals = Vec::new();
    let mut next = 0_u8;
    if !is_static {
        locals.push(next);
        next += 1;
    }
    let mut rest = descriptor.strip_prefix('(').unwrap_or_default();
    while let Some(first) = rest.chars().next().filter(|first| *first != ')') {
        let elements = rest.trim_start_matches('[');
        let length = match elements.starts_with('L') {
            true => elements.find(';').map_or(elements.len(), |end| end + 1),
            false => 1,
        };
        if first == 'L' {
            locals.push(next);
        }
        next = next.saturating_add(if matches!(first, 'J' | 'D') { 2 } else { 1 });
        rest = elements.get(length..).unwrap_or_default();
    }
    // Further hooks would have no number.
    locals.retain(|local| *local < OPEN_AT_ENTRY - FIRST_CLOSE);
    locals
}

impl EventHooks for OpenHooks {
    fn call_site_kind(
        &self,
        at: &AnalyzedMethod<'_>,
        call: &MethodCall<'_>,
    ) -> Option<HookSiteKind> {
        resource_table::registers_cleaner(at, call)
            .then(|| HookSiteKind::EventCall(event_call(&OPEN, ResourceHook::OpenCalled.number())))
    }

    fn find_places(&self, at: &AnalyzedMethod<'_>) -> Vec<HookPlace> {
        let hooks = find_hooks(at).into_iter();
        let places = hooks.map(|(bci, hook)| HookPlace {
            bci,
            kind: HookSiteKind::EventCall(event_call(&OPEN, hook.number())),
        });
        places.collect()
    }

    fn happens_in(&self, at: &AnalyzedMethod<'_>) -> bool {
        let mut calls = at.scan.calls.iter();
        calls.any(|call| resource_table::registers_cleaner(at, call)) || !find_hooks(at).is_empty()
    }

    fn call_insertions(&self, which: u8, site: i32) -> Vec<CodeInsertion<'static>> {
        let hook = ResourceHook::from_number(which);
        let published = (hook == ResourceHook::OpenCalled).then_some(CodeInsertion::Mark {
            helper: PUBLISH,
            site,
        });
        published
            .into_iter()
            .chain([hook.insertion(HELPERS, site)])
            .collect()
    }

    fn runs_at_entry(&self, which: u8) -> bool {
        ResourceHook::from_number(which).runs_at_entry()
    }

    fn out_of_scope_insertions(&self, at: &AnalyzedMethod<'_>) -> MethodInsertions {
        find_insertions(at, HELPERS, |hook| outside_site(hook.number()))
    }

    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        HELPERS.to_vec()
    }

    fn inherited_helpers(&self) -> Vec<HelperMethod<'static>> {
        self.called_helpers()
    }
}

const HELPERS: [HelperMethod<'static>; 2] = helpers_of("java/lang/LucceRtOpen");
/// In a JVM where other classes have no hooks.
const HOOKLESS_HELPERS: [HelperMethod<'static>; 2] = helpers_of(NAMED);

/// The helpers for resources that are opened, and for objects that are closed.
const fn helpers_of(class: &'static str) -> [HelperMethod<'static>; 2] {
    const OF_OBJECT: &str = "(Ljava/lang/Object;JI)V";
    [
        helper_of(class, "openResource", OF_OBJECT),
        helper_of(class, "closeResource", OF_OBJECT),
    ]
}

/// Whether a class with this internal name may have methods that open or close resources, in a JVM where other classes have no
/// hooks.
#[must_use]
pub fn concerns_class(resources: &ResourceRules, class: &str) -> bool {
    resource_table::concerns_class(class) || resources.concerns_class(class)
}

/// Adds the hooks of resources to the plan of a class in a JVM where other classes have none.
pub fn plan_resources(
    plan: &mut ClassPlan<'static>,
    class: &ClassFile<'_>,
    (resources, trusted): (&ResourceRules, bool),
) {
    let role = role_name(class, trusted);
    for (index, method) in class.methods().iter().enumerate() {
        let Some(Ok(scan)) = method.code.as_ref().map(|code| class.scan_code(code)) else {
            continue;
        };
        let at = AnalyzedMethod {
            class: role,
            method,
            scan: &scan,
            file: class,
            resources,
        };
        let insertions = find_insertions(&at, HOOKLESS_HELPERS, |_| 0);
        if insertions.is_empty() {
            continue;
        }
        let planned = plan.methods.entry(index).or_insert_with(|| MethodPlan {
            entry: Some(NO_CALL),
            ..MethodPlan::default()
        });
        insertions.add_to(planned);
    }
}

#[cfg(test)]
mod open_tests {
    use super::*;

    #[test]
    fn objects_of_a_method_are_found_by_its_descriptor() {
        assert_eq!(object_locals("()V", false), [0]);
        assert_eq!(object_locals("()V", true), []);
        assert_eq!(object_locals("(JLa/B;[La/B;I[[JLc;)V", false), [0, 3, 7]);
        assert_eq!(object_locals("(DLa/B;)V", true), [2]);
    }

    #[test]
    fn each_hook_has_a_number() {
        let hooks = [
            ResourceHook::OpenReturned,
            ResourceHook::OpenThis,
            ResourceHook::OpenThisAtEntry,
            ResourceHook::OpenCalled,
            ResourceHook::Close(0),
            ResourceHook::Close(OPEN_AT_ENTRY - FIRST_CLOSE - 1),
        ];
        for hook in hooks {
            assert_eq!(ResourceHook::from_number(hook.number()), hook);
        }
    }
}
