//! Records of code in a file: each class, method and site once, before any record that refers to it.

use lucce_callgraph::{MethodId, SiteId};
use lucce_tracelog::{
    ClassId, ClassRecord, ClassSource, CodeSourceId, CodeSourceRecord, LoaderId, LogFull,
    LogRecord, MethodRecord, SiteKind, SiteRecord,
};

use crate::memory::bit_set::BitSet;
use crate::registry::{CodeRegistry, RegisteredSiteKind};

/// The registry entries that a file already contains.
#[derive(Default)]
pub struct WrittenRecords {
    classes: BitSet,
    methods: BitSet,
    sites: BitSet,
    code_sources: BitSet,
}

/// Receives records.
pub type RecordSink<'s> = &'s mut dyn FnMut(LogRecord<'_>) -> Result<(), LogFull>;

impl WrittenRecords {
    /// Writes a site with its method and class, unless the file has them.
    ///
    /// # Errors
    /// The file is full.
    pub fn write_site(
        &mut self,
        registry: &CodeRegistry,
        id: u32,
        to: RecordSink<'_>,
    ) -> Result<(), LogFull> {
        if self.sites.contains(id) {
            return Ok(());
        }
        let Some(info) = registry.site(id) else {
            return Ok(());
        };
        self.write_method(registry, MethodId(info.method), to)?;
        let what = match info.kind {
            RegisteredSiteKind::Call
            | RegisteredSiteKind::NativeAllocation
            | RegisteredSiteKind::Entry
            | RegisteredSiteKind::EventCall(_)
            | RegisteredSiteKind::Request(_) => SiteKind::Call,
            RegisteredSiteKind::New(of) => SiteKind::New(registry.name_text(of).into()),
            RegisteredSiteKind::Array(of) => SiteKind::Array(registry.name_text(of).into()),
            RegisteredSiteKind::Native => SiteKind::Native,
            RegisteredSiteKind::Current => SiteKind::Current,
        };
        let site = SiteRecord {
            id: SiteId(id),
            method: MethodId(info.method),
            bci: info.bci(),
            line: info.line(),
            kind: what,
        };
        to(site.into())?;
        self.sites.insert(id);
        Ok(())
    }

    /// Writes a method with its class, unless the file has them.
    ///
    /// # Errors
    /// The file is full.
    pub fn write_method(
        &mut self,
        registry: &CodeRegistry,
        id: MethodId,
        to: RecordSink<'_>,
    ) -> Result<(), LogFull> {
        if self.methods.contains(id.0) {
            return Ok(());
        }
        let Some(info) = registry.method(id.0) else {
            return Ok(());
        };
        self.write_class(registry, info.class, to)?;
        let method = MethodRecord {
            id,
            class: ClassId(info.class),
            name: registry.name_text(info.name).into(),
            descriptor: registry.name_text(info.descriptor).into(),
            access: info.access,
            lines: registry.line_table(info).into(),
        };
        to(method.into())?;
        self.methods.insert(id.0);
        Ok(())
    }

    fn write_class(
        &mut self,
        registry: &CodeRegistry,
        id: u32,
        to: RecordSink<'_>,
    ) -> Result<(), LogFull> {
        let Some(info) = registry.class(id).filter(|_| !self.classes.contains(id)) else {
            return Ok(());
        };
        let class = ClassRecord {
            id: ClassId(id),
            loader: LoaderId(info.loader.0),
            name: external_name(registry.name_text(info.name)).into(),
            source_file: info.source.map(|name| registry.name_text(name).into()),
        };
        to(class.into())?;
        self.classes.insert(id);
        self.write_code_source(registry, (id, info.code_source), to)
    }

    /// Writes where a class was loaded from, if that is known.
    fn write_code_source(
        &mut self,
        registry: &CodeRegistry,
        (class, source): (u32, CodeSourceId),
        to: RecordSink<'_>,
    ) -> Result<(), LogFull> {
        let Some(location) = registry.code_source_location(source) else {
            return Ok(());
        };
        if !self.code_sources.contains(source.0) {
            let record = CodeSourceRecord {
                id: source,
                location: location.into(),
            };
            to(record.into())?;
            self.code_sources.insert(source.0);
        }
        let class = ClassId(class);
        to(ClassSource { class, source }.into())
    }
}

/// Converts `a/b/C` to the form that Java prints.
pub fn external_name(internal: &str) -> String {
    internal.replace('/', ".")
}
