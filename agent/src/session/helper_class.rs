//! The helper classes in the VM: their definition before any Java code runs, and their redefinition when events begin.
//!
//! ```text
//! build.rs: helper variants ─► define_boot_variant ─► VM initialized: bind natives ─► redefine_live_variant, all at once
//! ```
//!
//! The classes are defined in the boot variant. Once the VM is initialized, the agent binds their natives and redefines all of
//! them together. So no hook meets a mixture of boot and live classes. The build compiles them, see `build.rs`.

use std::borrow::Cow;
use std::ffi::CStr;

use jvmti_bindings::sys::jni::{jclass, jobject, jvalue};

use lucce_bytecode::rename_texts;
use lucce_instrument::jdk::older_names::older_names;
use lucce_instrument::kinds::LOCK;
use lucce_jvmti::{JniEnvironment, Jvmti};

use crate::events::lock_holders;
use crate::memory::shared_layout::{BASE, LOCK_SLOTS, METHODS, TABLES};
use crate::memory::slots;
use crate::memory::slots::Slot;
use crate::options::{AgentOptions, TrackingMode};
use crate::session::Agent;
use lucce_layout::{HelperVariant, LabFeatures};

/// The output of the build:
///
/// ```text
/// NAMES           the helper classes
/// VARIANTS        their bytes, in this order, by helper variant
/// SHARED_CLASSES  classes that are the same in all variants: name and bytes
/// NATIVES         names and descriptors of their native methods, in this order
/// ```
mod built {
    use super::{CStr, HelperVariant, LabFeatures};

    include!(concat!(env!("OUT_DIR"), "/helper_classes.rs"));
}

pub use built::NAMES;

/// One class for each of [`NAMES`].
pub type HelperClasses = [jclass; NAMES.len()];

/// Installs brackets around JNI calls.
pub type BracketInstaller = fn(&Agent, JniEnvironment, jclass) -> Option<()>;

/// The classes with fields and methods that the agent uses.
const FRAMES: &CStr = c"java/lang/LucceRtFrames";
const ALLOCATIONS: &CStr = c"java/lang/LucceRtAllocations";
const LOCKS: &CStr = c"java/lang/LucceRtLocks";
const PROGRAM_EVENTS: &CStr = c"java/lang/LucceRtProgramEvents";
const TIMES: &CStr = c"java/lang/LucceRtTimes";

/// The class of this name.
fn find_class(classes: HelperClasses, name: &CStr) -> Option<jclass> {
    let index = NAMES.iter().position(|known| *known == name)?;
    Some(classes[index])
}

/// Defines the boot variant, before any Java code runs.
pub fn define_boot_variant(agent: &Agent, env: JniEnvironment) -> Option<()> {
    let mut classes = [std::ptr::null_mut(); NAMES.len()];
    for ((class, name), bytes) in classes
        .iter_mut()
        .zip(NAMES)
        .zip(variant_bytes(HelperVariant::default())?)
    {
        *class = env.define_boot_class(name, &adapt_to_jdk(agent.core.jvmti, bytes)?)?;
    }
    for (name, bytes) in built::SHARED_CLASSES {
        env.define_boot_class(name, &adapt_to_jdk(agent.core.jvmti, bytes)?)?;
    }
    let types = agent.counting.program_kinds.types_address();
    let program_events = find_class(classes, PROGRAM_EVENTS)?;
    env.set_static_long(program_events, c"kindTypes", types as i64)?;
    let types = agent.counting.method_times.types_address();
    env.set_static_long(find_class(classes, TIMES)?, c"timeTypes", types as i64)?;
    for (class, field, value) in agent.counters.tracking.helper_fields(&agent.core) {
        env.set_static_long(find_class(classes, class)?, field, value)?;
    }
    let class = find_class(classes, FRAMES)?;
    let boot = agent.core.stacks.boot;
    let first = Slot::from_address(boot.start()).above().pointer() as i64;
    env.set_static_long(class, c"bootStacks", first)?;
    env.set_static_long(class, c"bootStacksEnd", first + boot.bytes() as i64)?;
    env.set_static_long(class, c"bootStackSize", agent.core.stacks.boot_stack as i64)
}

