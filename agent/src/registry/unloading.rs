//! Unloading: which loaders have a class, and what is freed when all of them are gone.
//!
//! Removed ids are marked and their rows are freed at once. Indexes with other keys are swept later, when enough was removed.

use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::memory::bit_set::BitSet;

use super::sites::RegisteredSiteKind;
use super::{ClassLoaderId, CodeRegistry, InternedText, RegisteredClass, row_of_id};

impl CodeRegistry {
    /// Adds `loader` to the class's loaders.
    pub fn link_loader(&mut self, loader: ClassLoaderId, class: u32) {
        let Some(info) = self.classes.get_mut(row_of_id(class)) else {
            return;
        };
        info.loader = loader;
        info.owner_count += 1;
        let name = info.name;
        self.classes_by_name
            .entry(loader)
            .or_default()
            .insert(name, class);
        self.classes_of_loader
            .entry(loader)
            .or_default()
            .push(class);
    }

    /// Like [`link_loader`](CodeRegistry::link_loader), unless the loader has the class already.
    pub fn link_loader_once(&mut self, loader: ClassLoaderId, class: u32) {
        let name = self.class(class).map(|info| info.name);
        let named_class = || self.classes_by_name.get(&loader)?.get(&name?).copied();
        if named_class() != Some(class) {
            self.link_loader(loader, class);
        }
    }

    /// The loaders of the class that contains a site.
    pub fn loaders_of_site(&self, site: u32) -> Vec<ClassLoaderId> {
        let method = self.site(site).and_then(|site| self.method(site.method));
        let Some(class) = method.map(|method| method.class) else {
            return Vec::new();
        };
        let have = |(loader, classes): (&ClassLoaderId, &Vec<u32>)| {
            classes.contains(&class).then_some(*loader)
        };
        self.classes_of_loader.iter().filter_map(have).collect()
    }

    /// Keeps the class until [`release_class`](CodeRegistry::release_class), even if its loaders are gone.
    pub fn retain_class(&mut self, class: u32) {
        if let Some(info) = self.classes.get_mut(row_of_id(class)) {
            info.owner_count += 1;
        }
    }

    /// Removes one loader of the class, or ends [`retain_class`](CodeRegistry::retain_class).
    pub fn release_class(&mut self, class: u32) {
        if let Some(info) = self.classes.get_mut(row_of_id(class)) {
            info.owner_count = info.owner_count.saturating_sub(1);
            if info.owner_count == 0 {
                let info = *info;
                self.remove_class(class, &info);
            }
        }
    }

    /// Removes unloaded loaders and their classes.
    pub fn remove_loaders(&mut self, loaders: &[ClassLoaderId]) {
        for loader in loaders {
            self.classes_by_name.remove(loader);
            for class in self.classes_of_loader.remove(loader).unwrap_or_default() {
                self.release_class(class);
            }
        }
    }

    /// Whether enough was removed to justify [`sweep_indexes`](CodeRegistry::sweep_indexes).
    pub fn is_sweep_due(&self) -> bool {
        const LEAST: usize = 1 << 14;
        self.removed_since_sweep >= LEAST.max(self.live_methods / 2)
            || self.removed_class_names.len() >= LEAST.max(self.live_class_names.len() / 2)
    }

    fn remove_class(&mut self, class: u32, info: &RegisteredClass) {
        let methods = info.first_method..info.first_method + info.methods;
        for method in methods.clone() {
            if let Some((from, to)) = self.method(method).map(|method| method.lines) {
                self.lines.drop_rows(from as usize..to as usize);
            }
        }
        let sites = info.first_site..info.first_site + info.sites;
        for site in sites.clone() {
            self.unpacked_sites.remove(&site);
            self.measured_sites.remove(&site);
        }
        self.drop_sites(sites);
        let allocated = info.first_allocated as usize;
        self.allocated_names
            .drop_rows(allocated..allocated + info.allocated_count as usize);
        self.methods
            .drop_rows(row_of_id(methods.start)..row_of_id(methods.end));
        self.removed_methods
            .insert_range(methods.start, methods.end);
        self.classes
            .drop_rows(row_of_id(class)..row_of_id(class) + 1);
        self.removed_classes.insert(class);
        self.live_methods -= info.methods as usize;
        self.removed_since_sweep += info.methods as usize;
    }

