//! A class from the cache equals the class that rewriting makes. The test compares each class of the base module of each JDK on
//! this machine: bytes, and registered methods, sites and lines.

use std::collections::BTreeMap;

use lucce_bytecode::{ClassFile, rewrite};
use lucce_classkit::jdks;
use lucce_instrument::kinds::{ALLOC, IO, LOCK, THREAD};
use lucce_instrument::{
    self as hooks, EventKindSet, HookOptions, InstrumentationOptions, MethodInstrumentation,
};
use lucce_options::{MethodSelection, ResourceRules};

use super::cache_entry::{
    CacheEntryView, NewCacheEntry, find_placeholders, read_constants, replace_placeholders,
};
use super::{NATIVE_PLACEHOLDERS, PLACEHOLDER_IDS, UntrackedQueries, record_untracked_query};
use crate::classes::load::bracketed_natives;
use crate::registry::class_image::ClassImage;
use crate::registry::{
    ClassDefinition, ClassLoaderId, CodeRegistry, FirstClassIds, may_be_untracked,
};

/// All kinds but method entries.
fn kinds_without_entries() -> EventKindSet {
    let kinds = [&ALLOC, &IO, &LOCK, &THREAD].into_iter();
    kinds.fold(EventKindSet::default(), |all, kind| all.with_kind(kind))
}

/// Ids so large that each has its own constant. Smaller ids are part of instructions, which changes the code.
const LARGE_IDS: FirstClassIds = FirstClassIds {
    first_method: 100_000,
    first_site: 1_000_000,
};
const FIRST_NATIVE: u32 = 3_000_000;

fn decide_instrumentation(
    registry: &CodeRegistry,
    class: &ClassFile<'_>,
    queries: &UntrackedQueries,
) -> Vec<MethodInstrumentation> {
    let wants = InstrumentationOptions {
        events: kinds_without_entries(),
        idle: false,
        trusted: true,
        holds: &|_| true,
        jdk_is_out_of_scope: false,
        methods: &MethodSelection::default(),
        resources: &ResourceRules::default(),
        calls_untracked: &|call| {
            if may_be_untracked(&call.owner) {
                record_untracked_query(queries, registry, &call.owner);
            }
            registry.is_untracked(&call.owner, &call.name, &call.descriptor)
        },
    };
    hooks::analyze_class(class, wants).unwrap()
}

fn add_class(
    registry: &mut CodeRegistry,
    class: &ClassFile<'_>,
    instrumentations: &[MethodInstrumentation],
) -> FirstClassIds {
    let source = class.source_file();
    let methods = class.methods().iter();
    let methods: Vec<_> = methods
        .map(|m| (&*m.name, &*m.descriptor, m.access))
        .collect();
    let new = ClassDefinition {
        name: class.name(),
        source: source.as_deref(),
        loader: ClassLoaderId::BOOT,
        methods: &methods,
        instrumentations,
    };
    registry.add_class(&new).unwrap()
}

/// A class's bytes with hooks, and the integer constants of the hooks: the offset of each and its value.
type BytesWithConstants = (Vec<u8>, Vec<(usize, i32)>);

/// Rewrites with these ids. `None`: nothing is inserted, or the constant pool has too little room.
fn rewrite_class(
    class: &ClassFile<'_>,
    instrumentations: &[MethodInstrumentation],
    (ids, first_native): (FirstClassIds, u32),
) -> Option<BytesWithConstants> {
    let natives = bracketed_natives(instrumentations);
    let native = |index: usize| {
        let at = natives.iter().position(|native| *native == index).unwrap();
        first_native + at as u32
    };
    let (method, site) = (ids.first_method, ids.first_site);
    let hooks = HookOptions {
        defers_entries: false,
        exits: false,
        at_entry: false,
        restores: false,
        trusted: true,
        jdk_is_out_of_scope: false,
        inherits: false,
        kinds: kinds_without_entries(),
        native_actions: false,
    };
    let plan = hooks::plan_class(class, instrumentations, method, site, &native, hooks);
    let done = rewrite(class, &plan).unwrap();
    assert!(done.skipped.is_empty(), "{}", class.name());
    let changed = !plan.methods.is_empty() || !plan.fields.is_empty();
    changed.then_some((done.bytes, done.integers?))
}

