//! Which hooks the methods of a class need.

use std::collections::HashMap;

use lucce_bytecode::{Call, ClassFile, Error, Method, Scan};

use crate::calls::{BRACKETED, api_mark, defines_hidden};
use crate::jdk::intrinsics::{INTRINSICS, intrinsic};
use crate::jdk::leaves::{is_arithmetic, is_leaf_call, is_native_leaf, is_recorders};
use crate::jdk::roles::{
    QUIET, QUIET_CLASS, frame, has_handlers, hides, is_counted, is_excluded, is_transparent,
    is_untouched, is_vm_called, leads_to_customizing, may_be_leaf, restores, role_name, switches,
    unshown_frame,
};
use crate::jdk::{agents, quiet, recorder, vm_calls};
use crate::kinds::{ALLOC, At, CALL, InCode, Kinds};
use crate::making::{MAKING, unseen_places};
use crate::shape::{FrameKind, HookPlace, Making, Mark, Shape};

/// # Errors
/// The class's code is malformed; the VM will say so itself.
pub fn shapes(class: &ClassFile<'_>, wants: Wants<'_>) -> Result<Vec<Shape>, Error> {
    let view = View::of(class, wants)?;
    let methods = class.methods().iter().zip(&view.scans).enumerate();
    Ok(methods
        .map(|(index, (method, scan))| Shape {
            quiet: view.is_quiet(index),
            ..view.shape(method, scan.as_ref())
        })
        .collect())
}

/// What the hooks are for.
#[derive(Clone, Copy)]
pub struct Wants<'w> {
    /// What is counted.
    pub events: Kinds,
    /// Nothing that happens in a method by itself is counted or recorded.
    pub idle: bool,
    /// The VM trusts the class's loader: it is the boot loader or the platform loader.
    pub trusted: bool,
    /// Whether a class of the JDK is in scope.
    pub holds: &'w dyn Fn(&str) -> bool,
    /// Whether none of them is.
    pub jdk_is_out_of_scope: bool,
    /// Whether the call is one of a [`Shape::quiet`] method of a class of the JDK that has been loaded.
    pub calls_quiet: &'w dyn Fn(&Call<'_>) -> bool,
}

impl Wants<'_> {
    /// Whether such a call leads to nothing that could ask for a context.
    fn is_leaf(&self, call: &Call<'_>) -> bool {
        is_leaf_call(call)
            || !self.events.has(&CALL) && (is_arithmetic(call) || is_recorders(call))
            || self.jdk_is_out_of_scope && quiet::is_quiet(call)
            || (self.calls_quiet)(call)
    }
}

/// A class with everything that is asked of it several times.
struct View<'v, 'a> {
    class: &'v ClassFile<'a>,
    /// See [`role_name`].
    name: &'v str,
    wants: Wants<'v>,
    scans: Vec<Option<Scan<'a>>>,
    by_name: HashMap<(&'v str, &'v str), usize>,
    /// Methods that need no frame: getters and small helpers.
    leaves: Vec<bool>,
}

impl<'v, 'a> View<'v, 'a> {
    fn of(class: &'v ClassFile<'a>, wants: Wants<'v>) -> Result<Self, Error> {
        let mut scans = Vec::with_capacity(class.methods().len());
        let mut by_name = HashMap::new();
        for (index, method) in class.methods().iter().enumerate() {
            by_name.insert((&*method.name, &*method.descriptor), index);
            scans.push(
                method
                    .code
                    .as_ref()
                    .map(|code| class.scan(code))
                    .transpose()?,
            );
        }
        let mut view = View {
            class,
            name: role_name(class, wants.trusted),
            wants,
            leaves: vec![false; scans.len()],
            scans,
            by_name,
        };
        view.find_leaves();
        Ok(view)
    }

