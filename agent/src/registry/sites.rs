//! Call sites and allocation sites: their compact form, their lines, and sites without an instrumentation plan.

use lucce_callgraph::{MethodId, SiteId};
use lucce_instrument::{EventCall, HookSiteKind, INTRINSICS, MethodInstrumentation};
use rustc_hash::FxHashMap;

use crate::memory::slots::VM_ENTRY;

use super::{CodeRegistry, InternedText, row_of_id};

/// What happens at a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegisteredSiteKind {
    Call,
    New(InternedText),
    Array(InternedText),
    Native,
    Current,
    /// A call of a native method that creates an object. The object is counted when the method returns.
    NativeAllocation,
    /// The method's entry.
    Entry,
    /// A call that matters to a kind of events.
    EventCall(EventCall),
    /// The entry of a method that receives requests: the text of a `RequestEntry`.
    Request(InternedText),
}

/// A call site or allocation site in the registry.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredSite {
    pub method: u32,
    pub(super) position: SitePosition,
    pub kind: RegisteredSiteKind,
}

/// A site in compact form: a large program has a million sites, most of which are never read.
///
/// ```text
/// bci 16 | payload 12 | kind 4
/// ```
///
/// The payload of an allocation is the index among its class's allocated types. The payload of an event call is
/// [`EventCall::to_packed`]. Other sites are kept in `unpacked_sites`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedSite(pub(super) u32);

impl PackedSite {
    pub(super) const UNPACKED: PackedSite = PackedSite(15);
    /// The number of the other kinds.
    pub(super) const KINDS: u32 = 8;
    pub(super) const PAYLOADS: u32 = 1 << 12;

    /// `None`: it does not fit.
    fn new(bci: u16, kind: u32, more: u32) -> Option<PackedSite> {
        (more < PackedSite::PAYLOADS).then_some(PackedSite(u32::from(bci) << 16 | more << 4 | kind))
    }

    fn bci(self) -> u16 {
        (self.0 >> 16) as u16
    }

    pub(super) fn kind(self) -> u32 {
        self.0 & 15
    }

    pub(super) fn payload(self) -> u32 {
        self.0 >> 4 & (PackedSite::PAYLOADS - 1)
    }
}

/// The position of a site in its method.
///
/// ```text
/// 0 ≤ value < 2¹⁶   a bci
/// value < 0         a line ≥ −2 of a site whose bci is unknown: −3 − line
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct SitePosition(i32);

impl SitePosition {
    pub(super) fn from_line(line: i32) -> SitePosition {
        SitePosition((NATIVE_LINE - 1).saturating_sub(line).min(-1))
    }
}

impl RegisteredSite {
    /// -1: unknown.
    pub fn bci(&self) -> i32 {
        self.position.0.max(-1)
    }

    /// The line, if the line table does not determine it.
    pub fn line(&self) -> Option<i32> {
        (self.position.0 < 0).then(|| NATIVE_LINE - 1 - self.position.0)
    }
}

/// Line number of native frames, as in `StackTraceElement`.
pub const NATIVE_LINE: i32 = -2;
/// Line number of a site whose line is unknown.
pub const NO_LINE: i32 = -1;

impl CodeRegistry {
    /// A site by id. `None`: it was removed, or never existed.
    pub fn site(&self, id: u32) -> Option<RegisteredSite> {
        let packed = *self.sites.get(row_of_id(id))?;
        // Only unpacked sites may have no method.
        let is_gone =
            self.method_of_site.get(id) == 0 && packed.kind() != PackedSite::UNPACKED.kind();
        (!is_gone).then(|| self.unpack_site(id, packed)).flatten()
    }

    /// The line that a stack trace shows for a site.
    pub fn line_of_site(&self, site: &RegisteredSite) -> i32 {
        if let Some(line) = site.line() {
            return line;
        }
        let Some(method) = self.method(site.method) else {
            return NO_LINE;
        };
        let lines = self.line_table(method);
        let before = lines.partition_point(|&(bci, _)| i32::from(bci) <= site.bci());
        let entry = before.checked_sub(1).and_then(|at| lines.get(at));
        entry.map_or(NO_LINE, |&(_, line)| line.into())
    }