/// Defines one helper class that needs no other, in a VM without helper classes.
pub fn define_class_alone(jvmti: Jvmti, env: JniEnvironment, name: &CStr) -> Option<jclass> {
    let index = NAMES.iter().position(|known| *known == name)?;
    let bytes = variant_bytes(HelperVariant::default())?
        .get(index)
        .copied()?;
    env.define_boot_class(name, &adapt_to_jdk(jvmti, bytes)?)
}

/// The bytes of a helper class with the names of the present JDK.
fn adapt_to_jdk(jvmti: Jvmti, bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    match older_names(jvmti.java_version().ok()?) {
        [] => Some(Cow::Borrowed(bytes)),
        names => rename_texts(bytes, names).ok().map(Cow::Owned),
    }
}

/// The helper classes as global references, which are never deleted.
pub fn find_classes(env: JniEnvironment) -> Option<HelperClasses> {
    let mut classes = [std::ptr::null_mut(); NAMES.len()];
    for (class, name) in classes.iter_mut().zip(NAMES) {
        *class = env.new_global(env.find_class(name)?);
    }
    Some(classes)
}

/// Called when the first thread besides the main one has started: from then on the VM knows the current thread.
pub fn mark_threads_started(env: JniEnvironment) -> Option<()> {
    let class = env.find_class(FRAMES)?;
    env.set_static_boolean(class, c"threads");
    env.delete_local(class);
    Some(())
}

/// Prepares the live variant when the VM is initialized.
pub fn prepare_live_variant(
    agent: &Agent,
    env: JniEnvironment,
    classes: HelperClasses,
    bracket: BracketInstaller,
) -> Option<()> {
    measure_arrays(agent, env, find_class(classes, ALLOCATIONS)?)?;
    if agent.core.options.events.has_kind(&LOCK) {
        add_contended_locks(env, find_class(classes, LOCKS)?)?;
    }
    bind_natives(env, classes)?;
    bracket(agent, env, find_class(classes, FRAMES)?)
}

/// Gives the class of locks its array of locks that threads wait for.
fn add_contended_locks(env: JniEnvironment, class: jclass) -> Option<()> {
    let object = env.find_class(c"java/lang/Object")?;
    let locks = env.new_objects(object, LOCK_SLOTS as i32)?;
    env.set_static_object(class, c"contended", c"[Ljava/lang/Object;", locks)?;
    lock_holders::keep_contended_locks(env, locks);
    env.delete_local(locks);
    env.delete_local(object);
    Some(())
}

/// Redefines the helper classes in the live variant: from now on events count.
pub fn redefine_live_variant(
    agent: &Agent,
    env: JniEnvironment,
    classes: HelperClasses,
) -> Option<()> {
    let addresses = [
        (BASE, slots::base_address()),
        (METHODS, agent.core.method_of_site.address()),
        (TABLES, agent.core.encoder.raw_tables().block),
    ];
    let bytes = variant_bytes(select_variant(&agent.core.options))?;
    let bytes = fill_addresses(bytes, addresses)?;
    let adapted: Vec<_> = bytes
        .iter()
        .map(|bytes| adapt_to_jdk(agent.core.jvmti, bytes).map(Cow::into_owned))
        .collect::<Option<_>>()?;
    let new: Vec<_> = classes.into_iter().zip(&adapted).collect();
    agent
        .counters
        .coverage
        .exclude_allocations(env, || agent.core.jvmti.redefine_classes(&new))
        .ok()
}

/// The helper variant for the options.
fn select_variant(options: &AgentOptions) -> HelperVariant {
    HelperVariant {
        live: true,
        verify: options.verify > 0,
        stream: options.stream,
        lab: LabFeatures {
            record: options.calls,
            tree: options.tracking == TrackingMode::Cct,
            paper: options.tracking == TrackingMode::Paper,
        },
    }
}

