//! A class from the cache is the very one that rewriting makes: for each class of the base module of each JDK of this
//! machine, the same bytes, and the same methods, sites and lines in the book.

use std::collections::BTreeMap;

use lucce_bytecode::{ClassFile, rewrite};
use lucce_hooks::kinds::{ALLOC, IO, LOCK, THREAD};
use lucce_hooks::{self as hooks, Hooks, Kinds, Shape, Wants};

use super::entry::{Entry, Made, constants, put_ids, standing_for_ids};
use super::{Asked, NATIVES, STANDING_FOR, asks};
use crate::book::image::Image;
use crate::book::{Book, Ids, Loader, NewClass, may_be_quiet};
use crate::classes::load::bracketed;

#[path = "../../../../bytecode/tests/all/jdk.rs"]
#[expect(
    dead_code,
    reason = "the tests of bytecode compile and keep files, too"
)]
mod jdk;

/// All but entries.
fn kinds() -> Kinds {
    let kinds = [&ALLOC, &IO, &LOCK, &THREAD].into_iter();
    kinds.fold(Kinds::default(), |all, kind| all.with(kind))
}

/// Ids as large as those that have a constant of their own: else an instruction has them, and the code is another one.
const LATER: Ids = Ids {
    first_method: 100_000,
    first_site: 1_000_000,
};
const FIRST_NATIVE: u32 = 3_000_000;

fn shapes(book: &Book, class: &ClassFile<'_>, asked: &Asked) -> Vec<Shape> {
    let wants = Wants {
        events: kinds(),
        idle: false,
        trusted: true,
        holds: &|_| true,
        jdk_is_out_of_scope: false,
        calls_quiet: &|call| {
            if may_be_quiet(&call.owner) {
                asks(asked, book, &call.owner);
            }
            book.is_quiet(&call.owner, &call.name, &call.descriptor)
        },
    };
    hooks::shapes(class, wants).unwrap()
}

fn add(book: &mut Book, class: &ClassFile<'_>, shapes: &[Shape]) -> Ids {
    let source = class.source_file();
    let methods = class.methods().iter();
    let methods: Vec<_> = methods
        .map(|m| (&*m.name, &*m.descriptor, m.access))
        .collect();
    let new = NewClass {
        name: class.name(),
        source: source.as_deref(),
        loader: Loader::BOOT,
        methods: &methods,
        shapes,
    };
    book.add(&new).unwrap()
}

/// A class's bytes with hooks, and the integer constants that hooks brought: the place of each in the bytes, and its value.
type Rewritten = (Vec<u8>, Vec<(usize, i32)>);

/// With these ids, rewritten; `None`: nothing is inserted, or the constant pool has too little room.
fn rewritten(
    class: &ClassFile<'_>,
    shapes: &[Shape],
    (ids, first_native): (Ids, u32),
) -> Option<Rewritten> {
    let natives = bracketed(shapes);
    let native = |index: usize| {
        let at = natives.iter().position(|native| *native == index).unwrap();
        first_native + at as u32
    };
    let (method, site) = (ids.first_method, ids.first_site);
    let hooks = Hooks {
        exits: false,
        at_entry: false,
        restores: false,
        trusted: true,
        inherits: false,
        kinds: kinds(),
    };
    let plan = hooks::plan(class, shapes, method, site, &native, hooks);
    let done = rewrite(class, &plan).unwrap();
    assert!(done.skipped.is_empty(), "{}", class.name());
    let changed = !plan.methods.is_empty() || !plan.fields.is_empty();
    changed.then_some((done.bytes, done.integers?))
}

#[derive(Default)]
struct Seen {
    classes: usize,
    changed: usize,
    with_natives: usize,
    asked: usize,
}

fn compare(made: &mut Book, restored: &mut Book, bytes: &[u8], seen: &mut Seen) {
    let class = ClassFile::parse(bytes).unwrap();
    let asked = Asked::default();
    let shapes = shapes(made, &class, &asked);
    let natives = bracketed(&shapes);
    let ids = add(made, &class, &shapes);
    let id = made.class_id(Loader::BOOT, class.name()).unwrap();
    let image = made.image(id, &shapes).unwrap();
    let kept = rewritten(&class, &shapes, (STANDING_FOR, NATIVES));
    let kept = kept.map(|(bytes, integers)| (bytes, standing_for_ids(&integers).unwrap()));
    let asked: BTreeMap<String, u64> = asked.into_inner();
    let entry = Made {
        acts_as_carrier: false,
        asked: &asked,
        natives: &natives,
        image: &image,
        hooked: kept
            .as_ref()
            .map(|(bytes, constants)| (&bytes[..], constants)),
    };
    let entry = entry.write().unwrap();
    let entry = Entry::read(&entry).unwrap();
    // The other book is as the first one was.
    for (class, state) in &entry.asked {
        assert_eq!(restored.quiet_state(class), *state, "{class}");
    }
    let image_again = Image::read(entry.image).unwrap();
    assert_eq!(image_again.name(), class.name());
    let ids_again = restored.restore(Loader::BOOT, &image_again).unwrap();
    assert_eq!(
        (ids_again.first_method, ids_again.first_site),
        (ids.first_method, ids.first_site)
    );
    let id_again = restored.class_id(Loader::BOOT, class.name()).unwrap();
    assert_eq!(restored.image(id_again, &shapes).unwrap(), image);
    let sites: u32 = shapes.iter().map(|shape| shape.places.len() as u32).sum();
    for site in ids.first_site..ids.first_site + sites {
        let of = |book: &Book| {
            let info = book.site(site).unwrap();
            let what = format!("{:?}", info.what);
            (info.method, info.bci(), book.line(&info), what)
        };
        assert_eq!(of(restored), of(made), "{} {site}", class.name());
    }
    seen.classes += 1;
    seen.asked += entry.asked.len();
    seen.with_natives += usize::from(!natives.is_empty());
    let Some((bytes, rows)) = entry.hooked else {
        return;
    };
    seen.changed += 1;
    let sites: Vec<u32> = (FIRST_NATIVE..).take(entry.natives.len()).collect();
    let mut bytes = bytes.to_vec();
    put_ids(&mut bytes, constants(rows), LATER, &sites).unwrap();
    let (expected, _) = rewritten(&class, &shapes, (LATER, FIRST_NATIVE)).unwrap();
    assert!(bytes == expected, "{}", class.name());
}

#[test]
fn what_is_kept_is_what_rewriting_makes() {
    for jdk in jdk::images() {
        let (mut made, mut restored) = (Book::default(), Book::default());
        let mut seen = Seen::default();
        jdk.for_each_class(|class| {
            if class.module == "java.base" && class.name != "module-info" {
                compare(&mut made, &mut restored, &class.bytes, &mut seen);
            }
        });
        let Seen {
            classes,
            changed,
            with_natives,
            asked,
        } = seen;
        println!(
            "JDK {}: {classes} classes, {changed} with hooks, {with_natives} with natives, {asked} asked for",
            jdk.version
        );
        assert!(classes > 5000 && changed > 3000 && with_natives > 0 && asked > classes);
    }
}