    /// A method is a leaf if it calls none but leaves. One that becomes a leaf may make leaves of those that call it:
    /// only these are looked at again, so each call is looked at twice at most, but for methods that call many leaves.
    fn find_leaves(&mut self) {
        // Calls of other methods of this class that are not known to be leaves, by the calling method; and the
        // methods that call a method.
        let mut open = vec![0_usize; self.scans.len()];
        let mut callers = vec![Vec::new(); self.scans.len()];
        let mut found = Vec::new();
        for (index, method) in self.class.methods().iter().enumerate() {
            let Some(scan) = self.scans.get(index).and_then(Option::as_ref) else {
                continue;
            };
            if !self.may_be_leaf(method, scan) {
                continue;
            }
            let Some(called) = self.own_calls(scan) else {
                continue;
            };
            if let Some(open) = open.get_mut(index) {
                *open = called.len();
            }
            if called.is_empty() {
                found.push(index);
            }
            for one in called {
                if let Some(callers) = callers.get_mut(one) {
                    callers.push(index);
                }
            }
        }
        while let Some(leaf) = found.pop() {
            if let Some(leaf) = self.leaves.get_mut(leaf) {
                *leaf = true;
            }
            for caller in callers
                .get_mut(leaf)
                .map(std::mem::take)
                .unwrap_or_default()
            {
                if let Some(open) = open.get_mut(caller) {
                    *open -= 1;
                    if *open == 0 {
                        found.push(caller);
                    }
                }
            }
        }
    }

    /// Methods of this class on which it depends whether the calls are silent. `None`: one is not, in any case.
    fn own_calls(&self, scan: &Scan<'_>) -> Option<Vec<usize>> {
        let mut called = Vec::new();
        for call in &scan.calls {
            if !self.wants.is_leaf(call) && !self.calls_own_leaf(call) {
                called.push(self.fixed_own_method(call)?);
            }
        }
        Some(called)
    }

    /// Whether nothing happens in the method, its calls aside. The VM may throw an exception there, whose constructors move
    /// the pointer. A method that catches one goes on, and so would a caller that has said nothing and keeps nothing.
    fn may_be_leaf(&self, method: &Method<'_>, scan: &Scan<'_>) -> bool {
        let at = &self.at(method, scan);
        may_be_leaf(self.name, method)
            && !has_handlers(method)
            && !self.kinds().any(|code| code.happens_in(at))
    }

    fn shape(&self, method: &Method<'_>, scan: Option<&Scan<'_>>) -> Shape {
        let mut shape = Shape::none();
        let name = self.name;
        shape.transparent = is_transparent(name, method);
        let Some(scan) = scan else {
            return shape;
        };
        let quiet = name.starts_with(QUIET_CLASS) && QUIET.contains(&&*method.name)
            || leads_to_customizing(name, method)
            || self.wants.idle && vm_calls::only_allocates(name, &method.name);
        if !shape.transparent && !is_excluded(name, method) && !quiet {
            shape.places = self.places(method, scan);
            if self.wants.events.has(&ALLOC) {
                let _ = self.leave_to_callers(method, &mut shape);
            }
        }
        if self.wants.events.has(&CALL) && !quiet && is_counted(name, method) {
            let entry = HookPlace {
                bci: 0,
                mark: Mark::Entry,
            };
            shape.places.insert(0, entry);
        }
        shape.switches = switches(name, method);
        if shape.transparent && !shape.switches && !is_untouched(name, &method.name) {
            shape.restores = restores(unshown_frame(name, method), method, scan);
        }
        if shape.transparent
            && !shape.switches
            && self.wants.events.has(&ALLOC)
            && !is_untouched(name, &method.name)
        {
            shape.unseen = unseen_places(self.class, scan);
        }
        shape.frame = frame(name, method, &shape);
        if matches!(shape.frame, FrameKind::ToCarrier | FrameKind::ToVirtual) {
            shape.places = hiding(name, scan);
        }
        if shape.counts_entries() && shape.frame == FrameKind::Push && is_vm_called(name, method) {
            shape.frame = FrameKind::Vm;
        }
        shape.here = is_here(&shape, scan.has_loops, has_handlers(method));
        shape.lines.clone_from(&scan.lines);
        shape
    }

    /// The body of an intrinsic counts nothing itself. `None`: it is not one.
    fn leave_to_callers(&self, method: &Method<'_>, shape: &mut Shape) -> Option<()> {
        let index = intrinsic(self.name, &method.name, &method.descriptor)?;
        let through = INTRINSICS.get(index)?.through;
        let allocates = |place: &&HookPlace| match through {
            None => matches!(place.mark, Mark::Array(_)),
            Some(_) => place.mark == Mark::Uncounted,
        };
        let bci = shape.places.iter().find(allocates)?.bci;
        shape.intrinsic = Some((index, bci));
        shape
            .places
            .retain(|place| !matches!(place.mark, Mark::Array(_)));
        Some(())
    }

