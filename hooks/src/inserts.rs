//! From shapes to what the rewriter inserts, once ids are known.

use lucce_bytecode::{ClassFile, Entry, Error, Insert, Method, MethodPlan, Plan, Scan};

use crate::helpers::{
    ALLOC, ALLOC_HERE, ARRAYS, CALLED, CALLED_FIRST, CALLED_PREMAIN, CALLED_THREAD, CALLED_VM,
    CHANGED, CLONED, CLONES, CURRENT, DESCRIBES, DOWNCALL, DOWNCALLED, ENTER, ENTER_AT,
    ENTER_FIRST, ENTER_PINNED, ENTER_PREMAIN, ENTER_THREAD, ENTER_UPCALL, ENTER_VM, EVENT, EXIT,
    EXIT_PINNED, EXIT_UNSAID, EXIT_UPCALL, EXIT_VM, INHERITED, MADE, MADE_ALL, MADE_HERE,
    MADE_TEXTS, NEW_BYTES_FOR, PUB, PUB_HERE, PUB_NATIVE, PUB_SWITCHING, PUB_UNSAID,
    REDIRECT_ASKING, REDIRECT_DEFINITION, REDIRECT_HIDING, REFLECTED, REFLECTED_HERE, RESTORE,
    RESTORE_UPCALL, SCOPE, SCOPE_END, TO_CARRIER, TO_VIRTUAL, TRACED, UNSEEN, UNSEEN_COPY,
    UNSEEN_NEW, UNWIND_DOWNCALL, UNWIND_VM, array_helper, new_fields,
};
use crate::inherited;
use crate::jdk::foreign;
use crate::jdk::intrinsics::INTRINSICS;
use crate::jdk::recorder;
use crate::jdk::roles::{restores, role_name, switch, unshown_frame};
use crate::kinds::{self, Kinds};
use crate::making::unseen_places;
use crate::shape::{FrameKind, HookPlace, Making, Mark, Shape};
use crate::view::hiding;

/// What a method that takes a slot has beside what the default mode needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hooks {
    /// The recording is told when it ends.
    pub exits: bool,
    /// Its context is looked up at entry.
    pub at_entry: bool,
    /// It puts the pointer back when it ends: code without hooks may call it.
    pub restores: bool,
    /// See [`super::Wants::trusted`].
    pub trusted: bool,
    /// Its loader is not asked for the helper class: see `inherited`.
    pub inherits: bool,
    /// What is counted: kinds have fields of their own in classes of the JDK.
    pub kinds: Kinds,
}

impl Hooks {
    /// Whether a method without its own slot's address has all that it needs.
    fn keep_nothing(self) -> bool {
        !self.exits && !self.at_entry && !self.restores
    }

    fn add(self, method: &mut MethodPlan<'static>, frame: FrameKind, id: u32, name: &str) {
        let returns = matches!(
            frame,
            FrameKind::Push | FrameKind::First | FrameKind::Thread | FrameKind::Premain
        );
        // A virtual thread has ended, for the agent, before its first method returns.
        if self.exits && returns && frame != FrameKind::First {
            method.exit = Some(EXIT);
        }
        if self.exits && frame == FrameKind::Vm && method.unwind.is_some() {
            method.unwind = Some(UNWIND_VM);
        }
        if self.restores && returns && method.inserts.iter().any(|(_, insert)| moves(insert)) {
            method.exit = Some(RESTORE);
            // Who creates objects does it for constructors, see `outside`.
            method.unwind = Some(RESTORE).filter(|_| name != "<init>");
        }
        if self.at_entry && frame == FrameKind::Push {
            method.entry = Some(Entry {
                helper: ENTER_AT,
                argument: Some(id as i32),
            });
        }
    }
}

/// Whether the insertion moves the pointer.
fn moves(insert: &Insert<'_>) -> bool {
    matches!(
        insert,
        Insert::Mark { .. }
            | Insert::MarkTwo { .. }
            | Insert::MarkLocal { .. }
            | Insert::MarkTop { .. }
            | Insert::MarkPair { .. }
            | Insert::ReplaceWithContext { .. }
    )
}

