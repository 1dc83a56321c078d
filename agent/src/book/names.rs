//! What a file says of code: each class, method and site once, and before whatever names it.

use lucce_callgraph::{MethodId, SiteId};
use lucce_tracelog::{Class, ClassId, Full, LoaderId, Method, Record, Site, SiteKind};

use crate::book::{Book, What};
use crate::memory::bits::Bits;

/// What of the book is already in the file.
#[derive(Default)]
pub struct Told {
    classes: Bits,
    methods: Bits,
    sites: Bits,
}

/// Where records go.
pub type Sink<'s> = &'s mut dyn FnMut(Record<'_>) -> Result<(), Full>;

impl Told {
    /// # Errors
    /// The file is full.
    pub fn site(&mut self, book: &Book, id: u32, to: Sink<'_>) -> Result<(), Full> {
        let Some(info) = book.site(id).filter(|_| !self.sites.has(id)) else {
            return Ok(());
        };
        self.method(book, MethodId(info.method), to)?;
        let what = match info.what {
            What::Call | What::Making | What::Entry | What::Of(_) => SiteKind::Call,
            What::New(of) => SiteKind::New(book.text(of).into()),
            What::Array(of) => SiteKind::Array(book.text(of).into()),
            What::Native => SiteKind::Native,
            What::Current => SiteKind::Current,
        };
        let site = Site {
            id: SiteId(id),
            method: MethodId(info.method),
            bci: info.bci(),
            line: info.line(),
            what,
        };
        to(site.into())?;
        self.sites.set(id);
        Ok(())
    }

    /// # Errors
    /// The file is full.
    pub fn method(&mut self, book: &Book, id: MethodId, to: Sink<'_>) -> Result<(), Full> {
        let Some(info) = book.method(id.0).filter(|_| !self.methods.has(id.0)) else {
            return Ok(());
        };
        self.class(book, info.class, to)?;
        let method = Method {
            id,
            class: ClassId(info.class),
            name: book.text(info.name).into(),
            descriptor: book.text(info.descriptor).into(),
            access: info.access,
            lines: book.lines(info).into(),
        };
        to(method.into())?;
        self.methods.set(id.0);
        Ok(())
    }

    fn class(&mut self, book: &Book, id: u32, to: Sink<'_>) -> Result<(), Full> {
        let Some(info) = book.class(id).filter(|_| !self.classes.has(id)) else {
            return Ok(());
        };
        let class = Class {
            id: ClassId(id),
            loader: LoaderId(info.loader.0),
            name: external(book.text(info.name)).into(),
            source_file: info.source.map(|name| book.text(name).into()),
        };
        to(class.into())?;
        self.classes.set(id);
        Ok(())
    }
}

/// `a/b/C` as Java prints it.
pub fn external(internal: &str) -> String {
    internal.replace('/', ".")
}