    fn places(&self, method: &Method<'_>, scan: &Scan<'_>) -> Vec<HookPlace> {
        let calls = scan.calls.iter().filter_map(|call| {
            let mark = self.call_mark(method, scan, call)?;
            Some(HookPlace {
                bci: call.bci,
                mark,
            })
        });
        let mut places: Vec<HookPlace> = calls.collect();
        let more = self.kinds().flat_map(|code| code.places(scan));
        places.extend(more);
        places.sort_by_key(|place| place.bci);
        places
    }

    fn call_mark(&self, method: &Method<'_>, scan: &Scan<'_>, call: &Call<'_>) -> Option<Mark> {
        let at = &self.at(method, scan);
        if let Some(mark) = self.kinds().find_map(|code| code.call(at, call)) {
            return Some(mark);
        }
        if let Some(mark) = api_mark(call) {
            return Some(mark);
        }
        if self.wants.is_leaf(call) || self.calls_own_leaf(call) {
            return None;
        }
        if self.wants.trusted && defines_hidden(call) {
            return Some(Mark::DefineHidden);
        }
        if self.wants.events.has(&ALLOC)
            && let Some(mark) = self.intrinsic_mark(method, call)
        {
            return Some(mark);
        }
        if agents::asks(self.name, call) {
            return Some(Mark::Asks);
        }
        if BRACKETED.contains(&(self.name, &*call.name)) {
            let makes = self.wants.events.has(&ALLOC) && call.name == MAKING;
            let bracket = if makes {
                Mark::BracketMaking
            } else {
                Mark::Bracket
            };
            return self.own_method(call).map(bracket);
        }
        Some(if recorder::lists(&call.owner, &call.name) {
            Mark::Unsaid
        } else if recorder::changes(&call.owner, &call.name) {
            Mark::Changes
        } else {
            Mark::Call
        })
    }

    /// The hooks of what is counted.
    fn kinds(&self) -> impl Iterator<Item = &'static dyn InCode> {
        self.wants.events.in_code()
    }

    fn at<'m>(&'m self, method: &'m Method<'m>, scan: &'m Scan<'m>) -> At<'m> {
        At {
            class: self.name,
            method,
            scan,
            file: self.class,
        }
    }

    fn intrinsic_mark(&self, method: &Method<'_>, call: &Call<'_>) -> Option<Mark> {
        if let Some(index) = intrinsic(&call.owner, &call.name, &call.descriptor) {
            let counted = (self.wants.holds)(&call.owner);
            return counted.then_some(Mark::Intrinsic(index));
        }
        let within = intrinsic(self.name, &method.name, &method.descriptor)?;
        let through = INTRINSICS.get(within)?.through?;
        (call.name == through).then_some(Mark::Uncounted)
    }

    fn own_method(&self, call: &Call<'_>) -> Option<usize> {
        let key = (&*call.name, &*call.descriptor);
        let own = call.owner == self.class.name();
        own.then(|| self.by_name.get(&key).copied()).flatten()
    }

    /// Of a method of this class.
    fn is_native(&self, call: &Call<'_>) -> bool {
        let method = self.own_method(call);
        method.is_some_and(|index| self.scans.get(index).is_some_and(Option::is_none))
    }

    /// A call of a method of this very class that has no hooks and cannot be overridden.
    fn calls_own_leaf(&self, call: &Call<'_>) -> bool {
        let Some(index) = self.fixed_own_method(call) else {
            return false;
        };
        let leaf = self.leaves.get(index).copied().unwrap_or(false);
        leaf || is_native_leaf(call) && self.is_native(call)
    }

    /// The method of this very class that a call is one of, as no class can override it.
    fn fixed_own_method(&self, call: &Call<'_>) -> Option<usize> {
        let index = self.own_method(call)?;
        let method = self.class.methods().get(index)?;
        is_bound(self.class, method).then_some(index)
    }

    /// Whether no class can override the method, which has one of these flags or belongs to a final class.
    fn is_fixed(&self, index: usize, flags: u16) -> bool {
        let access = self.class.methods().get(index).map_or(0, |m| m.access);
        access & flags != 0 || self.class.access() & FINAL != 0
    }

    /// See [`Shape::quiet`]. A private method may have the name of another one that is called.
    fn is_quiet(&self, index: usize) -> bool {
        let leaf = self.leaves.get(index).copied().unwrap_or(false);
        let is_constructor = |method: &Method<'_>| method.name == "<init>";
        let constructs = self.class.methods().get(index).is_some_and(is_constructor);
        leaf && (constructs || self.is_fixed(index, STATIC | FINAL))
            && self.class.access() & INTERFACE == 0
    }
}