/// Puts ids into the shapes. `sites` are the ids of each method's places, `native_site` those of
/// bracketed natives by method index.
pub fn plan(
    class: &ClassFile<'_>,
    shapes: &[Shape],
    first_method: u32,
    first_site: u32,
    native_site: &dyn Fn(usize) -> u32,
    hooks: Hooks,
) -> Plan<'static> {
    let mut plan = Plan::default();
    let mut site = first_site;
    for (index, shape) in shapes.iter().enumerate() {
        let id = first_method + index as u32;
        let entry_site = shape.counts_entries().then_some(site as i32);
        let here = shape.here && hooks.keep_nothing();
        let inserts = shape.places.iter().flat_map(|place| {
            let inserts = inserts(place, (shape, here), site as i32, native_site);
            site += 1;
            inserts
        });
        let inserts = inserts.collect();
        if shape.frame != FrameKind::Leaf {
            let method = class.methods().get(index);
            let name = method.map_or("", |method| &method.name);
            let mut method = method_plan(shape, id, inserts, name == "<init>");
            hooks.add(&mut method, shape.frame, id, name);
            if recorder::loses(role_name(class, hooks.trusted), name) {
                method.exit = Some(EXIT_UNSAID);
            }
            count_entries(&mut method, shape.frame, entry_site);
            if here {
                method.entry = None;
            }
            plan.methods.insert(index, method);
        }
    }
    plan.fields = new_fields(class.name());
    let fields = hooks.kinds.in_code();
    plan.fields
        .extend(fields.flat_map(|code| code.fields(class.name(), true)));
    if class.name() == "java/lang/Object" {
        plan.new_methods = inherited::methods();
    }
    if hooks.inherits {
        plan.inherited = Some(INHERITED);
    }
    plan
}

/// The entry hook counts or records, too, if there is a site for it.
fn count_entries(method: &mut MethodPlan<'static>, frame: FrameKind, site: Option<i32>) {
    let helper = match frame {
        FrameKind::Push => CALLED,
        FrameKind::First => CALLED_FIRST,
        FrameKind::Thread => CALLED_THREAD,
        FrameKind::Premain => CALLED_PREMAIN,
        FrameKind::Vm => CALLED_VM,
        FrameKind::Leaf
        | FrameKind::Peek
        | FrameKind::PeekVm
        | FrameKind::Downcall
        | FrameKind::Upcall
        | FrameKind::ToCarrier
        | FrameKind::ToVirtual
        | FrameKind::Pinned => return,
    };
    if site.is_some() {
        method.entry = Some(Entry {
            helper,
            argument: site,
        });
    }
}

fn method_plan(
    shape: &Shape,
    id: u32,
    mut inserts: Vec<(u16, Insert<'static>)>,
    is_constructor: bool,
) -> MethodPlan<'static> {
    // Native code that calls the same method again finds the pointer where it was.
    let (entry, exit, unwind) = match shape.frame {
        FrameKind::Peek => {
            let moves = !shape.restores.is_empty();
            (ENTER, moves.then_some(RESTORE), None)
        }
        FrameKind::Downcall => (ENTER, Some(RESTORE), Some(UNWIND_DOWNCALL)),
        FrameKind::Upcall => (ENTER_UPCALL, Some(EXIT_UPCALL), Some(EXIT_UPCALL)),
        FrameKind::Push | FrameKind::Leaf => (ENTER, None, None),
        FrameKind::First => (ENTER_FIRST, None, None),
        FrameKind::ToCarrier => (TO_CARRIER, None, None),
        FrameKind::ToVirtual => (ENTER, Some(TO_VIRTUAL), None),
        FrameKind::Pinned => (ENTER_PINNED, Some(EXIT_PINNED), Some(EXIT_PINNED)),
        FrameKind::Thread => (ENTER_THREAD, None, None),
        FrameKind::Premain => (ENTER_PREMAIN, None, None),
        FrameKind::Vm | FrameKind::PeekVm => (ENTER_VM, Some(EXIT_VM), Some(EXIT_VM)),
    };
    let argument = match shape.frame {
        FrameKind::Vm => Some(id as i32),
        // It is in no trace.
        FrameKind::PeekVm => Some(0),
        _ => None,
    };
    let helper = match shape.frame {
        FrameKind::Upcall => RESTORE_UPCALL,
        _ => RESTORE,
    };
    let restores = shape.restores.iter();
    let restores = restores.map(|bci| (*bci, Insert::Before { helper }));
    inserts.extend(restores);
    inserts.extend(shape.unseen.iter().flat_map(unseen));
    inserts.sort_by_key(|(bci, _)| *bci);
    // A constructor has no handler for what it throws: the next upcall clears up.
    let unwind = unwind.filter(|_| !is_constructor);
    MethodPlan {
        entry: Some(Entry {
            helper: entry,
            argument,
        }),
        exit,
        unwind,
        inserts,
    }
}

