//! A class as the book has it, for the book of another run: its methods, lines and sites, but for their ids.
//!
//! All numbers are little-endian. A text is meant by its place among the image's texts.
//!
//! ```text
//! u32 count    texts      each u16 length, UTF-8
//! u32, u32     name, and source + 1; 0: none
//! u32 count    methods    24 bytes each, see `Method`
//! u32 count    lines      u16 bci, u16 line; those of the first method first
//! u32 count    sites      as `Packed`; those of the first method first
//! u32 count    texts of what is allocated, by which sites say what
//! ```

use lucce_hooks::{FrameKind, INTRINSICS, Shape};
use rustc_hash::FxHashMap;

use crate::book::{Book, ClassInfo, Ids, Loader, MethodInfo, Name, Packed, is_of_the_jdk};

/// Frames by the number that stands for them.
const FRAMES: [FrameKind; 12] = [
    FrameKind::Leaf,
    FrameKind::Push,
    FrameKind::Vm,
    FrameKind::First,
    FrameKind::Thread,
    FrameKind::Peek,
    FrameKind::PeekVm,
    FrameKind::ToCarrier,
    FrameKind::ToVirtual,
    FrameKind::Pinned,
    FrameKind::Downcall,
    FrameKind::Upcall,
];
const TRANSPARENT: u8 = 1;
const QUIET: u8 = 2;

/// A method without its ids.
#[derive(Clone, Copy)]
struct Method {
    name: u32,
    descriptor: u32,
    access: u16,
    frame: FrameKind,
    flags: u8,
    /// Which of the intrinsics it is, plus 1, and where it allocates.
    intrinsic: (u16, u16),
    lines: u32,
    sites: u32,
}

impl Method {
    fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        let frame = FRAMES.iter().position(|frame| *frame == self.frame)?;
        for value in [self.name, self.descriptor] {
            out.extend(value.to_le_bytes());
        }
        out.extend(self.access.to_le_bytes());
        out.extend([u8::try_from(frame).ok()?, self.flags]);
        for value in [self.intrinsic.0, self.intrinsic.1] {
            out.extend(value.to_le_bytes());
        }
        for value in [self.lines, self.sites] {
            out.extend(value.to_le_bytes());
        }
        Some(())
    }

    fn read(from: &mut Bytes<'_>) -> Option<Method> {
        Some(Method {
            name: from.u32()?,
            descriptor: from.u32()?,
            access: from.u16()?,
            frame: *FRAMES.get(usize::from(from.u8()?))?,
            flags: from.u8()?,
            intrinsic: (from.u16()?, from.u16()?),
            lines: from.u32()?,
            sites: from.u32()?,
        })
    }
}

/// Bytes that are read from the front; `None`: there are too few.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A text behind its length.
    pub fn text(&mut self) -> Option<&'a str> {
        let length = self.u16()?;
        std::str::from_utf8(self.take(length.into())?).ok()
    }

    /// So many rows of `size` bytes behind their count.
    pub fn rows(&mut self, size: usize) -> Option<&'a [u8]> {
        let count = self.u32()? as usize;
        self.take(count.checked_mul(size)?)
    }
}

/// Writes a text behind its length. `None`: it is too long.
pub fn write_text(text: &str, out: &mut Vec<u8>) -> Option<()> {
    out.extend(u16::try_from(text.len()).ok()?.to_le_bytes());
    out.extend(text.as_bytes());
    Some(())
}

/// Writes how many there are of something.
pub fn write_count(count: usize, out: &mut Vec<u8>) -> Option<()> {
    out.extend(u32::try_from(count).ok()?.to_le_bytes());
    Some(())
}

/// Texts of an image by the names that they have in the book.
#[derive(Default)]
struct Used {
    places: FxHashMap<Name, u32>,
    names: Vec<Name>,
}

impl Used {
    fn place(&mut self, name: Name) -> u32 {
        let Used { places, names } = self;
        *places.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() as u32 - 1
        })
    }
}

