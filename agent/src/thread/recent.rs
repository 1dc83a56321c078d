//! Cells that a lane looked up lately, by place and class: what the VM tells of happens at few places
//! again and again.

use jvmti_bindings::sys::jni::{jclass, jobject};

use crate::memory::java_table::MULTIPLIER;
use crate::thread::found::{EventKind, Found};
use lucce_vm::Env;

const ENTRIES: usize = 64;

/// A context as the thread keeps it, and a site.
type Spot = (u64, u32);

/// A place, the class of an object to which something of a kind happened there, and the cell.
#[derive(Clone, Copy)]
pub struct Recent {
    place: Spot,
    kind: &'static EventKind,
    /// A weak global reference: it stays the same while the class is loaded, and means nothing later.
    class: usize,
    found: Found,
}

impl Recent {
    pub fn new(
        env: Env,
        place: Spot,
        kind: &'static EventKind,
        class: jclass,
        found: Found,
    ) -> Recent {
        Recent {
            place,
            kind,
            class: match class.is_null() {
                true => 0,
                false => env.weak_global(class) as usize,
            },
            found,
        }
    }
}

/// One entry for each hash; a newer one takes its place.
#[derive(Default)]
pub struct RecentCells(Vec<Option<Recent>>);

impl RecentCells {
    pub fn find(
        &self,
        env: Env,
        place: Spot,
        kind: &'static EventKind,
        class: jclass,
    ) -> Option<Found> {
        let known = self.0.get(index(place))?.as_ref()?;
        let same = known.place == place
            && std::ptr::eq(known.kind, kind)
            // Null stands for a class that was unloaded, too.
            && (known.class == 0) == class.is_null()
            && env.is_same(known.class as jobject, class);
        same.then_some(known.found)
    }

    pub fn put(&mut self, env: Env, recent: Recent) {
        self.0.resize(ENTRIES, None);
        if let Some(entry) = self.0.get_mut(index(recent.place))
            && let Some(old) = entry.replace(recent)
            && old.class != 0
        {
            env.forget_weak(old.class as jobject);
        }
    }
}

fn index(place: Spot) -> usize {
    let key = place.0 ^ u64::from(place.1).rotate_left(40);
    (key.wrapping_mul(MULTIPLIER) >> (64 - ENTRIES.trailing_zeros())) as usize
}