/// `here`: the method keeps nothing, see [`Shape::here`].
fn inserts(
    place: &HookPlace,
    (shape, here): (&Shape, bool),
    site: i32,
    native_site: &dyn Fn(usize) -> u32,
) -> Vec<(u16, Insert<'static>)> {
    let mark = Insert::Mark {
        helper: match (here, shape.switches) {
            (true, _) => PUB_HERE,
            (false, true) => PUB_SWITCHING,
            (false, false) => PUB,
        },
        site,
    };
    let after = |helper| Insert::After { helper, site };
    let after_dup = |helper| Insert::AfterDup { helper, site };
    let in_its_place = |helper| Insert::ReplaceWithContext { helper, site };
    let inserts = match &place.mark {
        Mark::Entry => Vec::new(),
        Mark::Unsaid => vec![Insert::Mark {
            helper: PUB_UNSAID,
            site,
        }],
        Mark::Call | Mark::Monitor => vec![mark],
        Mark::Hides => vec![REDIRECT_HIDING],
        Mark::Asks => vec![mark, REDIRECT_ASKING],
        Mark::DefineHidden => vec![mark, REDIRECT_DEFINITION],
        Mark::Changes => vec![mark, after(CHANGED)],
        Mark::Traced => vec![mark, after_dup(TRACED)],
        Mark::Describes(local) => vec![Insert::MarkLocal {
            helper: DESCRIBES,
            site,
            local: *local,
        }],
        Mark::Made(making) => return made(*making, place.bci, (here, site)),
        Mark::Of(of) => kinds::inserts(*of, site),
        Mark::Bracket(native) => vec![bracket(native_site(*native), site)],
        Mark::BracketMaking(native) => {
            vec![bracket(native_site(*native), site), after_dup(MADE)]
        }
        Mark::New(_) => vec![after(if here { ALLOC_HERE } else { ALLOC })],
        Mark::Array(descriptor) => vec![after_dup(array_helper(descriptor, here))],
        Mark::Arrays(_) => vec![after_dup(ARRAYS)],
        Mark::Intrinsic(index) => {
            let helper = INTRINSICS[*index].counted;
            let site = *index as i32 + 1;
            vec![mark, Insert::AfterDup { helper, site }]
        }
        Mark::Uncounted => {
            let helper = NEW_BYTES_FOR;
            vec![mark, Insert::Redirect { helper }]
        }
        Mark::Current => vec![in_its_place(CURRENT)],
        Mark::Event => vec![in_its_place(EVENT)],
        Mark::Scope => vec![in_its_place(SCOPE)],
        Mark::ScopeEnd => vec![in_its_place(SCOPE_END)],
    };
    let each = inserts.into_iter();
    each.map(|insert| (place.bci, insert)).collect()
}

fn bracket(native: u32, site: i32) -> Insert<'static> {
    Insert::MarkTwo {
        helper: PUB_NATIVE,
        site,
        inner: native as i32,
    }
}

/// Behind a call that has made an object. What is native calls nothing that would need a site before it.
fn made(making: Making, bci: u16, (here, site): (bool, i32)) -> Vec<(u16, Insert<'static>)> {
    let after = |helper| (bci, Insert::AfterDup { helper, site });
    match making {
        Making::Object if here => vec![after(MADE_HERE)],
        Making::Object => vec![after(MADE)],
        Making::All => vec![after(MADE_ALL)],
        Making::Texts => vec![after(MADE_TEXTS)],
        Making::Reflected if here => vec![after(REFLECTED_HERE)],
        Making::Reflected => vec![after(REFLECTED)],
        Making::Clone => {
            let helper = CLONES;
            vec![(bci, Insert::MarkTop { helper, site }), after(CLONED)]
        }
    }
}