    /// The method that contains a site. 0: no such site.
    pub fn method_of_site(&self, site: SiteId) -> MethodId {
        MethodId(self.method_of_site.get(site.0))
    }

    /// The site of `method` at `line`; a new one if necessary.
    pub fn resolve_line_site(&mut self, method: u32, line: i32) -> Option<u32> {
        if let Some(&known) = self.line_sites.get(&(method, line)) {
            return Some(known);
        }
        let what = if line == NATIVE_LINE {
            RegisteredSiteKind::Native
        } else {
            RegisteredSiteKind::Call
        };
        let id = self.add_unpacked_site(RegisteredSite {
            method,
            position: SitePosition::from_line(line),
            kind: what,
        })?;
        self.line_sites.insert((method, line), id);
        Some(id)
    }

    /// Adds the sites of the last method. `allocated`: the class's allocated types so far, with their indexes.
    pub(super) fn add_sites(
        &mut self,
        instrumentation: &MethodInstrumentation,
        allocated: &mut FxHashMap<InternedText, u32>,
    ) -> Option<()> {
        let id = self.methods.len() as u32;
        if let Some((index, bci)) = instrumentation.intrinsic {
            self.define_intrinsic_site(index, id, bci);
        }
        for place in &instrumentation.places {
            let what = match &place.kind {
                HookSiteKind::New(of) => RegisteredSiteKind::New(self.texts.intern_text(of)?),
                HookSiteKind::Array(of) | HookSiteKind::Arrays(of) => {
                    RegisteredSiteKind::Array(self.texts.intern_text(of)?)
                }
                HookSiteKind::Current | HookSiteKind::Event => RegisteredSiteKind::Current,
                HookSiteKind::Creation(_) => RegisteredSiteKind::NativeAllocation,
                HookSiteKind::Entry | HookSiteKind::TimedEntry => RegisteredSiteKind::Entry,
                HookSiteKind::EventCall(of) => RegisteredSiteKind::EventCall(*of),
                HookSiteKind::Request(entry) => {
                    RegisteredSiteKind::Request(self.texts.intern_text(&entry.to_text())?)
                }
                HookSiteKind::Call
                | HookSiteKind::Untracked
                | HookSiteKind::ClassRedefinition
                | HookSiteKind::FrameHiding
                | HookSiteKind::StackTrace
                | HookSiteKind::ThrowableMessage(_)
                | HookSiteKind::AgentQuery
                | HookSiteKind::Monitor
                | HookSiteKind::FollowedMonitor(_)
                | HookSiteKind::Scope
                | HookSiteKind::ScopeEnd
                | HookSiteKind::Continuation(_)
                | HookSiteKind::Assembly(_)
                | HookSiteKind::NativeBracket(_)
                | HookSiteKind::CreatingBracket(_)
                | HookSiteKind::DefineHidden(_)
                | HookSiteKind::Intrinsic(_)
                | HookSiteKind::Uncounted => RegisteredSiteKind::Call,
            };
            let info = RegisteredSite {
                method: id,
                position: SitePosition(place.bci.into()),
                kind: what,
            };
            match self.pack_site(place.bci, what, allocated) {
                Some(packed) => {
                    self.sites.push(packed)?;
                    self.set_last_site_method(id);
                }
                None => drop(self.add_unpacked_site(info)?),
            }
        }
        Some(())
    }

    /// Adds a site that is not packed. `None`: no ids are left.
    pub(super) fn add_unpacked_site(&mut self, site: RegisteredSite) -> Option<u32> {
        if !self.has_room_for_sites(1) {
            return None;
        }
        self.sites.push(PackedSite::UNPACKED)?;
        let id = self.sites.len() as u32;
        self.unpacked_sites.insert(id, site);
        self.set_last_site_method(site.method);
        Some(id)
    }

