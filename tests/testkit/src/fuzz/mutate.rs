//! Damage that gets past the checksums: files are taken apart, changed, and put together with their sums right.

/// Small and reproducible.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end.max(1)
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// A number that is at some border, or near `number`.
    fn number(&mut self, number: u64) -> u64 {
        match self.below(4) {
            0 => self.of(&EXTREME),
            1 => number.wrapping_add(self.of(&[1, 2, u64::MAX, u64::MAX - 1])),
            2 => self.next() % 2000,
            _ => number ^ 1 << self.below(64),
        }
    }
}

const EXTREME: [u64; 24] = [
    0,
    1,
    2,
    63,
    64,
    127,
    128,
    255,
    4095,
    4096,
    65_535,
    65_536,
    (1 << 18) - 1,
    1 << 20,
    (1 << 24) - 1,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    (1 << 34) - 1,
    1 << 46,
    1 << 52,
    1 << 62,
    1 << 63,
    u64::MAX,
];

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).unwrap_or(&[0; 4]);
    u32::from_le_bytes(four.try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The sum of `from..to` is put behind them.
fn sum(bytes: &mut [u8], from: usize, to: usize) {
    if let Some(summed) = bytes.get(from..to) {
        let sum = crc32fast::hash(summed);
        put(bytes, to, &sum.to_le_bytes());
    }
}

/// Whatever the file is: sums are wrong then, mostly.
fn raw(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let (at, from) = (random.below(bytes.len()), random.below(bytes.len()));
    let length = random.below(1000).min(bytes.len() - at.max(from));
    match random.below(4) {
        0 => bytes.truncate(at),
        1 => bytes.copy_within(from..from + length, at),
        2 => bytes[at..at + length].fill(random.of(&[0, 255])),
        _ => {
            for _ in 0..random.of(&[1, 1, 3, 20]) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
        }
    }
    bytes
}

/// A block's header of 64 bytes and what follows it.
type Block = (Vec<u8>, Vec<u8>);

/// Logs and streams have blocks alike; `magic` begins each.
fn split(bytes: &[u8], magic: &[u8]) -> (Vec<u8>, Vec<Block>, Vec<u8>) {
    let (mut blocks, mut at) = (Vec::new(), 64);
    while let Some(header) = bytes
        .get(at..at + 64)
        .filter(|header| header.starts_with(magic))
    {
        let end = at + 64 + u32_at(header, 8) as usize;
        let end = end.min(bytes.len());
        blocks.push((header.to_vec(), bytes[at + 64..end].to_vec()));
        at = end;
    }
    let head = bytes.get(..64).unwrap_or(bytes).to_vec();
    (head, blocks, bytes.get(at..).unwrap_or_default().to_vec())
}

fn joined(head: Vec<u8>, blocks: Vec<Block>, tail: Vec<u8>) -> Vec<u8> {
    let blocks = blocks
        .into_iter()
        .flat_map(|(header, payload)| [header, payload]);
    [head]
        .into_iter()
        .chain(blocks)
        .chain([tail])
        .flatten()
        .collect()
}

fn shuffled<T: Clone>(random: &mut Random, list: &mut Vec<T>) {
    let (a, b) = (random.below(list.len()), random.below(list.len()));
    match random.below(4) {
        0 => list.insert(b, list[a].clone()),
        1 if list.len() > 1 => drop(list.remove(a)),
        2 => list.swap(a, b),
        _ => list.extend_from_within(..),
    }
}

pub fn log(seed: u64, bytes: &[u8]) -> Vec<u8> {
    let random = &mut Random::new(seed);
    let (mut head, mut blocks, tail) = split(bytes, b"LBLK");
    if blocks.is_empty() || random.below(7) == 0 {
        return if bytes.is_empty() {
            Vec::new()
        } else {
            raw(random, bytes)
        };
    }
    match random.below(8) {
        0 => {
            let at = random.of(&[8, 9, 10, 11, 12, 16, 24, 32, 39]);
            head[at] = random.of(&[0, 1, 2, 3, 5, 12, 18, 28, 34, 40, 64, 255]);
            sum(&mut head, 0, 60);
        }
        1 => shuffled(random, &mut blocks),
        2 => {
            let block = random.below(blocks.len());
            let (header, payload) = &mut blocks[block];
            let at = random.of(&[4, 8, 12, 16, 24, 36]);
            let value = random.number(payload.len() as u64) as u32;
            put(header, at, &value.to_le_bytes());
            sum(header, 4, 20);
        }
        3 => {
            let block = random.below(blocks.len());
            words(random, &mut blocks[block].1);
        }
        _ => {
            let of_records = |(_, block): &(usize, &Block)| block.0[4] == 1;
            let all: Vec<usize> = blocks
                .iter()
                .enumerate()
                .filter(of_records)
                .map(|(at, _)| at)
                .collect();
            if !all.is_empty() {
                let (header, payload) = &mut blocks[random.of(&all)];
                records(random, header, payload);
            }
        }
    }
    joined(head, blocks, tail)
}

/// Words of eight bytes: cells and entries.
fn words(random: &mut Random, payload: &mut [u8]) {
    for _ in 0..random.of(&[1, 3, 10]) {
        let at = 8 * random.below(payload.len() / 8);
        let word = random.number(u64_at(payload, at));
        put(payload, at, &word.to_le_bytes());
    }
}

fn leb(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn unleb(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Kind and body of each, changed; the block has their length and sum.
fn records(random: &mut Random, header: &mut [u8], payload: &mut Vec<u8>) {
    let used = (u64_at(header, 24) as usize).min(payload.len());
    let (mut list, mut at) = (Vec::new(), 0);
    while at < used {
        let kind = payload[at];
        at += 1;
        let Some(length) = unleb(payload, &mut at) else {
            break;
        };
        let end = at.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        let Some(body) = payload.get(at..end) else {
            break;
        };
        list.push((kind, body.to_vec()));
        at = end;
    }
    for _ in 0..random.of(&[1, 1, 2, 5]) {
        if list.is_empty() {
            break;
        }
        let at = random.below(list.len());
        match random.below(10) {
            0 => shuffled(random, &mut list),
            1 => list[at].0 = random.below(26) as u8,
            2 => {
                let (kind, of) = list[at].clone();
                list.extend((0..20).map(|_| (kind, body(random, &of))));
            }
            _ => list[at].1 = body(random, &list[at].1.clone()),
        }
    }
    payload.clear();
    for (kind, body) in list {
        payload.push(kind);
        leb(body.len() as u64, payload);
        payload.extend(body);
    }
    let used = payload.len();
    payload.resize(used.next_multiple_of(64), 0);
    put(header, 8, &(payload.len() as u32).to_le_bytes());
    put(header, 24, &(used as u64).to_le_bytes());
    put(header, 32, &crc32fast::hash(&payload[..used]).to_le_bytes());
    put(header, 36, &1_u32.to_le_bytes());
    sum(header, 4, 20);
}

/// A record's body: mostly with another number in it.
fn body(random: &mut Random, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    if body.is_empty() {
        return vec![random.next() as u8; random.below(12)];
    }
    let at = random.below(body.len());
    match random.below(10) {
        0 | 1 => body[at] ^= 1 << random.below(8),
        2 => body.truncate(at),
        3 => words(random, &mut body),
        4 => body.extend((0..random.below(30)).map(|_| random.0 as u8)),
        _ => {
            let (mut starts, mut at) = (Vec::new(), 0);
            let mut from = at;
            while let Some(value) = unleb(&body, &mut at) {
                starts.push((from, at, value));
                from = at;
            }
            if !starts.is_empty() {
                let (from, to, value) = starts[random.below(starts.len().min(8))];
                let mut number = Vec::new();
                leb(random.number(value), &mut number);
                body.splice(from..to, number);
            }
        }
    }
    body
}

pub fn stream(seed: u64, bytes: &[u8]) -> Vec<u8> {
    let random = &mut Random::new(seed);
    let (mut head, mut blocks, tail) = split(bytes, b"LEVB");
    if blocks.is_empty() || random.below(6) == 0 {
        return if bytes.is_empty() {
            Vec::new()
        } else {
            raw(random, bytes)
        };
    }
    let block = random.below(blocks.len());
    match random.below(6) {
        0 => {
            let at = 8 + random.below(56);
            head[at] = random.of(&[0, 1, 2, 255]);
            sum(&mut head, 0, 40);
        }
        1 => shuffled(random, &mut blocks),
        2 => {
            let (header, payload) = &mut blocks[block];
            let at = random.of(&[4, 5, 8, 12, 16, 24, 28, 36]);
            let value = random.number(payload.len() as u64) as u32;
            put(header, at, &value.to_le_bytes());
            sum(header, 4, 32);
        }
        _ => {
            let (header, payload) = &mut blocks[block];
            words(random, payload);
            let used = (u32_at(header, 36) as usize).min(payload.len());
            put(header, 40, &crc32fast::hash(&payload[..used]).to_le_bytes());
        }
    }
    joined(head, blocks, tail)
}

pub fn recording(seed: u64, bytes: &[u8]) -> Vec<u8> {
    let random = &mut Random::new(seed);
    let (mut blocks, mut at) = (Vec::new(), 16);
    while let Some(header) = bytes.get(at..at + 24) {
        let end = at + 28 + u32_at(header, 20) as usize;
        let Some(packed) = bytes.get(at + 28..end) else {
            break;
        };
        blocks.push((header.to_vec(), packed.to_vec()));
        at = end;
    }
    if blocks.is_empty() || random.below(6) == 0 {
        return if bytes.is_empty() {
            Vec::new()
        } else {
            raw(random, bytes)
        };
    }
    let block = random.below(blocks.len());
    match random.below(6) {
        0 => shuffled(random, &mut blocks),
        1 => {
            let at = random.of(&[0, 4, 8, 16, 20]);
            let value = random.number(0) as u32;
            put(&mut blocks[block].0, at, &value.to_le_bytes());
        }
        _ => {
            let (header, packed) = &mut blocks[block];
            let mut unpacked = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, 1 << 22)
                .unwrap_or_default();
            for _ in 0..random.of(&[1, 2, 10]) {
                unpacked = body(random, &unpacked);
            }
            *packed = miniz_oxide::deflate::compress_to_vec(&unpacked, 6);
            put(header, 16, &(unpacked.len() as u32).to_le_bytes());
            put(header, 20, &(packed.len() as u32).to_le_bytes());
        }
    }
    let mut file = bytes[..16].to_vec();
    for (header, packed) in blocks {
        let sum = crc32fast::hash(&[&header[..], &packed].concat());
        file.extend([header, sum.to_le_bytes().to_vec(), packed].concat());
    }
    file
}