    fn drop_sites(&mut self, sites: Range<u32>) {
        for site in sites.clone() {
            self.method_of_site.set(site, 0);
        }
        self.sites
            .drop_rows(row_of_id(sites.start)..row_of_id(sites.end));
        let (start, end) = (sites.start as usize, sites.end as usize);
        let free =
            self.needed_sites
                .remove_rows(size_of::<u32>(), start..end, self.sites.len() + 1);
        self.method_of_site.release_pages(&free);
    }

    /// Removes the data of removed methods and classes from all indexes with other keys than ids. The cost is proportional to the
    /// living entries.
    pub fn sweep_indexes(&mut self) {
        self.removed_since_sweep = 0;
        let gone = |method: &u32| self.removed_methods.contains(*method);
        let extra = self
            .line_sites
            .iter()
            .map(|((method, _), site)| (*method, *site));
        let allocations = self.allocation_sites.iter();
        let extra = extra.chain(allocations.map(|((method, ..), site)| (*method, *site)));
        let of_gone_methods = extra.filter(|(method, _)| gone(method));
        let went = std::mem::take(&mut self.removed_class_names);
        let of_gone_types = self.allocation_sites.iter();
        let of_gone_types = of_gone_types.filter(|((.., of), _)| went.contains(of));
        let sites: FxHashSet<u32> = of_gone_methods
            .map(|(_, site)| site)
            .chain(of_gone_types.map(|(_, site)| *site))
            .collect();
        for site in sites {
            self.unpacked_sites.remove(&site);
            self.drop_sites(site..site + 1);
        }
        let gone = &self.removed_methods;
        self.line_sites
            .retain(|(method, _), _| !gone.contains(*method));
        self.allocation_sites
            .retain(|(method, _, of), _| !gone.contains(*method) && !went.contains(of));
        self.live_class_names
            .shrink_to(2 * self.live_class_names.len());
        self.line_sites.shrink_to(2 * self.line_sites.len());
        self.allocation_sites
            .shrink_to(2 * self.allocation_sites.len());
        self.unpacked_sites.shrink_to(2 * self.unpacked_sites.len());
        self.measured_sites.shrink_to(2 * self.measured_sites.len());
        self.classes_by_name
            .shrink_to(2 * self.classes_by_name.len());
        self.classes_of_loader
            .shrink_to(2 * self.classes_of_loader.len());
        let names = self.used_names();
        self.texts.retain_texts(&names);
    }

    /// All names in use.
    fn used_names(&self) -> BitSet {
        let mut names = BitSet::default();
        let mut set = |InternedText(name): InternedText| names.insert(name);
        for class in 1..=self.classes.len() as u32 {
            let Some(info) = self.class(class) else {
                continue;
            };
            set(info.name);
            info.source.iter().for_each(|name| set(*name));
            let methods = info.first_method..info.first_method + info.methods;
            for method in methods.filter_map(|method| self.method(method)) {
                set(method.name);
                set(method.descriptor);
            }
            let allocated = info.first_allocated as usize;
            let allocated = self
                .allocated_names
                .as_slice()
                .get(allocated..allocated + info.allocated_count as usize);
            allocated.into_iter().flatten().for_each(|name| set(*name));
        }
        for site in self.unpacked_sites.values() {
            if let RegisteredSiteKind::New(of) | RegisteredSiteKind::Array(of) = site.kind {
                set(of);
            }
        }
        self.allocation_sites.keys().for_each(|(.., of)| set(*of));
        self.live_class_names.keys().for_each(|name| set(*name));
        for (class, name, descriptor) in &self.untracked_methods {
            [class, name, descriptor]
                .into_iter()
                .for_each(|name| set(*name));
        }
        names
    }

    /// Whether any class was removed.
    pub fn has_removed_classes(&self) -> bool {
        !self.removed_classes.is_empty()
    }

    /// The methods of removed classes.
    pub fn removed_methods(&self) -> &BitSet {
        &self.removed_methods
    }
}
