//! The binary image of a registered class, for the class cache: its methods, lines and sites without their ids.
//!
//! All numbers are little-endian. A text is referred to by its index among the image's texts.
//!
//! ```text
//! u32 count    texts      each u16 length, UTF-8
//! u32, u32     name, and source + 1; 0: none
//! u32 count    methods    24 bytes each, see `MethodImage`
//! u32 count    lines      u16 bci, u16 line; the first method's lines come first
//! u32 count    sites      as `PackedSite`; the first method's sites come first
//! u32 count    descriptors of allocated types, by index from the sites
//! ```

use lucce_instrument::{FrameKind, INTRINSICS, MethodInstrumentation};
use rustc_hash::FxHashMap;

use crate::registry::{
    ClassLoaderId, CodeRegistry, FirstClassIds, InternedText, PackedSite, RegisteredClass,
    RegisteredMethod, is_jdk_class,
};

/// Frame kinds by their number in an image.
const FRAME_KINDS: [FrameKind; 12] = [
    FrameKind::Leaf,
    FrameKind::OwnSlot,
    FrameKind::VmEntered,
    FrameKind::ThreadEntry,
    FrameKind::AttachedThread,
    FrameKind::Hidden,
    FrameKind::HiddenVmEntered,
    FrameKind::ToCarrier,
    FrameKind::ToVirtual,
    FrameKind::Pinned,
    FrameKind::Downcall,
    FrameKind::Upcall,
];
const TRANSPARENT: u8 = 1;
const UNTRACKED: u8 = 2;

/// A method without its ids.
#[derive(Clone, Copy)]
struct MethodImage {
    name: u32,
    descriptor: u32,
    access: u16,
    frame: FrameKind,
    flags: u8,
    /// The index of the intrinsic plus 1 (0: none), and the bci at which it allocates.
    intrinsic: (u16, u16),
    lines: u32,
    sites: u32,
}

impl MethodImage {
    fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        let frame = FRAME_KINDS.iter().position(|frame| *frame == self.frame)?;
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

    fn read(from: &mut ByteReader<'_>) -> Option<MethodImage> {
        Some(MethodImage {
            name: from.read_u32()?,
            descriptor: from.read_u32()?,
            access: from.read_u16()?,
            frame: *FRAME_KINDS.get(usize::from(from.read_u8()?))?,
            flags: from.read_u8()?,
            intrinsic: (from.read_u16()?, from.read_u16()?),
            lines: from.read_u32()?,
            sites: from.read_u32()?,
        })
    }
}

/// Reads values from the front of a byte slice. `None`: too few bytes are left.
#[derive(Clone, Copy)]
pub struct ByteReader<'a>(pub &'a [u8]);

impl<'a> ByteReader<'a> {
    pub fn read_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn read_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.read_bytes(N)?.try_into().ok()
    }

    pub fn read_u8(&mut self) -> Option<u8> {
        self.read_array().map(u8::from_le_bytes)
    }

    pub fn read_u16(&mut self) -> Option<u16> {
        self.read_array().map(u16::from_le_bytes)
    }

    pub fn read_u32(&mut self) -> Option<u32> {
        self.read_array().map(u32::from_le_bytes)
    }

    pub fn read_u64(&mut self) -> Option<u64> {
        self.read_array().map(u64::from_le_bytes)
    }

    /// A text with its u16 length before it.
    pub fn read_text(&mut self) -> Option<&'a str> {
        let length = self.read_u16()?;
        std::str::from_utf8(self.read_bytes(length.into())?).ok()
    }

    /// Reads a u32 count and that number of rows of `size` bytes.
    pub fn read_rows(&mut self, size: usize) -> Option<&'a [u8]> {
        let count = self.read_u32()? as usize;
        self.read_bytes(count.checked_mul(size)?)
    }
}

/// Writes a text with its u16 length before it. `None`: the text is too long.
pub fn write_text(text: &str, out: &mut Vec<u8>) -> Option<()> {
    out.extend(u16::try_from(text.len()).ok()?.to_le_bytes());
    out.extend(text.as_bytes());
    Some(())
}