/// What is made in code that traces do not show is counted for the caller of that code.
fn unseen(place: &HookPlace) -> Vec<(u16, Insert<'static>)> {
    let site = UNSEEN;
    let after = |helper, site| vec![(place.bci, Insert::AfterDup { helper, site })];
    match &place.mark {
        Mark::New(_) => vec![(place.bci, Insert::AfterNew { helper: UNSEEN_NEW })],
        Mark::Array(_) => after(MADE, site),
        Mark::Arrays(_) => after(MADE_ALL, site),
        Mark::Made(making) => made(*making, place.bci, (false, site)),
        Mark::Intrinsic(index) => after(UNSEEN_COPY, *index as i32 + 1),
        _ => Vec::new(),
    }
}

/// For classes that never reach the hook: their methods have no slots, and what they call is where it
/// would be without them. `trusted`: see [`super::Wants`]. `alloc`: what they make is counted.
///
/// # Errors
/// The class's code is malformed.
pub fn hidden_plan(
    class: &ClassFile<'_>,
    trusted: bool,
    alloc: bool,
) -> Result<Plan<'static>, Error> {
    let mut plan = Plan::default();
    let name = role_name(class, trusted);
    for (index, method) in class.methods().iter().enumerate() {
        let Some(code) = &method.code else { continue };
        let mut shape = Shape::none();
        let scan = class.scan(code)?;
        shape.frame = unshown_frame(name, method);
        if alloc {
            shape.unseen = unseen_places(class, &scan);
        }
        // What counts needs the slot as it is.
        if shape.frame == FrameKind::Upcall && !shape.unseen.is_empty() {
            shape.frame = FrameKind::PeekVm;
        }
        shape.restores = restores(shape.frame, method, &scan);
        if !shape.restores.is_empty() || !shape.unseen.is_empty() {
            let mut method = method_plan(&shape, 0, Vec::new(), false);
            if shape.frame == FrameKind::Downcall {
                mark_function_calls(&scan, &mut method.inserts);
            }
            plan.methods.insert(index, method);
        }
    }
    Ok(plan)
}

/// In a downcall stub: around the call of the C function.
fn mark_function_calls(scan: &Scan<'_>, inserts: &mut InsertsAt) {
    for call in scan
        .calls
        .iter()
        .filter(|call| foreign::calls_function(call))
    {
        let is_before = |at: &u16, insert: &Insert<'_>| {
            *at == call.bci && matches!(insert, Insert::Before { .. })
        };
        inserts.retain(|(at, insert)| !is_before(at, insert));
        let helper = DOWNCALL;
        inserts.push((call.bci, Insert::Before { helper }));
        let helper = DOWNCALLED;
        inserts.push((call.bci, Insert::After { helper, site: 0 }));
    }
    inserts.sort_by_key(|(bci, _)| *bci);
}

/// For the methods by which a virtual thread acts as its carrier, where their class is not in scope: what the carrier runs
/// may be.
pub fn switch_plan(
    class: &str,
    method: &Method<'_>,
    scan: &Scan<'_>,
) -> Option<MethodPlan<'static>> {
    let shape = Shape {
        frame: switch(class, method)?,
        ..Shape::none()
    };
    let places = hiding(class, scan).into_iter();
    let inserts = places.map(|place| (place.bci, REDIRECT_HIDING)).collect();
    Some(method_plan(&shape, 0, inserts, false))
}

/// Inserts into one method, with the places where they go.
pub type InsertsAt = Vec<(u16, Insert<'static>)>;

/// The inserts by which what a class makes that traces do not show is counted, by method: for classes that are
/// otherwise as those out of scope. `holds`: whether a class of the JDK is in scope; where it is not, nothing that its
/// methods make is counted.
///
/// # Errors
/// The class's code is malformed.
pub fn unseen_inserts(
    class: &ClassFile<'_>,
    holds: &dyn Fn(&str) -> bool,
) -> Result<Vec<(usize, InsertsAt)>, Error> {
    let mut found = Vec::new();
    for (index, method) in class.methods().iter().enumerate() {
        let Some(code) = &method.code else { continue };
        let places = unseen_places(class, &class.scan(code)?);
        let counts = |place: &&HookPlace| match place.mark {
            Mark::Intrinsic(index) => INTRINSICS.get(index).is_some_and(|of| holds(of.class)),
            _ => true,
        };
        let inserts: Vec<_> = places.iter().filter(counts).flat_map(unseen).collect();
        if !inserts.is_empty() {
            found.push((index, inserts));
        }
    }
    Ok(found)
}