/// An image, read: every number in it is one that it may be.
pub struct Image<'a> {
    texts: Vec<&'a str>,
    name: u32,
    source: u32,
    methods: Vec<Method>,
    lines: Vec<(u16, u16)>,
    sites: Vec<Packed>,
    allocated: Vec<u32>,
}

impl<'a> Image<'a> {
    /// `None`: it is none.
    pub fn read(bytes: &'a [u8]) -> Option<Image<'a>> {
        let mut from = Bytes(bytes);
        let texts = (0..from.u32()?).map(|_| from.text());
        let texts = texts.collect::<Option<_>>()?;
        let (name, source) = (from.u32()?, from.u32()?);
        let methods = (0..from.u32()?).map(|_| Method::read(&mut from));
        let methods = methods.collect::<Option<_>>()?;
        let words = |row: &[u8]| {
            let mut row = Bytes(row);
            row.u16().zip(row.u16())
        };
        let lines = from.rows(4)?.chunks_exact(4).map(words);
        let lines = lines.collect::<Option<_>>()?;
        let numbers = |row: &[u8]| Bytes(row).u32();
        let sites = from.rows(4)?.chunks_exact(4).map(numbers);
        let sites = sites.map(|site| site.map(Packed));
        let sites = sites.collect::<Option<_>>()?;
        let allocated = from.rows(4)?.chunks_exact(4).map(numbers);
        let allocated = allocated.collect::<Option<_>>()?;
        let image = Image {
            texts,
            name,
            source,
            methods,
            lines,
            sites,
            allocated,
        };
        (from.0.is_empty() && image.is_sound()).then_some(image)
    }

    fn is_sound(&self) -> bool {
        let text = |at: u32| (at as usize) < self.texts.len();
        let sum = |of: fn(&Method) -> u32| self.methods.iter().map(|m| u64::from(of(m))).sum();
        let (lines, sites): (u64, u64) = (sum(|m| m.lines), sum(|m| m.sites));
        let intrinsic = |m: &Method| usize::from(m.intrinsic.0) <= INTRINSICS.len();
        let site = |site: &Packed| match site.kind() {
            1 | 2 => (site.more() as usize) < self.allocated.len(),
            kind => kind < Packed::KINDS,
        };
        text(self.name)
            && (self.source == 0 || text(self.source - 1))
            && self
                .methods
                .iter()
                .all(|m| text(m.name) && text(m.descriptor) && intrinsic(m))
            && self.allocated.iter().all(|at| text(*at))
            && (lines, sites) == (self.lines.len() as u64, self.sites.len() as u64)
            && self.sites.iter().all(site)
    }

    pub fn name(&self) -> &'a str {
        self.text(self.name)
    }

    fn text(&self, at: u32) -> &'a str {
        self.texts.get(at as usize).copied().unwrap_or_default()
    }
}

