//! Classes of objects that code creates without naming the class: by natives, by `clone`, in code that traces omit. The site of
//! such an object is the line that creates it together with the class.
//!
//! Each such class has a word, in a field `$lucceType` that the agent adds to `java.lang.Class`. The word disappears with the class when
//! the class is unloaded. The agent then frees the number: for each class that gets a word, it checks two others in turn, as
//! `class_loaders` does.
//!
//! ```text
//! number 32 | bytes of an object, a multiple of 8; negative: an array, whose length determines its size | 1: `clone` is Object's
//! ```
//! Low half 0: only the number is known yet, for a class of which a method creates exceptions.
use std::collections::VecDeque;

use jvmti_bindings::sys::jni::{jclass, jlong, jobject};

use crate::counting::CountingParts;
use crate::counting::object_sizes::measure_new_instance;
use crate::memory::locks::WatchedMutex;
use crate::memory::shared_layout::{CLASS_CLONES as CLONES, CLASS_NUMBER_SHIFT, OBJECT_ALIGNMENT};
use crate::stack::unloading;
use lucce_jvmti::FieldId;
use lucce_jvmti::JniEnvironment;

/// Low half of the word of arrays: all are cloned by `Object.clone`.
const ARRAY: u32 = 1 << (CLASS_NUMBER_SHIFT - 1) | CLONES;

/// The numbered classes; locked while a class gets its word.
#[derive(Default)]
pub struct ObjectTypes(WatchedMutex<ObjectTypeTable>);

#[derive(Default)]
struct ObjectTypeTable {
    /// The field `$lucceType`, once the first word is needed.
    field: Option<FieldId>,
    /// Classes with a word, each as a weak global reference, with their numbers. The first one is checked next.
    turns: VecDeque<(usize, u32)>,
}

/// Number of checks for each new class.
const CHECKS_PER_CLASS: usize = 2;

impl ObjectTypeTable {
    /// Adds a numbered class. Returns the numbers of classes found unloaded.
    fn add_class(&mut self, env: JniEnvironment, class: jclass, number: u32) -> Vec<u32> {
        let mut gone = Vec::new();
        for _ in 0..CHECKS_PER_CLASS.min(self.turns.len()) {
            let Some((weak, number)) = self.turns.pop_front() else {
                break;
            };
            if env.is_cleared(weak as jobject) {
                env.delete_weak(weak as jobject);
                gone.push(number);
            } else {
                self.turns.push_back((weak, number));
            }
        }
        let weak = env.new_weak_global(class) as usize;
        if weak != 0 {
            self.turns.push_back((weak, number));
        }
        gone
    }
}

/// The word of a class; `made` is one of its objects, or null. `None`: the class gets no word.
pub fn resolve_object_word(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    class: jclass,
    made: jobject,
) -> Option<jlong> {
    let word = assign_object_word(agent, env, class, made);
    unloading::sweep_unloaded(agent.stack_parts());
    word
}

/// The word of a class; its low half may be 0.
pub fn resolve_number_word(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    class: jclass,
) -> Option<jlong> {
    let signature = agent.core.jvmti.class_signature(class);
    let word = signature.and_then(|signature| assign_word(agent, env, class, (&signature, 0)));
    unloading::sweep_unloaded(agent.stack_parts());
    word
}

fn assign_object_word(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    class: jclass,
    made: jobject,
) -> Option<jlong> {
    let signature = agent.core.jvmti.class_signature(class)?;
    let low = match signature.starts_with('[') {
        true => ARRAY,
        false => instance_bytes(agent, env, class, made)? | clone_flag(agent, env, class),
    };
    assign_word(agent, env, class, (&signature, low))
}

/// Sets the word's number, if it has none, and its low half.
fn assign_word(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    class: jclass,
    (signature, low): (&str, u32),
) -> Option<jlong> {
    // The lock comes last: before it, a class may be initialized, which runs code of the program.
    let mut types = agent.counting.object_types.0.lock();
    let field = match types.field {
        Some(known) => known,
        None => *types.field.insert(find_word_field(env, class)?),
    };
    // Another thread may have set the word first.
    let cached = env.get_long(class, field.as_raw());
    if cached != 0 && (cached as u32 != 0 || low == 0) {
        return Some(cached);
    }
    if cached != 0 {
        let word = cached | jlong::from(low);
        env.set_long(class, field.as_raw(), word);
        return Some(word);
    }
    let mut registry = agent.core.registry_mut();
    let number = registry.add_class_number(signature)?;
    for gone in types.add_class(env, class, number) {
        registry.remove_class_number(gone);
    }
    drop(registry);
    let word = jlong::from(number) << CLASS_NUMBER_SHIFT | jlong::from(low);
    env.set_long(class, field.as_raw(), word);
    Some(word)
}

fn find_word_field(env: JniEnvironment, class: jclass) -> Option<FieldId> {
    let of_classes = env.class_of(class);
    let field = env
        .field_id(of_classes, c"$lucceType", c"J")
        .map(FieldId::new);
    env.delete_local(of_classes);
    field
}

fn instance_bytes(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    class: jclass,
    made: jobject,
) -> Option<u32> {
    let bytes = match made.is_null() {
        true => measure_new_instance(agent, env, class)?,
        false => agent.core.jvmti.object_size(made)?,
    };
    // Objects are aligned to 8 bytes or more, and an object without array elements is smaller than 2 GB.
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| bytes % OBJECT_ALIGNMENT == 0)
}

/// [`CLONES`] if the class's `clone` is `Object.clone`.
fn clone_flag(agent: CountingParts<'_>, env: JniEnvironment, class: jclass) -> u32 {
    let method = env.method_id(class, c"clone", c"()Ljava/lang/Object;");
    let owner = method.and_then(|method| agent.core.jvmti.declaring_class(method));
    let signature = owner.and_then(|owner| {
        let signature = agent.core.jvmti.class_signature(owner);
        env.delete_local(owner);
        signature
    });
    match signature.as_deref() {
        Some("Ljava/lang/Object;") => CLONES,
        _ => 0,
    }
}
