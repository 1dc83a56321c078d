//! The anchors of an epoch, by number.
//!
//! Removed anchors leave no gap: a full chunk that has lost some stores the others contiguously, and a bit for each
//! number says which are stored.

use super::AnchorOrigin;
use super::node::reserve_one;
use crate::MethodId;

const CHUNK: usize = 1024;
/// The head of a removed anchor that is still stored: no method.
const GONE: MethodId = MethodId(u32::MAX);

#[derive(Clone, Debug, Default)]
pub(super) struct AnchorStore {
    chunks: Vec<AnchorChunk>,
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct AnchorChunk {
    rows: Vec<AnchorOrigin>,
    /// Which numbers the rows have; none: the first ones.
    places: Option<Box<PlaceBits>>,
}

/// A bit for each number of a chunk.
type PlaceBits = [u64; CHUNK / 64];

fn has_place(places: &PlaceBits, place: usize) -> bool {
    places[place / 64] >> (place % 64) & 1 == 1
}

/// Returns how many numbers before this one are stored.
fn count_places_before(places: &PlaceBits, place: usize) -> usize {
    let words = &places[..place / 64];
    let whole: u32 = words.iter().map(|word| word.count_ones()).sum();
    let below = places[place / 64] & ((1 << (place % 64)) - 1);
    (whole + below.count_ones()) as usize
}

impl AnchorChunk {
    fn get(&self, place: usize) -> Option<&AnchorOrigin> {
        match &self.places {
            None => self.rows.get(place),
            Some(places) => has_place(places, place)
                .then(|| self.rows.get(count_places_before(places, place)))
                .flatten(),
        }
    }

    /// Keeps the selected anchors of a full chunk; `keep` gets the position.
    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut places = PlaceBits::default();
        let mut rows = Vec::new();
        for place in 0..CHUNK {
            if let (Some(row), true) = (self.get(place), keep(place))
                && row.head != GONE
            {
                places[place / 64] |= 1 << (place % 64);
                rows.push(*row);
            }
        }
        if rows.len() < self.rows.len() {
            rows.shrink_to_fit();
            // An empty chunk needs no bits.
            self.places = (!rows.is_empty()).then(|| Box::new(places));
            self.rows = rows;
        }
    }
}

impl AnchorStore {
    /// Returns the number of anchors, including removed ones.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, id: usize) -> Option<&AnchorOrigin> {
        let origin = self.chunks.get(id / CHUNK)?.get(id % CHUNK);
        origin.filter(|origin| origin.head != GONE)
    }

    pub(super) fn push(&mut self, origin: AnchorOrigin) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(AnchorChunk::default());
        }
        if let Some(last) = self.chunks.last_mut() {
            reserve_one(&mut last.rows);
            last.rows.push(origin);
            self.len += 1;
        }
    }

    /// Returns the remaining anchors with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &AnchorOrigin)> {
        let chunks = self.chunks.iter().enumerate();
        chunks.flat_map(|(at, chunk)| {
            let left = !chunk.rows.is_empty();
            let places = 0..if left { CHUNK } else { 0 };
            let rows = places.filter_map(move |place| Some((place, chunk.get(place)?)));
            let left = rows.filter(|(_, origin)| origin.head != GONE);
            left.map(move |(place, origin)| (at * CHUNK + place, origin))
        })
    }

    /// Removes all other anchors; those of the last chunk stay stored until it is full.
    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let full = self.len / CHUNK;
        for chunk in self.chunks.iter_mut().skip(full) {
            for (place, row) in chunk.rows.iter_mut().enumerate() {
                if !keep(full * CHUNK + place) {
                    row.head = GONE;
                }
            }
        }
        for (at, chunk) in self.chunks.iter_mut().take(full).enumerate() {
            if !chunk.rows.is_empty() {
                chunk.retain(|place| keep(at * CHUNK + place));
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let places =
            |chunk: &AnchorChunk| chunk.places.as_ref().map_or(0, |_| size_of::<PlaceBits>());
        let rows = |chunk: &AnchorChunk| chunk.rows.capacity() * size_of::<AnchorOrigin>();
        let chunks = self.chunks.iter();
        chunks
            .map(|chunk| places(chunk) + rows(chunk))
            .sum::<usize>()
            + self.chunks.capacity() * size_of::<AnchorChunk>()
    }
}
