//! Classes of the JDK with their hooks, from an earlier run: a file of the user's, so that a JVM that starts need not
//! rewrite the same few hundred classes again.
//!
//! A class is found by the sum of its bytes. What else its hooks depend on is the same for all that the file has, and in
//! its key: the agent's own code, and the kinds of hooks that were asked for. Or it is in the entry: what the book knew
//! of other classes. The ids that a class gets are this run's, as if it had been rewritten. So a class comes out of the cache as it
//! would have been made, or not at all; whatever is wrong with a file is as if it were not there.
//!
//! ```text
//! class bytes ─► file: found? ─► what was asked of the book is as it was? ─► book ─► ids into the constants ─► VM
//!                  └──────────── no: parsed, planned, rewritten ─► kept ─► at the end, or once few more come: a new file
//! ```

mod entry;
#[cfg(test)]
mod exact;
mod file;
mod folder;
mod own_code;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lucce_hooks::Shape;

use crate::book::image::Image;
use crate::book::{Book, Ids, Loader, NATIVE};
use crate::classes::Classes;
use crate::memory::counter::count;
use crate::options::Level;
use crate::thread::carrier;

use entry::{Entry, Made, constants};
use file::{Entries, Sum, sum};

pub use entry::{Constants, NATIVES, STANDING_FOR, put_ids, standing_for_ids};

/// How large the file may become, and what is kept for it until it is written.
const LARGEST: usize = 48 << 20;
const MOST_KEPT: usize = 16 << 20;
/// A new file is written when it has so many classes more than the one before, or an eighth more.
const WORTH: usize = 16;

/// Without a place it does nothing.
#[derive(Default)]
pub struct Cache(Option<CacheFile>);

struct CacheFile {
    folder: PathBuf,
    key: u128,
    known: Option<Entries>,
    new: Mutex<New>,
    /// How many classes were looked for.
    asked: AtomicUsize,
    /// How many had been by the last [`Cache::settle`].
    before: AtomicUsize,
}

/// What is not in the file.
#[derive(Default)]
struct New {
    entries: Vec<(Sum, Vec<u8>)>,
    bytes: usize,
    /// There was no room for one more.
    is_full: bool,
    /// It has been written, and no more are kept.
    is_closed: bool,
}

/// What was asked of the book while a class's hooks were decided: classes, and which of their methods are quiet.
pub type Asked = RefCell<BTreeMap<String, u64>>;

/// Notes that the class was asked for.
pub fn asks(asked: &Asked, book: &Book, class: &str) {
    let mut asked = asked.borrow_mut();
    if !asked.contains_key(class) {
        asked.insert(class.into(), book.quiet_state(class));
    }
}

/// A class as it was made, for other runs.
pub struct Kept<'k> {
    pub plain: &'k [u8],
    pub acts_as_carrier: bool,
    pub name: &'k str,
    pub shapes: &'k [Shape],
    pub asked: &'k Asked,
    /// Indices of natives with a bracket.
    pub natives: &'k [usize],
    /// With what stands for ids.
    pub hooked: Option<(&'k [u8], &'k Constants)>,
}

impl Cache {
    /// Looks for the file, if hooks depend on nothing but what it is found by.
    pub fn open(classes: &Classes) -> Cache {
        let options = &classes.options;
        let depends_on_more = options.is_partial()
            || options.like.is_some()
            || classes.recorder.is_some()
            || classes.attached.is_some()
            || !classes.comparison.is_off();
        let folder = folder::place(&options.class_cache).filter(|_| !depends_on_more);
        let Some((folder, own)) = folder.zip(own_code::sum()) else {
            return Cache::default();
        };
        let hooks = super::load::hooks_of(classes, Loader::BOOT);
        let kinds = (options.hooks().in_code(), options.is_idle());
        let key = sum(format!("{own:x} {hooks:?} {kinds:?}").as_bytes());
        let known = folder::open(&folder, &folder::name(key));
        Cache(Some(CacheFile {
            folder,
            key,
            known: known.and_then(|file| Entries::read(file, key)),
            new: Mutex::default(),
            asked: AtomicUsize::new(0),
            before: AtomicUsize::new(0),
        }))
    }

    fn place(&self, loader: Loader) -> Option<&CacheFile> {
        self.0.as_ref().filter(|_| loader == Loader::BOOT)
    }

    /// Whether classes of this loader are kept, for which something has to stand for ids.
    pub fn keeps(&self, loader: Loader) -> bool {
        self.place(loader)
            .is_some_and(|place| !place.fresh().is_closed)
    }