fn variant_bytes(variant: HelperVariant) -> Option<[&'static [u8]; NAMES.len()]> {
    let mut all = built::VARIANTS.iter();
    all.find(|(of, _)| *of == variant).map(|(_, bytes)| *bytes)
}

/// Binds the native methods. The VM finds them by name, and the look-up runs Java code, so it must not happen in the middle of a
/// hook. `RegisterNatives` needs no look-up, but the VM warns if it is used in the VM's own classes. Each method is called
/// once with thread 0. All methods do nothing for thread 0, and return 0.
fn bind_natives(env: JniEnvironment, classes: HelperClasses) -> Option<()> {
    /// Maximum number of parameters of a method.
    const MOST: usize = 255;
    let zeros = [jvalue { j: 0 }; MOST];
    for (class, natives) in classes.into_iter().zip(built::NATIVES) {
        for (name, descriptor) in natives {
            let method = env.static_method_id(class, name, descriptor)?;
            env.call_void(class, method, &zeros);
        }
    }
    (!env.has_exception()).then_some(())
}

/// Replaces placeholder constants by addresses. Each placeholder occurs in at least one class, and at most once in each.
fn fill_addresses<const N: usize>(
    classes: [&[u8]; N],
    addresses: [(u64, usize); 3],
) -> Option<[Vec<u8>; N]> {
    let mut classes = classes.map(<[u8]>::to_vec);
    for (hole, address) in addresses {
        let mut filled = 0;
        for class in &mut classes {
            filled += fill_constant(class, hole, address)?;
        }
        if filled == 0 {
            return None;
        }
    }
    Some(classes)
}

/// Number of replacements. `None`: the constant occurred twice, so another constant has the same value.
fn fill_constant(class: &mut [u8], hole: u64, address: usize) -> Option<usize> {
    let hole = hole.to_be_bytes();
    let mut places = class.windows(hole.len()).enumerate();
    let mut holes = places.by_ref().filter(|(_, bytes)| *bytes == hole);
    let Some((at, _)) = holes.next() else {
        return Some(0);
    };
    if holes.next().is_some() {
        return None;
    }
    let place = class.get_mut(at..at + hole.len())?;
    place.copy_from_slice(&(address as u64).to_be_bytes());
    Some(1)
}

/// Measures the sizes of arrays, which depend on the VM's flags.
fn measure_arrays(agent: &Agent, env: JniEnvironment, class: jclass) -> Option<()> {
    let size = |object: Option<jobject>| {
        let object = object?;
        let size = agent.core.jvmti.object_size(object);
        env.delete_local(object);
        size.map(|size| size as i32)
    };
    // The header ends where one more byte makes the array larger.
    let empty = size(env.new_bytes(0))?;
    let fit = (1..=8)
        .take_while(|n| size(env.new_bytes(*n)) == Some(empty))
        .count() as i32;
    let header = empty - fit;
    let longs = size(env.new_longs(1))? - 8;
    let object = env.find_class(c"java/lang/Object")?;
    let references =
        (size(env.new_objects(object, 101))? - size(env.new_objects(object, 1))?) / 100;
    env.delete_local(object);
    env.set_static_int(class, c"header", header)?;
    env.set_static_int(class, c"headerOfLongs", longs)?;
    env.set_static_int(
        class,
        c"referenceShift",
        if references == 8 { 3 } else { 2 },
    )
}

/// The bytes in the live variant, or in all variants if they are the same.
#[cfg(test)]
pub fn bytes_in_live(name: &str) -> Option<&'static [u8]> {
    let (_, live) = built::VARIANTS[1];
    let mut all = NAMES.into_iter().zip(live).chain(built::SHARED_CLASSES);
    let class = all.find(|(known, _)| known.to_bytes() == name.as_bytes());
    class.map(|(_, bytes)| bytes)
}

#[cfg(test)]
mod helper_class_tests {
    use super::*;
    use crate::memory::shared_layout::{COPY_OF, COPY_OF_RANGE, UNSEEN};
    use crate::tracking::refuse_lab_options;

