//! The class cache: the JDK's classes with hooks from an earlier run, in a file of the user. A JVM that starts need not rewrite
//! the same few hundred classes again.
//!
//! A class is found by the hash of its bytes. The file's key covers what all its hooks depend on: the agent's own code, and the
//! selected kinds of events. Each entry records what the code registry knew of other classes. A class gets ids of this run, as
//! if it had been rewritten. So a class from the cache equals the class that rewriting would make. Damaged or foreign files
//! count as missing.
//!
//! ```text
//! class bytes ─► file: found? ─► untracked methods as then? ─► code registry ─► ids replace placeholders ─► VM
//!                  └──────────── no: parsed, planned, rewritten ─► kept ─► new file, at the end or once loading has settled
//! ```
//!
//! Read `cache_entry` first, then `cache_file`, `cache_folder` and `own_code`.

mod cache_entry;
mod cache_file;
mod cache_folder;
mod own_code;
#[cfg(test)]
mod restore_tests;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lucce_instrument::MethodInstrumentation;

use crate::classes::ClassParts;
use crate::classes::rewriting::{RewriteOutcome, hooks_for_loader};
use crate::memory::counter::increment_counter;
use crate::options::LogLevel;
use crate::registry::class_image::ClassImage;
use crate::registry::{ClassLoaderId, CodeRegistry, FirstClassIds, NATIVE_LINE};
use crate::thread::carrier;

use cache_entry::{CacheEntryView, NewCacheEntry, read_constants};
use cache_file::{CacheEntries, CacheHash, hash_bytes};

pub use cache_entry::{
    NATIVE_PLACEHOLDERS, PLACEHOLDER_IDS, PlaceholderConstants, find_placeholders,
    replace_placeholders,
};

/// Maximum size of the file, and of the entries that wait to be written.
const MAX_FILE_BYTES: usize = 48 << 20;
const MAX_UNWRITTEN_BYTES: usize = 16 << 20;
/// Minimum number of additional classes for a new file; an eighth more classes also suffices.
const MIN_NEW_CLASSES: usize = 16;

/// The class cache. Without a folder it does nothing.
#[derive(Default)]
pub struct HookedClassCache(Option<CacheFile>);

struct CacheFile {
    folder: PathBuf,
    key: u128,
    written: Option<CacheEntries>,
    unwritten: Mutex<UnwrittenEntries>,
    /// The number of lookups.
    lookups: AtomicUsize,
    /// The number of lookups at the last [`HookedClassCache::write_if_settled`].
    lookups_before: AtomicUsize,
}

/// Entries that are not in the file.
#[derive(Default)]
struct UnwrittenEntries {
    entries: Vec<(CacheHash, Vec<u8>)>,
    bytes: usize,
    /// An entry found no room.
    is_full: bool,
    /// The entries were written; no more are accepted.
    is_closed: bool,
}

/// Classes whose untracked methods were looked up while hooks were decided, with their `CodeRegistry::untracked_hash`.
pub type UntrackedQueries = RefCell<BTreeMap<String, u64>>;

/// Records a lookup of the class's untracked methods.
pub fn record_untracked_query(queries: &UntrackedQueries, registry: &CodeRegistry, class: &str) {
    let mut queries = queries.borrow_mut();
    if !queries.contains_key(class) {
        queries.insert(class.into(), registry.untracked_hash(class));
    }
}

/// A class with its hooks, for other runs.
pub struct CacheableClass<'k> {
    pub plain: &'k [u8],
    pub acts_as_carrier: bool,
    pub name: &'k str,
    pub instrumentations: &'k [MethodInstrumentation],
    pub untracked_queries: &'k UntrackedQueries,
    /// Indices of natives with a bracket.
    pub natives: &'k [usize],
    /// The bytes with hooks, with placeholders for ids.
    pub hooked: Option<(&'k [u8], &'k PlaceholderConstants)>,
}

impl HookedClassCache {
    /// Opens the cache, if hooks depend on nothing beyond its key.
    pub fn open(agent: ClassParts<'_>) -> HookedClassCache {
        let options = &agent.core.options;
        let depends_on_more = options.is_partial()
            || options.compared_jdk.is_some()
            || agent.counters.tracking.records_calls()
            || agent.core.hookless.is_some()
            || !agent.counters.tracking.is_lazy();
        let folder = cache_folder::choose_folder(&options.class_cache).filter(|_| !depends_on_more);
        let Some((folder, own)) = folder.zip(own_code::hash_own_code()) else {
            return HookedClassCache::default();
        };
        let hooks = hooks_for_loader(agent, ClassLoaderId::BOOT);
        let kinds = (options.kinds_in_code(), options.is_idle());
        let methods = (options.events.methods(), &options.resources);
        let key = hash_bytes(format!("{own:x} {hooks:?} {kinds:?} {methods:?}").as_bytes());
        let known = cache_folder::open(&folder, &cache_folder::file_name(key));
        HookedClassCache(Some(CacheFile {
            folder,
            key,
            written: known.and_then(|file| CacheEntries::open(file, key)),
            unwritten: Mutex::default(),
            lookups: AtomicUsize::new(0),
            lookups_before: AtomicUsize::new(0),
        }))
    }

    fn file_for_loader(&self, loader: ClassLoaderId) -> Option<&CacheFile> {
        self.0.as_ref().filter(|_| loader == ClassLoaderId::BOOT)
    }

    /// Whether classes of this loader are cached. Their hooks then need placeholders for ids.
    pub fn accepts_loader(&self, loader: ClassLoaderId) -> bool {
        self.file_for_loader(loader)
            .is_some_and(|place| !place.lock_unwritten().is_closed)
    }