#[derive(Default)]
struct RestoredClassCounts {
    classes: usize,
    changed: usize,
    with_natives: usize,
    queries: usize,
}

fn compare_class(
    made: &mut CodeRegistry,
    restored: &mut CodeRegistry,
    bytes: &[u8],
    seen: &mut RestoredClassCounts,
) {
    let class = ClassFile::parse(bytes).unwrap();
    let queries = UntrackedQueries::default();
    let instrumentations = decide_instrumentation(made, &class, &queries);
    let natives = bracketed_natives(&instrumentations);
    let ids = add_class(made, &class, &instrumentations);
    let id = made
        .find_class_id(ClassLoaderId::BOOT, class.name())
        .unwrap();
    let image = made.write_class_image(id, &instrumentations).unwrap();
    let kept = rewrite_class(
        &class,
        &instrumentations,
        (PLACEHOLDER_IDS, NATIVE_PLACEHOLDERS),
    );
    let kept = kept.map(|(bytes, integers)| (bytes, find_placeholders(&integers).unwrap()));
    let queries: BTreeMap<String, u64> = queries.into_inner();
    let entry = NewCacheEntry {
        acts_as_carrier: false,
        untracked_states: &queries,
        natives: &natives,
        image: &image,
        hooked: kept
            .as_ref()
            .map(|(bytes, constants)| (&bytes[..], constants)),
    };
    let entry = entry.to_bytes().unwrap();
    let entry = CacheEntryView::parse(&entry).unwrap();
    // The other registry equals the first one.
    for (class, state) in &entry.untracked_states {
        assert_eq!(restored.untracked_hash(class), *state, "{class}");
    }
    let image_again = ClassImage::parse(entry.image).unwrap();
    assert_eq!(image_again.class_name(), class.name());
    let ids_again = restored
        .restore_class(ClassLoaderId::BOOT, &image_again)
        .unwrap();
    assert_eq!(
        (ids_again.first_method, ids_again.first_site),
        (ids.first_method, ids.first_site)
    );
    let id_again = restored
        .find_class_id(ClassLoaderId::BOOT, class.name())
        .unwrap();
    assert_eq!(
        restored
            .write_class_image(id_again, &instrumentations)
            .unwrap(),
        image
    );
    let sites: u32 = instrumentations
        .iter()
        .map(|instrumentation| instrumentation.places.len() as u32)
        .sum();
    for site in ids.first_site..ids.first_site + sites {
        let of = |registry: &CodeRegistry| {
            let info = registry.site(site).unwrap();
            let what = format!("{:?}", info.kind);
            (info.method, info.bci(), registry.line_of_site(&info), what)
        };
        assert_eq!(of(restored), of(made), "{} {site}", class.name());
    }
    seen.classes += 1;
    seen.queries += entry.untracked_states.len();
    seen.with_natives += usize::from(!natives.is_empty());
    let Some((bytes, rows)) = entry.hooked else {
        return;
    };
    seen.changed += 1;
    let sites: Vec<u32> = (FIRST_NATIVE..).take(entry.natives.len()).collect();
    let mut bytes = bytes.to_vec();
    replace_placeholders(&mut bytes, read_constants(rows), LARGE_IDS, &sites).unwrap();
    let (expected, _) =
        rewrite_class(&class, &instrumentations, (LARGE_IDS, FIRST_NATIVE)).unwrap();
    assert!(bytes == expected, "{}", class.name());
}

#[test]
fn what_is_kept_is_what_rewriting_makes() {
    for jdk in jdks::images() {
        let (mut made, mut restored) = (CodeRegistry::default(), CodeRegistry::default());
        let mut seen = RestoredClassCounts::default();
        jdk.for_each_class(|class| {
            if class.module == "java.base" && class.name != "module-info" {
                compare_class(&mut made, &mut restored, &class.bytes, &mut seen);
            }
        });
        let RestoredClassCounts {
            classes,
            changed,
            with_natives,
            queries,
        } = seen;
        println!(
            "JDK {}: {classes} classes, {changed} with hooks, {with_natives} with natives, {queries} queries",
            jdk.version
        );
        assert!(classes > 5000 && changed > 3000 && with_natives > 0 && queries > classes);
    }
}
