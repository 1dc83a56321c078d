//! Classes of objects that are made where the code does not say which: by natives, for `clone`, in code that
//! traces do not show. The site of such an object is the line that makes it together with the class.
//!
//! A class has a word of its own for that, a field `$lc` that the agent adds to `java.lang.Class`. It goes with
//! the class when that is unloaded, and the agent then forgets the number: for each class that gets one, two others
//! are looked at, in turns, as `loaders` does it.
//!
//! ```text
//! number 32 | bytes of an object, a multiple of 8; below 0: an array, the length says how large | 1: it clones as
//!                                                                                                    Object does
//! ```
//! Low half 0: only the number is known yet, of a class of which a method makes exceptions.
use std::collections::VecDeque;

use jvmti_bindings::sys::jni::{jclass, jlong, jobject};

use crate::counting::Counting;
use crate::counting::sizes::size_of_new;
use crate::memory::locks::WatchedMutex;
use crate::memory::shared_layout::{CLASS_CLONES as CLONES, CLASS_NUMBER_SHIFT, OBJECT_ALIGNMENT};
use crate::stack::unloading;
use lucce_vm::Env;
use lucce_vm::Field;

/// Low half of the word of arrays: all are cloned by `Object.clone`.
const ARRAY: u32 = 1 << (CLASS_NUMBER_SHIFT - 1) | CLONES;

/// Locked while a class gets its word.
#[derive(Default)]
pub struct Types(WatchedMutex<Known>);

#[derive(Default)]
struct Known {
    /// Where classes keep their words, once the first one was asked for.
    field: Option<Field>,
    /// Classes that have one, each as a weak global reference, with their numbers: the one that will be looked at
    /// next first.
    turns: VecDeque<(usize, u32)>,
}

/// How many are looked at for each new one.
const LOOKS: usize = 2;

impl Known {
    /// The class has a number now. Of classes that have gone meanwhile, their numbers.
    fn met(&mut self, env: Env, class: jclass, number: u32) -> Vec<u32> {
        let mut gone = Vec::new();
        for _ in 0..LOOKS.min(self.turns.len()) {
            let Some((weak, number)) = self.turns.pop_front() else {
                break;
            };
            if env.is_gone(weak as jobject) {
                env.forget_weak(weak as jobject);
                gone.push(number);
            } else {
                self.turns.push_back((weak, number));
            }
        }
        let weak = env.weak_global(class) as usize;
        if weak != 0 {
            self.turns.push_back((weak, number));
        }
        gone
    }
}

/// The word of a class, of which `made` is an object, if there is one. `None`: it gets none.
pub fn word(counting: &Counting, env: Env, class: jclass, made: jobject) -> Option<jlong> {
    let word = learn(counting, env, class, made);
    unloading::tidy(counting);
    word
}

/// The word of a class that need not be one of objects.
pub fn number(counting: &Counting, env: Env, class: jclass) -> Option<jlong> {
    let signature = counting.jvmti.signature(class);
    let word = signature.and_then(|signature| name(counting, env, class, (&signature, 0)));
    unloading::tidy(counting);
    word
}

fn learn(counting: &Counting, env: Env, class: jclass, made: jobject) -> Option<jlong> {
    let signature = counting.jvmti.signature(class)?;
    let low = match signature.starts_with('[') {
        true => ARRAY,
        false => size(counting, env, class, made)? | clones(counting, env, class),
    };
    name(counting, env, class, (&signature, low))
}

/// The word gets its number, if it has none, and its low half.
fn name(
    counting: &Counting,
    env: Env,
    class: jclass,
    (signature, low): (&str, u32),
) -> Option<jlong> {
    // Not before: a class may be initialised, and code of the program run.
    let mut types = counting.types.0.lock();
    let field = match types.field {
        Some(known) => known,
        None => *types.field.insert(word_of_classes(env, class)?),
    };
    // Another thread may have been here before.
    let known = env.get_long(class, field.id());
    if known != 0 && (known as u32 != 0 || low == 0) {
        return Some(known);
    }
    if known != 0 {
        let word = known | jlong::from(low);
        env.set_long(class, field.id(), word);
        return Some(word);
    }
    let mut book = counting.book_mut();
    let number = book.add_type(signature)?;
    for gone in types.met(env, class, number) {
        book.end_type(gone);
    }
    drop(book);
    let word = jlong::from(number) << CLASS_NUMBER_SHIFT | jlong::from(low);
    env.set_long(class, field.id(), word);
    Some(word)
}

fn word_of_classes(env: Env, class: jclass) -> Option<Field> {
    let of_classes = env.class_of(class);
    let field = env.field(of_classes, c"$lc", c"J").map(Field::new);
    env.forget(of_classes);
    field
}

fn size(counting: &Counting, env: Env, class: jclass, made: jobject) -> Option<u32> {
    let bytes = match made.is_null() {
        true => size_of_new(counting, env, class)?,
        false => counting.jvmti.object_size(made)?,
    };
    // Objects are aligned to 8 bytes or more, and an object with fields alone is smaller than 2 GB.
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| bytes % OBJECT_ALIGNMENT == 0)
}

/// [`CLONES`] if `clone` is that of `Object`.
fn clones(counting: &Counting, env: Env, class: jclass) -> u32 {
    let method = env.method(class, c"clone", c"()Ljava/lang/Object;");
    let owner = method.and_then(|method| counting.jvmti.declaring_class(method));
    let signature = owner.and_then(|owner| {
        let signature = counting.jvmti.signature(owner);
        env.forget(owner);
        signature
    });
    match signature.as_deref() {
        Some("Ljava/lang/Object;") => CLONES,
        _ => 0,
    }
}