    pub(super) fn has_room_for_sites(&self, count: usize) -> bool {
        let room = self
            .sites
            .capacity()
            .min(self.method_of_site.site_capacity());
        self.sites.len() + count < room.min(VM_ENTRY as usize)
    }

    /// `None`: it does not fit.
    fn pack_site(
        &mut self,
        bci: u16,
        what: RegisteredSiteKind,
        allocated: &mut FxHashMap<InternedText, u32>,
    ) -> Option<PackedSite> {
        let mut which = |name| match allocated.get(&name) {
            Some(known) => Some(*known),
            None => {
                let new = allocated.len() as u32;
                let fits = new < PackedSite::PAYLOADS;
                fits.then(|| self.allocated_names.push(name)).flatten()?;
                allocated.insert(name, new);
                Some(new)
            }
        };
        let (kind, more) = match what {
            RegisteredSiteKind::Call => (0, 0),
            RegisteredSiteKind::New(of) => (1, which(of)?),
            RegisteredSiteKind::Array(of) => (2, which(of)?),
            RegisteredSiteKind::Native => (3, 0),
            RegisteredSiteKind::Current => (4, 0),
            RegisteredSiteKind::NativeAllocation => (5, 0),
            RegisteredSiteKind::Entry => (6, 0),
            RegisteredSiteKind::EventCall(of) => (7, of.to_packed()),
            RegisteredSiteKind::Request(_) => return None,
        };
        PackedSite::new(bci, kind, more)
    }

    fn unpack_site(&self, site: u32, packed: PackedSite) -> Option<RegisteredSite> {
        let method = self.method_of_site.get(site);
        let of = || {
            let class = self.class(self.method(method)?.class)?;
            let at = class.first_allocated + packed.payload();
            self.allocated_names.get(at as usize).copied()
        };
        let what = match packed.kind() {
            0 => RegisteredSiteKind::Call,
            1 => RegisteredSiteKind::New(of()?),
            2 => RegisteredSiteKind::Array(of()?),
            3 => RegisteredSiteKind::Native,
            4 => RegisteredSiteKind::Current,
            5 => RegisteredSiteKind::NativeAllocation,
            6 => RegisteredSiteKind::Entry,
            7 => RegisteredSiteKind::EventCall(EventCall::from_packed(packed.payload())),
            _ => return self.unpacked_sites.get(&site).copied(),
        };
        Some(RegisteredSite {
            method,
            position: SitePosition(packed.bci().into()),
            kind: what,
        })
    }

    /// Sets the method of the last site.
    fn set_last_site_method(&mut self, method: u32) {
        let site = self.sites.len() as u32;
        self.set_sites_method(site..site + 1, method);
    }

    pub(super) fn set_sites_method(&mut self, sites: std::ops::Range<u32>, method: u32) {
        let rows = sites.start as usize..sites.end as usize;
        self.needed_sites.add_rows(size_of::<u32>(), rows);
        for site in sites {
            self.method_of_site.set(site, method);
        }
    }

    /// Sets the site at which callers count the allocation of an intrinsic.
    pub(super) fn define_intrinsic_site(&mut self, index: usize, method: u32, bci: u16) {
        let allocates = INTRINSICS.get(index).map_or("", |of| of.allocates);
        let id = index as u32 + 1;
        if let (Some(name), Some(site)) = (
            self.texts.intern_text(allocates),
            self.unpacked_sites.get_mut(&id),
        ) {
            *site = RegisteredSite {
                method,
                position: SitePosition(bci.into()),
                kind: RegisteredSiteKind::Array(name),
            };
            self.method_of_site.set(id, method);
        }
    }
}

#[cfg(test)]
mod sites_tests {
    use super::*;
    use crate::registry::{ClassDefinition, ClassLoaderId};

