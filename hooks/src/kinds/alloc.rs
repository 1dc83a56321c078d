//! `events=alloc`: allocations by Java code, behind each instruction and each call that makes an object.

use lucce_bytecode::{Call, NewField, Scan};

use crate::calls::alloc_mark;
use crate::helpers::public_field;
use crate::making::{describes, making, notes_a_trace};
use crate::shape::{HookPlace, Mark};

use super::{At, InCode, Kind, PLAIN, gate};

pub static ALLOC: Kind = Kind {
    name: "alloc",
    gate: gate::ALLOC,
    can_come_later: true,
    code: Some(&Allocations),
    ..PLAIN
};

struct Allocations;

/// Of `java.lang.Class`: how its objects are counted.
const CLASS_FIELD: &str = "$lc";

impl InCode for Allocations {
    fn call(&self, at: &At<'_>, call: &Call<'_>) -> Option<Mark> {
        if let Some(making) = making(call) {
            return Some(Mark::Made(making));
        }
        if notes_a_trace(call) {
            return Some(Mark::Traced);
        }
        let (name, descriptor) = (&at.method.name, &at.method.descriptor);
        describes(at.class, name, descriptor, call).map(Mark::Describes)
    }

    fn places(&self, scan: &Scan<'_>) -> Vec<HookPlace> {
        let places = scan.allocations.iter().map(|alloc| HookPlace {
            bci: alloc.bci,
            mark: alloc_mark(alloc),
        });
        places.collect()
    }

    fn happens_in(&self, at: &At<'_>) -> bool {
        let mut calls = at.scan.calls.iter();
        !at.scan.allocations.is_empty() || calls.any(|call| making(call).is_some())
    }

    fn fields(&self, class: &str, _in_scope: bool) -> Vec<NewField<'static>> {
        match class {
            "java/lang/Class" => vec![public_field(CLASS_FIELD)],
            _ => Vec::new(),
        }
    }
}