    /// The class as an earlier run made it, now registered. `None`: not cached.
    pub fn find_class(
        &self,
        agent: ClassParts<'_>,
        loader: ClassLoaderId,
        bytes: &[u8],
    ) -> Option<RewriteOutcome> {
        let place = self.file_for_loader(loader)?;
        place.lookups.fetch_add(1, Ordering::Relaxed);
        let entries = place.written.as_ref()?;
        entries.find_entry(hash_bytes(bytes), |entry| {
            restore_class(agent, loader, &CacheEntryView::parse(entry)?)
        })
    }

    /// Keeps a class for the next file.
    pub fn add_class(&self, agent: ClassParts<'_>, kept: &CacheableClass<'_>) {
        let Some(place) = self.file_for_loader(ClassLoaderId::BOOT) else {
            return;
        };
        let entry = kept.encode_entry(&agent.core.registry());
        let mut new = place.lock_unwritten();
        let Some(entry) = entry.filter(|_| !new.is_closed) else {
            return;
        };
        new.is_full |= new.bytes + entry.len() > MAX_UNWRITTEN_BYTES;
        if !new.is_full {
            new.bytes += entry.len();
            new.entries.push((hash_bytes(kept.plain), entry));
        }
    }

    /// Called some seconds after the start. On a slow machine the program may still be starting. So the file is written only if
    /// hardly any class was loaded in this time, or no room is left.
    pub fn write_if_settled(&self, agent: ClassParts<'_>) {
        let Some(place) = &self.0 else { return };
        let now = place.lookups.load(Ordering::Relaxed);
        let before = place.lookups_before.swap(now, Ordering::Relaxed);
        if now - before < MIN_NEW_CLASSES || place.lock_unwritten().is_full {
            self.close(agent);
        }
    }

    /// Writes new entries, and accepts no more.
    pub fn close(&self, agent: ClassParts<'_>) {
        let Some(place) = &self.0 else { return };
        let new = {
            let mut new = place.lock_unwritten();
            new.is_closed = true;
            std::mem::take(&mut new.entries)
        };
        let before = place.written.as_ref().map_or(0, |known| {
            known.free_buffer();
            known.len()
        });
        if new.len() < MIN_NEW_CLASSES.min(before / 8).max(1) {
            return;
        }
        if let Err(error) = place.write_file(new) {
            let folder = place.folder.display();
            let text = format!("no cache of classes in {folder}: {error}");
            agent.core.options.print_message(LogLevel::Debug, &text);
        }
    }
}

impl CacheFile {
    fn lock_unwritten(&self) -> MutexGuard<'_, UnwrittenEntries> {
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a file with the new entries and the present file's entries: other JVMs may have written it meanwhile.
    fn write_file(&self, new: Vec<(CacheHash, Vec<u8>)>) -> std::io::Result<()> {
        let name = cache_folder::file_name(self.key);
        let now = cache_folder::open(&self.folder, &name);
        let now = now.and_then(|file| CacheEntries::open(file, self.key));
        let mut entries = new;
        let stored = now.iter().flat_map(CacheEntries::read_all);
        let more: Vec<_> = stored.filter(|entry| !entries.contains(entry)).collect();
        entries.extend(more);
        let bytes = cache_file::encode_file(self.key, entries, MAX_FILE_BYTES);
        cache_folder::replace_file(&self.folder, &name, &bytes)
    }
}

impl CacheableClass<'_> {
    /// `None`: an entry cannot express what the registry has of the class.
    fn encode_entry(&self, registry: &CodeRegistry) -> Option<Vec<u8>> {
        let class = registry.find_class_id(ClassLoaderId::BOOT, self.name)?;
        let image = registry.write_class_image(class, self.instrumentations)?;
        let entry = NewCacheEntry {
            acts_as_carrier: self.acts_as_carrier,
            untracked_states: &self.untracked_queries.borrow(),
            natives: self.natives,
            image: &image,
            hooked: self.hooked,
        };
        entry.to_bytes()
    }
}

/// `None`: the entry is invalid, the registry has changed since, or it is full.
fn restore_class(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    entry: &CacheEntryView<'_>,
) -> Option<RewriteOutcome> {
    let image = ClassImage::parse(entry.image)?;
    let mut registry = agent.core.registry_mut();
    let as_it_was = |(class, state): &(&str, u64)| registry.untracked_hash(class) == *state;
    if !entry.untracked_states.iter().all(as_it_was) {
        return None;
    }
    let ids = registry.restore_class(loader, &image)?;
    drop(registry);
    agent
        .classes
        .method_watch
        .forget_class(loader, image.class_name());
    if entry.acts_as_carrier {
        carrier::enable_carrier_lookup();
    }
    let Some((bytes, rows)) = entry.hooked else {
        return Some(RewriteOutcome::NoHooks);
    };
    let sites = add_native_sites(agent, &entry.natives, ids);
    let mut bytes = bytes.to_vec();
    replace_placeholders(&mut bytes, read_constants(rows), ids, &sites)?;
    increment_counter(&agent.core.counts.classes);
    increment_counter(&agent.core.counts.classes_cached);
    Some(RewriteOutcome::Hooked(bytes))
}

/// Adds the sites of natives with a bracket.
pub fn add_native_sites(agent: ClassParts<'_>, natives: &[usize], ids: FirstClassIds) -> Vec<u32> {
    let site = |index: &usize| {
        agent
            .core
            .find_or_add_site(ids.first_method + *index as u32, NATIVE_LINE)
    };
    natives.iter().map(site).collect()
}