    /// The class as an earlier run made it, noted in the book; within, its bytes if it has hooks. `None`: it is to be made.
    pub fn find(&self, classes: &Classes, loader: Loader, bytes: &[u8]) -> Option<Option<Vec<u8>>> {
        let place = self.place(loader)?;
        place.asked.fetch_add(1, Ordering::Relaxed);
        let known = place.known.as_ref()?;
        known.find(sum(bytes), |entry| {
            restore(classes, loader, &Entry::read(entry)?)
        })
    }

    /// Keeps a class for the next file.
    pub fn keep(&self, classes: &Classes, kept: &Kept<'_>) {
        let Some(place) = self.place(Loader::BOOT) else {
            return;
        };
        let entry = kept.entry(&classes.book());
        let mut new = place.fresh();
        let Some(entry) = entry.filter(|_| !new.is_closed) else {
            return;
        };
        new.is_full |= new.bytes + entry.len() > MOST_KEPT;
        if !new.is_full {
            new.bytes += entry.len();
            new.entries.push((sum(kept.plain), entry));
        }
    }

    /// Some seconds have gone by. A machine may be so slow that the program still starts: only where hardly a class was
    /// loaded in this time, or there is no room for more, what is new is written.
    pub fn settle(&self, classes: &Classes) {
        let Some(place) = &self.0 else { return };
        let now = place.asked.load(Ordering::Relaxed);
        let before = place.before.swap(now, Ordering::Relaxed);
        if now - before < WORTH || place.fresh().is_full {
            self.close(classes);
        }
    }

    /// What is new is written, and no more are kept.
    pub fn close(&self, classes: &Classes) {
        let Some(place) = &self.0 else { return };
        let new = {
            let mut new = place.fresh();
            new.is_closed = true;
            std::mem::take(&mut new.entries)
        };
        let before = place.known.as_ref().map_or(0, |known| {
            known.rest();
            known.len()
        });
        if new.len() < WORTH.min(before / 8).max(1) {
            return;
        }
        if let Err(error) = place.write(new) {
            let folder = place.folder.display();
            let text = format!("no cache of classes in {folder}: {error}");
            classes.options.say(Level::Debug, &text);
        }
    }
}

impl CacheFile {
    fn fresh(&self) -> MutexGuard<'_, New> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With what the file has by now: other JVMs may have written it.
    fn write(&self, new: Vec<(Sum, Vec<u8>)>) -> std::io::Result<()> {
        let name = folder::name(self.key);
        let now = folder::open(&self.folder, &name);
        let now = now.and_then(|file| Entries::read(file, self.key));
        let mut entries = new;
        let known = now.iter().flat_map(Entries::all);
        let more: Vec<_> = known.filter(|entry| !entries.contains(entry)).collect();
        entries.extend(more);
        let bytes = file::bytes(self.key, entries, LARGEST);
        folder::put(&self.folder, &name, &bytes)
    }
}

impl Kept<'_> {
    /// `None`: the book has more of it than an entry can say.
    fn entry(&self, book: &Book) -> Option<Vec<u8>> {
        let class = book.class_id(Loader::BOOT, self.name)?;
        let image = book.image(class, self.shapes)?;
        let made = Made {
            acts_as_carrier: self.acts_as_carrier,
            asked: &self.asked.borrow(),
            natives: self.natives,
            image: &image,
            hooked: self.hooked,
        };
        made.write()
    }
}

/// `None`: the entry is wrong, the book is not as it was then, or is full.
fn restore(classes: &Classes, loader: Loader, entry: &Entry<'_>) -> Option<Option<Vec<u8>>> {
    let image = Image::read(entry.image)?;
    let mut book = classes.book_mut();
    let as_it_was = |(class, state): &(&str, u64)| book.quiet_state(class) == *state;
    if !entry.asked.iter().all(as_it_was) {
        return None;
    }
    let ids = book.restore(loader, &image)?;
    drop(book);
    classes.watch.forget(loader, image.name());
    if entry.acts_as_carrier {
        carrier::hooked();
    }
    let Some((bytes, rows)) = entry.hooked else {
        return Some(None);
    };
    let sites = native_sites(classes, &entry.natives, ids);
    let mut bytes = bytes.to_vec();
    put_ids(&mut bytes, constants(rows), ids, &sites)?;
    count(&classes.counts.classes);
    count(&classes.counts.classes_cached);
    Some(Some(bytes))
}

/// Of natives with a bracket.
pub fn native_sites(classes: &Classes, natives: &[usize], ids: Ids) -> Vec<u32> {
    let site = |index: &usize| classes.extra_site(ids.first_method + *index as u32, NATIVE);
    natives.iter().map(site).collect()
}