/// Writes a count as u32. `None`: it is too large.
pub fn write_count(count: usize, out: &mut Vec<u8>) -> Option<()> {
    out.extend(u32::try_from(count).ok()?.to_le_bytes());
    Some(())
}

/// The image's texts, by their names in the code registry.
#[derive(Default)]
struct ImageTexts {
    index_by_name: FxHashMap<InternedText, u32>,
    names: Vec<InternedText>,
}

impl ImageTexts {
    fn index_of(&mut self, name: InternedText) -> u32 {
        let ImageTexts {
            index_by_name: places,
            names,
        } = self;
        *places.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() as u32 - 1
        })
    }
}

/// A parsed image. All numbers in it are within their ranges.
pub struct ClassImage<'a> {
    texts: Vec<&'a str>,
    name: u32,
    source: u32,
    methods: Vec<MethodImage>,
    lines: Vec<(u16, u16)>,
    sites: Vec<PackedSite>,
    allocated: Vec<u32>,
}

impl<'a> ClassImage<'a> {
    /// `None`: the bytes are not a valid image.
    pub fn parse(bytes: &'a [u8]) -> Option<ClassImage<'a>> {
        let mut from = ByteReader(bytes);
        let texts = (0..from.read_u32()?).map(|_| from.read_text());
        let texts = texts.collect::<Option<_>>()?;
        let (name, source) = (from.read_u32()?, from.read_u32()?);
        let methods = (0..from.read_u32()?).map(|_| MethodImage::read(&mut from));
        let methods = methods.collect::<Option<_>>()?;
        let words = |row: &[u8]| {
            let mut row = ByteReader(row);
            row.read_u16().zip(row.read_u16())
        };
        let lines = from.read_rows(4)?.chunks_exact(4).map(words);
        let lines = lines.collect::<Option<_>>()?;
        let numbers = |row: &[u8]| ByteReader(row).read_u32();
        let sites = from.read_rows(4)?.chunks_exact(4).map(numbers);
        let sites = sites.map(|site| site.map(PackedSite));
        let sites = sites.collect::<Option<_>>()?;
        let allocated = from.read_rows(4)?.chunks_exact(4).map(numbers);
        let allocated = allocated.collect::<Option<_>>()?;
        let image = ClassImage {
            texts,
            name,
            source,
            methods,
            lines,
            sites,
            allocated,
        };
        (from.0.is_empty() && image.is_valid()).then_some(image)
    }

    fn is_valid(&self) -> bool {
        let text = |at: u32| (at as usize) < self.texts.len();
        let sum = |of: fn(&MethodImage) -> u32| self.methods.iter().map(|m| u64::from(of(m))).sum();
        let (lines, sites): (u64, u64) = (sum(|m| m.lines), sum(|m| m.sites));
        let intrinsic = |m: &MethodImage| usize::from(m.intrinsic.0) <= INTRINSICS.len();
        let site = |site: &PackedSite| match site.kind() {
            1 | 2 => (site.payload() as usize) < self.allocated.len(),
            kind => kind < PackedSite::KINDS,
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

    /// The class's name, as `a/b/C`.
    pub fn class_name(&self) -> &'a str {
        self.text_at(self.name)
    }

    fn text_at(&self, at: u32) -> &'a str {
        self.texts.get(at as usize).copied().unwrap_or_default()
    }
}

impl CodeRegistry {
    /// Writes the image of a class that was added with `instrumentations`. It must be the newest class of its name in its loader.
    /// `None`: the image cannot express a part of the class.
    pub fn write_class_image(
        &self,
        class: u32,
        instrumentations: &[MethodInstrumentation],
    ) -> Option<Vec<u8>> {
        let info = self.class(class)?;
        let mut used = ImageTexts::default();
        let (name, source) = (
            used.index_of(info.name),
            info.source.map_or(0, |source| used.index_of(source) + 1),
        );
        let (mut methods, mut lines) = (Vec::new(), Vec::new());
        for (id, instrumentation) in (info.first_method..).zip(instrumentations) {
            let method = self.method(id)?;
            let its_lines = self.line_table(method);
            for (bci, line) in its_lines {
                lines.extend([bci.to_le_bytes(), line.to_le_bytes()].concat());
            }
            let flag = |is: bool, flag: u8| if is { flag } else { 0 };
            let intrinsic = match instrumentation.intrinsic {
                Some((index, bci)) => (u16::try_from(index + 1).ok()?, bci),
                None => (0, 0),
            };
            let method = MethodImage {
                name: used.index_of(method.name),
                descriptor: used.index_of(method.descriptor),
                access: method.access,
                frame: method.frame,
                flags: flag(method.transparent, TRANSPARENT)
                    | flag(instrumentation.untracked, UNTRACKED),
                intrinsic,
                lines: u32::try_from(its_lines.len()).ok()?,
                sites: u32::try_from(instrumentation.places.len()).ok()?,
            };
            method.write(&mut methods)?;
        }
        let first = info.first_site as usize - 1;
        let sites = self
            .sites
            .as_slice()
            .get(first..first + info.sites as usize)?
            .iter();
        let is_here = |site: &PackedSite| site.kind() != PackedSite::UNPACKED.kind();
        if !sites.clone().all(is_here) {
            return None;
        }
        let first = info.first_allocated as usize;
        let allocated = self
            .allocated_names
            .as_slice()
            .get(first..first + info.allocated_count as usize)?;
        let allocated: Vec<u32> = allocated.iter().map(|name| used.index_of(*name)).collect();
        let mut out = Vec::with_capacity(methods.len() + lines.len() + 4 * sites.len() + 1024);
        write_count(used.names.len(), &mut out)?;
        for name in &used.names {
            write_text(self.name_text(*name), &mut out)?;
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

    /// Like [`add_class`](CodeRegistry::add_class), from an image. `None`: no ids are left, or no room.
    pub fn restore_class(
        &mut self,
        loader: ClassLoaderId,
        image: &ClassImage<'_>,
    ) -> Option<FirstClassIds> {
        let fits = self.has_room_for(
            image.methods.len(),
            image.sites.len(),
            image.lines.len(),
            image.allocated.len(),
        );
        if !fits {
            return None;
        }
        let texts = image.texts.iter().map(|text| self.texts.intern_text(text));
        let texts: Vec<InternedText> = texts.collect::<Option<_>>()?;
        let text = |at: u32| texts.get(at as usize).copied();
        let (name, source) = (
            text(image.name)?,
            image.source.checked_sub(1).and_then(text),
        );
        let ids = self.next_class_ids();
        let class = self.classes.len() as u32 + 1;
        self.classes.push(RegisteredClass {
            name,
            source,
            loader,
            first_method: ids.first_method,
            methods: image.methods.len() as u32,
            first_site: ids.first_site,
            sites: image.sites.len() as u32,
            owner_count: 0,
            first_allocated: self.allocated_names.len() as u32,
            allocated_count: image.allocated.len() as u32,
            // Images are of classes of the JDK.
            code_source: lucce_tracelog::CodeSourceId::default(),
        })?;
        self.live_methods += image.methods.len();
        self.link_loader(loader, class);
        for place in &image.allocated {
            self.allocated_names.push(text(*place)?)?;
        }
        let first_line = self.lines.len() as u32;
        self.lines.extend(&image.lines)?;
        self.sites.extend(&image.sites)?;
        let (mut line, mut site) = (first_line, ids.first_site);
        let of_the_jdk = is_jdk_class(loader, image.class_name());
        for (id, method) in (ids.first_method..).zip(&image.methods) {
            let (its_name, descriptor) = (text(method.name)?, text(method.descriptor)?);
            self.methods.push(RegisteredMethod {
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
                self.define_intrinsic_site(index.into(), id, bci);
            }
            self.set_sites_method(site..site + method.sites, id);
            site += method.sites;
            if method.flags & UNTRACKED != 0 && of_the_jdk {
                self.add_untracked(name, its_name, descriptor);
            }
        }
        Some(ids)
    }
}