/// Whether a call that names a method of this class is one of it, as no class can override it: other methods of the class
/// may say nothing before they call it.
#[must_use]
pub fn is_bound(class: &ClassFile<'_>, method: &Method<'_>) -> bool {
    let is_fixed = method.access & (PRIVATE | STATIC | FINAL) != 0
        || class.access() & FINAL != 0
        || method.name == "<init>";
    is_fixed && class.access() & INTERFACE == 0
}

/// Access flags of methods and classes.
const PRIVATE: u16 = 0x0002;
const STATIC: u16 = 0x0008;
const FINAL: u16 = 0x0010;
const INTERFACE: u16 = 0x0200;

/// Whether no hook runs after one that has moved the pointer: there is one call at most, no way back to it,
/// and nothing behind it. What the VM calls in between puts the pointer back, unless an exception leaves
/// it; so there may be no handler that goes on.
fn is_here(shape: &Shape, has_loops: bool, has_handlers: bool) -> bool {
    let Some((last, before)) = shape.places.split_last() else {
        return false;
    };
    let stays = |place: &HookPlace| {
        matches!(
            place.mark,
            Mark::New(_) | Mark::Array(_) | Mark::Made(Making::Object | Making::Reflected)
        )
    };
    let ordered =
        before.iter().all(stays) && (stays(last) || last.mark == Mark::Call && !has_loops);
    let plain = shape.frame == FrameKind::Push && !shape.switches && shape.intrinsic.is_none();
    plain && ordered && !has_handlers
}

/// The calls in such a method that would hide what follows from agents.
pub fn hiding(class: &str, scan: &Scan<'_>) -> Vec<HookPlace> {
    let calls = scan.calls.iter().filter(|call| hides(class, call));
    let places = calls.map(|call| HookPlace {
        bci: call.bci,
        mark: Mark::Hides,
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(marks: &[Mark]) -> Shape {
        let places = marks.iter().enumerate().map(|(at, mark)| HookPlace {
            bci: 3 * at as u16,
            mark: mark.clone(),
        });
        Shape {
            frame: FrameKind::Push,
            places: places.collect(),
            ..Shape::none()
        }
    }

    fn new() -> Mark {
        Mark::New("La/B;".into())
    }

    #[test]
    fn a_method_whose_last_hook_is_its_only_call_keeps_nothing() {
        for marks in [
            vec![Mark::Call],
            vec![new(), Mark::Array("[I".into()), Mark::Call],
            vec![new(), new()],
        ] {
            assert!(is_here(&shape(&marks), false, false), "{marks:?}");
            // An exception may come from code that the VM calls, and leave the pointer where it is.
            assert!(!is_here(&shape(&marks), false, true), "{marks:?}");
            let calls = marks.contains(&Mark::Call);
            assert_eq!(is_here(&shape(&marks), true, false), !calls, "{marks:?}");
        }
    }

    #[test]
    fn a_method_that_goes_on_after_a_call_keeps_its_slot() {
        for marks in [
            vec![Mark::Call, Mark::Call],
            vec![Mark::Call, new()],
            vec![Mark::Monitor],
            vec![Mark::Current],
            vec![Mark::Arrays("[[I".into())],
            vec![Mark::Entry, Mark::Call],
        ] {
            assert!(!is_here(&shape(&marks), false, false), "{marks:?}");
        }
        for frame in [
            FrameKind::Vm,
            FrameKind::First,
            FrameKind::Thread,
            FrameKind::Premain,
            FrameKind::Leaf,
        ] {
            let shape = Shape {
                frame,
                ..shape(&[Mark::Call])
            };
            assert!(!is_here(&shape, false, false), "{frame:?}");
        }
        let switching = Shape {
            switches: true,
            ..shape(&[Mark::Call])
        };
        assert!(!is_here(&switching, false, false));
    }
}