impl Book {
    /// The class that was added last of a loader's classes of its name, of which `shapes` is what it was added with.
    /// `None`: something of it stands elsewhere.
    pub fn image(&self, class: u32, shapes: &[Shape]) -> Option<Vec<u8>> {
        let info = self.class(class)?;
        let mut used = Used::default();
        let (name, source) = (
            used.place(info.name),
            info.source.map_or(0, |source| used.place(source) + 1),
        );
        let (mut methods, mut lines) = (Vec::new(), Vec::new());
        for (id, shape) in (info.first_method..).zip(shapes) {
            let method = self.method(id)?;
            let its_lines = self.lines(method);
            for (bci, line) in its_lines {
                lines.extend([bci.to_le_bytes(), line.to_le_bytes()].concat());
            }
            let flag = |is: bool, flag: u8| if is { flag } else { 0 };
            let intrinsic = match shape.intrinsic {
                Some((index, bci)) => (u16::try_from(index + 1).ok()?, bci),
                None => (0, 0),
            };
            let method = Method {
                name: used.place(method.name),
                descriptor: used.place(method.descriptor),
                access: method.access,
                frame: method.frame,
                flags: flag(method.transparent, TRANSPARENT) | flag(shape.quiet, QUIET),
                intrinsic,
                lines: u32::try_from(its_lines.len()).ok()?,
                sites: u32::try_from(shape.places.len()).ok()?,
            };
            method.write(&mut methods)?;
        }
        let first = info.first_site as usize - 1;
        let sites = self
            .sites
            .all()
            .get(first..first + info.sites as usize)?
            .iter();
        let is_here = |site: &Packed| site.kind() != Packed::ELSEWHERE.kind();
        if !sites.clone().all(is_here) {
            return None;
        }
        let first = info.allocated as usize;
        let allocated = self
            .allocated
            .all()
            .get(first..first + info.allocates as usize)?;
        let allocated: Vec<u32> = allocated.iter().map(|name| used.place(*name)).collect();
        let mut out = Vec::with_capacity(methods.len() + lines.len() + 4 * sites.len() + 1024);
        write_count(used.names.len(), &mut out)?;
        for name in &used.names {
            write_text(self.text(*name), &mut out)?;
        }
        out.extend([name.to_le_bytes(), source.to_le_bytes()].concat());
        write_count(info.methods as usize, &mut out)?;
        out.extend(&methods);
        write_count(lines.len() / 4, &mut out)?;
        out.extend(&lines);
        write_count(sites.len(), &mut out)?;
        out.extend(sites.flat_map(|site| site.0.to_le_bytes()));
        write_count(allocated.len(), &mut out)?;
        out.extend(allocated.iter().flat_map(|place| place.to_le_bytes()));
        Some(out)
    }

    /// As [`add`](Book::add), of a class that another book has had. `None`: there are no ids left, or no room.
    pub fn restore(&mut self, loader: Loader, image: &Image<'_>) -> Option<Ids> {
        let fits = self.fits(
            image.methods.len(),
            image.sites.len(),
            image.lines.len(),
            image.allocated.len(),
        );
        if !fits {
            return None;
        }
        let texts = image.texts.iter().map(|text| self.texts.name(text));
        let texts: Vec<Name> = texts.collect::<Option<_>>()?;
        let text = |at: u32| texts.get(at as usize).copied();
        let (name, source) = (
            text(image.name)?,
            image.source.checked_sub(1).and_then(text),
        );
        let ids = self.next_ids();
        let class = self.classes.len() as u32 + 1;
        self.classes.push(ClassInfo {
            name,
            source,
            loader,
            first_method: ids.first_method,
            methods: image.methods.len() as u32,
            first_site: ids.first_site,
            sites: image.sites.len() as u32,
            holders: 0,
            allocated: self.allocated.len() as u32,
            allocates: image.allocated.len() as u32,
        })?;
        self.live += image.methods.len();
        self.give(loader, class);
        for place in &image.allocated {
            self.allocated.push(text(*place)?)?;
        }
        let first_line = self.lines.len() as u32;
        self.lines.extend(&image.lines)?;
        self.sites.extend(&image.sites)?;
        let (mut line, mut site) = (first_line, ids.first_site);
        let of_the_jdk = is_of_the_jdk(loader, image.name());
        for (id, method) in (ids.first_method..).zip(&image.methods) {
            let (its_name, descriptor) = (text(method.name)?, text(method.descriptor)?);
            self.methods.push(MethodInfo {
                class,
                name: its_name,
                descriptor,
                access: method.access,
                frame: method.frame,
                transparent: method.flags & TRANSPARENT != 0,
                lines: (line, line + method.lines),
            })?;
            line += method.lines;
            if let (Some(index), bci) = (method.intrinsic.0.checked_sub(1), method.intrinsic.1) {
                self.reserved(index.into(), id, bci);
            }
            self.note_sites(site..site + method.sites, id);
            site += method.sites;
            if method.flags & QUIET != 0 && of_the_jdk {
                self.note_quiet(name, its_name, descriptor);
            }
        }
        Some(ids)
    }
}