    #[test]
    fn a_site_has_a_bci_or_a_line() {
        let mut registry = CodeRegistry::default();
        let lines = [NATIVE_LINE, NO_LINE, 0, 1, 65_535];
        for (method, line) in (1..).zip(lines) {
            let id = registry.resolve_line_site(method, line).unwrap();
            let site = registry.site(id).unwrap();
            assert_eq!((site.bci(), site.line()), (-1, Some(line)));
            assert_eq!(registry.line_of_site(&site), line);
            assert_eq!(registry.resolve_line_site(method, line), Some(id));
            assert_eq!(registry.method_of_site.get(id), method);
        }
        let places = [0, 1, 7, u16::MAX].map(|bci| lucce_instrument::HookPlace {
            bci,
            kind: HookSiteKind::Call,
        });
        let mut instrumentation = MethodInstrumentation::without_hooks(false);
        instrumentation.places = places.to_vec();
        instrumentation.lines = vec![(1, 20), (8, 10)];
        let ids = registry.add_class(&ClassDefinition {
            name: "a/B",
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &[("f", "()V", 0)],
            instrumentations: &[instrumentation],
        });
        let first = ids.unwrap().first_site;
        let shown = |n| {
            let site = registry.site(first + n).unwrap();
            (site.bci(), site.line(), registry.line_of_site(&site))
        };
        assert_eq!(shown(0), (0, None, NO_LINE));
        assert_eq!(shown(1), (1, None, 20));
        assert_eq!(shown(2), (7, None, 20));
        assert_eq!(shown(3), (65_535, None, 10));
    }

    #[test]
    fn a_site_has_the_kind_of_its_event() {
        let marked = |mark| lucce_instrument::HookPlace { bci: 3, kind: mark };
        // More than a packed site can distinguish.
        let kinds = PackedSite::PAYLOADS + 5;
        let mut instrumentations = Vec::new();
        for part in 0..2 {
            let mut instrumentation = MethodInstrumentation::without_hooks(false);
            instrumentation.places = (0..kinds)
                .map(|n| marked(HookSiteKind::New(format!("La/C{n};"))))
                .collect();
            instrumentation
                .places
                .push(marked(HookSiteKind::Array(format!("[I{part}"))));
            instrumentation
                .places
                .push(marked(HookSiteKind::EventCall(EventCall::from_packed(
                    8 << 8 | 200,
                ))));
            instrumentation
                .places
                .push(marked(HookSiteKind::EventCall(EventCall::from_packed(
                    7 << 8 | 1,
                ))));
            instrumentations.push(instrumentation);
        }
        let mut registry = CodeRegistry::default();
        let class = ClassDefinition {
            name: "a/B",
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &[("f", "()V", 0), ("g", "()V", 0)],
            instrumentations: &instrumentations,
        };
        // The second class has descriptors of its own.
        for _ in 0..2 {
            let ids = registry.add_class(&class).unwrap();
            let mut site = ids.first_site;
            for part in 0..2 {
                let mut next = || {
                    let info = registry.site(site).unwrap();
                    assert_eq!((info.method, info.bci()), (ids.first_method + part, 3));
                    assert_eq!(registry.method_of_site.get(site), info.method);
                    site += 1;
                    info.kind
                };
                for n in 0..kinds {
                    let name = registry.find_name(&format!("La/C{n};")).unwrap();
                    assert_eq!(next(), RegisteredSiteKind::New(name));
                }
                let array = registry.find_name(&format!("[I{part}")).unwrap();
                assert_eq!(next(), RegisteredSiteKind::Array(array));
                let packed = |what| match what {
                    RegisteredSiteKind::EventCall(of) => of.to_packed(),
                    _ => 0,
                };
                assert_eq!((packed(next()), packed(next())), (8 << 8 | 200, 7 << 8 | 1));
            }
            assert!(registry.site(site).is_none());
        }
        let reserved = registry.site(1).unwrap();
        assert_eq!(
            (reserved.method, reserved.kind),
            (0, RegisteredSiteKind::Call)
        );
    }
}
