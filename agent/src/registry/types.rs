//! Allocation sites by type, for objects that the code does not name: class numbers, measured classes, and sites of a line.

use std::collections::hash_map::Entry;

use crate::memory::shared_layout::LOW_SITE_BITS as SITE_BITS;

use super::sites::{NO_LINE, RegisteredSite, RegisteredSiteKind, SitePosition};
use super::{ClassLoaderId, CodeRegistry, row_of_id};

impl CodeRegistry {
    /// The site of `method` at `line` that allocates the type `what`, if it exists.
    pub fn find_allocation_site(&self, method: u32, line: i32, what: &str) -> Option<u32> {
        let key = (method, line, self.find_name(what)?);
        self.allocation_sites.get(&key).copied()
    }

    /// The site of `method` at `line` that allocates the type `what`, a descriptor; a new one if necessary.
    pub fn resolve_allocation_site(&mut self, method: u32, line: i32, what: &str) -> Option<u32> {
        let key = (method, line, self.texts.intern_text(what)?);
        if let Some(&known) = self.allocation_sites.get(&key) {
            return Some(known);
        }
        while self.has_low_bits_conflict(method) {
            self.add_unpacked_site(RegisteredSite {
                method: 0,
                position: SitePosition::from_line(NO_LINE),
                kind: RegisteredSiteKind::Call,
            })?;
        }
        let id = self.add_unpacked_site(RegisteredSite {
            method,
            position: SitePosition::from_line(line),
            kind: match what.starts_with('[') {
                true => RegisteredSiteKind::Array(key.2),
                false => RegisteredSiteKind::New(key.2),
            },
        })?;
        self.allocation_sites.insert(key, id);
        Some(id)
    }

    /// A number for a class with this descriptor. `None`: there are too many.
    pub fn add_class_number(&mut self, descriptor: &str) -> Option<u32> {
        let name = self.texts.intern_text(descriptor)?;
        let id = u32::try_from(self.class_number_names.len())
            .ok()?
            .checked_add(1)?;
        i32::try_from(id).ok()?;
        self.class_number_names.push(name)?;
        *self.live_class_names.entry(name).or_default() += 1;
        self.removed_class_names.remove(&name);
        Some(id)
    }

    /// Removes a class number. If no other class has its name, the next sweep removes the sites of its objects.
    pub fn remove_class_number(&mut self, id: u32) {
        let Some(name) = self.class_number_names.get(row_of_id(id)).copied() else {
            return;
        };
        self.class_number_names
            .drop_rows(row_of_id(id)..row_of_id(id) + 1);
        if let Entry::Occupied(mut classes) = self.live_class_names.entry(name) {
            *classes.get_mut() -= 1;
            if *classes.get() == 0 {
                classes.remove();
                self.removed_class_names.insert(name);
            }
        }
    }

    /// The site for objects of class number `of`, created at `site` by code that does not name the class.
    pub fn resolve_typed_site(&mut self, site: u32, of: u32) -> Option<u32> {
        let info = self.site(site)?;
        let name = *self.class_number_names.get(row_of_id(of))?;
        let what = self.name_text(name).to_string();
        self.resolve_allocation_site(info.method, self.line_of_site(&info), &what)
    }

    /// Loader and name of the class that a `new` site allocates. `None` after the first call for the site.
    pub fn start_measuring_class(&mut self, site: u32) -> Option<(ClassLoaderId, String)> {
        let class = self.allocated_class(site)?;
        self.measured_sites.insert(site).then_some(class)
    }

    /// Like `start_measuring_class`, for a site that was measured before.
    pub fn measured_class(&self, site: u32) -> Option<(ClassLoaderId, String)> {
        self.measured_sites
            .contains(&site)
            .then(|| self.allocated_class(site))?
    }

    fn allocated_class(&self, site: u32) -> Option<(ClassLoaderId, String)> {
        let info = self.site(site)?;
        let RegisteredSiteKind::New(of) = info.kind else {
            return None;
        };
        // A site made for a type counts bytes itself.
        if info.line().is_some() {
            return None;
        }
        let name = self.name_text(of).strip_prefix('L')?.strip_suffix(';')?;
        let class = self.class(self.method(info.method)?.class)?;
        Some((class.loader, name.to_string()))
    }

    /// Whether the next site would share its low bits with another site of `method`. A thread's index tells the sites of a method
    /// apart by these bits.
    fn has_low_bits_conflict(&self, method: u32) -> bool {
        let next = self.sites.len() as u32 + 1;
        let mut like = (1..next >> SITE_BITS).map(|high| next - (high << SITE_BITS));
        next >> SITE_BITS > 0
            && (self.method_of_site.get(next & ((1 << SITE_BITS) - 1)) == method
                || like.any(|site| self.method_of_site.get(site) == method))
    }
}

#[cfg(test)]
mod types_tests {
    use super::*;
    use crate::registry::ClassDefinition;
    use lucce_instrument::{INTRINSICS, MethodInstrumentation};

    #[test]
    fn what_is_made_of_a_class_that_is_gone_goes() {
        let mut registry = CodeRegistry::default();
        let ids = registry.add_class(&ClassDefinition {
            name: "a/B",
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &[("f", "()V", 0)],
            instrumentations: &[MethodInstrumentation::without_hooks(false)],
        });
        let site = registry
            .resolve_line_site(ids.unwrap().first_method, 7)
            .unwrap();
        let other = registry.add_class_number("La/Other;").unwrap();
        let typed_site = registry.resolve_typed_site(site, other).unwrap();
        // Two classes with one name; array classes are separate classes.
        let twice = [0, 1].map(|_| registry.add_class_number("La/Twice;").unwrap());
        let twice_made = registry.resolve_typed_site(site, twice[0]).unwrap();
        assert_eq!(
            registry.resolve_typed_site(site, twice[1]),
            Some(twice_made)
        );
        registry.remove_class_number(twice[0]);
        registry.sweep_indexes();
        assert_eq!(
            registry.resolve_typed_site(site, twice[1]),
            Some(twice_made)
        );
        let most = 1 << 14;
        let mut numbers = Vec::new();
        for n in 0..most {
            let number = registry.add_class_number(&format!("[La/Made{n};")).unwrap();
            numbers.push((number, registry.resolve_typed_site(site, number).unwrap()));
        }
        for (number, _) in &numbers[1..] {
            registry.remove_class_number(*number);
            assert!(!registry.is_sweep_due());
        }
        registry.remove_class_number(numbers[0].0);
        registry.remove_class_number(twice[1]);
        assert!(registry.is_sweep_due());
        // One class returns in time.
        let again = registry.add_class_number("[La/Made5;").unwrap();
        registry.sweep_indexes();
        assert!(!registry.is_sweep_due());
        for (n, (_, typed)) in numbers.iter().enumerate() {
            assert_eq!(registry.site(*typed).is_some(), n == 5);
            assert_eq!(registry.method_of_site.get(*typed) == 0, n != 5);
        }
        assert!(registry.site(twice_made).is_none() && registry.find_name("La/Twice;").is_none());
        assert_eq!(registry.resolve_typed_site(site, again), Some(numbers[5].1));
        assert_eq!(registry.resolve_typed_site(site, other), Some(typed_site));
        assert_eq!(
            (
                registry.allocation_sites.len(),
                registry.unpacked_sites.len()
            ),
            (2, INTRINSICS.len() + 3)
        );
        // A new class with the name has a site of its own.
        let number = registry.add_class_number("La/Twice;").unwrap();
        let new = registry.resolve_typed_site(site, number).unwrap();
        assert!(new > twice_made && registry.site(new).is_some());
    }
}