    const ADDRESSES: [(u64, usize); 3] = [(BASE, 0x1234), (METHODS, 0x5678), (TABLES, 0x9abc)];

    fn options(text: &str) -> AgentOptions {
        AgentOptions::parse(text).unwrap()
    }

    #[test]
    fn every_choice_of_options_has_its_helper_variant() {
        for tracking in ["lazy", "cct", "paper"] {
            for record in ["", ",calls=on", ",stream=on"] {
                for verify in ["", ",verify=1"] {
                    let text = format!("out=x,tracking={tracking}{record}{verify}");
                    // Some options exclude each other.
                    let Ok(options) = AgentOptions::parse(&text) else {
                        assert!(!record.is_empty() && tracking != "lazy", "{text}");
                        continue;
                    };
                    // The product refuses the others.
                    if refuse_lab_options(&options).is_err() {
                        continue;
                    }
                    let variant = select_variant(&options);
                    assert!(variant_bytes(variant).is_some(), "{text}: {variant:?}");
                }
            }
        }
        let plain = select_variant(&options("out=x"));
        let live = HelperVariant {
            live: true,
            ..HelperVariant::default()
        };
        assert_eq!(plain, live);
        let checked = select_variant(&options("out=x,stream=on,verify=7"));
        let expected = HelperVariant {
            stream: true,
            verify: true,
            ..live
        };
        assert_eq!(checked, expected);
    }

    /// The agent's own variants are few: the program's memory holds one of them, the library all.
    #[cfg(not(feature = "lab"))]
    #[test]
    fn there_are_at_most_six_variants() {
        assert!(built::VARIANTS.len() <= 6);
    }

    #[test]
    fn variants_are_different_and_take_addresses() {
        for (index, (variant, classes)) in built::VARIANTS.iter().enumerate() {
            let others = built::VARIANTS.iter().skip(index + 1);
            for (other, others_classes) in others {
                assert!(
                    variant != other && classes != others_classes,
                    "{variant:?}, {other:?}"
                );
            }
            let live = fill_addresses(*classes, ADDRESSES);
            assert!(live.is_some(), "{variant:?}");
            let left = live.into_iter().flatten().any(|class| {
                let mut words = class.windows(8);
                words.any(|word| ADDRESSES.iter().any(|(hole, _)| word == hole.to_be_bytes()))
            });
            assert!(!left, "{variant:?}");
        }
    }

    #[test]
    fn a_constant_that_is_there_twice_is_not_filled() {
        let all = [BASE, METHODS, TABLES].map(u64::to_be_bytes).join(&0);
        assert!(fill_addresses([&all, &[]], ADDRESSES).is_some());
        assert!(fill_addresses([&all, &all], ADDRESSES).is_some());
        assert!(fill_addresses([&all[..17], &[]], ADDRESSES).is_none());
        let twice = [&all[..], &all[..8]].concat();
        assert!(fill_addresses([&twice, &[]], ADDRESSES).is_none());
    }

    /// Facts that hooks know as well: their crate cannot use the layout.
    #[test]
    fn hooks_mean_the_same_sites() {
        let intrinsics = lucce_instrument::INTRINSICS.iter();
        let names: Vec<_> = intrinsics.map(|intrinsic| intrinsic.name).collect();
        for (site, name) in [(COPY_OF, "copyOf"), (COPY_OF_RANGE, "copyOfRange")] {
            assert_eq!(names[site as usize - 1], name);
        }
        assert_eq!(lucce_instrument::helpers::UNSEEN, UNSEEN);
    }

    /// A native method without its function here does not link.
    #[test]
    fn every_native_method_has_its_function() {
        let natives: usize = built::NATIVES.iter().map(|natives| natives.len()).sum();
        assert!(natives > 0);
        assert_eq!(built::functions().len(), natives);
        assert!(built::functions().iter().all(|function| *function != 0));
    }
}
