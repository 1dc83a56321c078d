//! An entry of the class cache: what the hooks depended on, the image of the class, and its bytes with placeholders for ids.
//!
//! ```text
//! u8            1: virtual threads act as their carriers here; 2: there are bytes with hooks
//! u32 count     classes whose untracked methods were looked up: text, u64 state (`CodeRegistry::untracked_hash`)
//! u32 count     natives with a bracket: u16 index of the method
//! u32 length    the image (`registry/class_image.rs`)
//! u32 count     placeholders: u32 offset of the constant, u32 placeholder
//! u32 length    the bytes with hooks
//! ```

use std::collections::BTreeMap;

use crate::registry::FirstClassIds;
use crate::registry::class_image::{ByteReader, write_count, write_text};

/// Placeholders for ids in a cached class. They exceed all ids, and each one has its own constant. The n-th method, site or
/// native with a bracket has the n-th number.
pub const PLACEHOLDER_IDS: FirstClassIds = FirstClassIds {
    first_method: 2 << PLACEHOLDER_SPAN,
    first_site: 1 << PLACEHOLDER_SPAN,
};
/// The first placeholder of natives with a bracket.
pub const NATIVE_PLACEHOLDERS: u32 = 3 << PLACEHOLDER_SPAN;
const PLACEHOLDER_SPAN: u32 = 28;
// Ids of methods and sites have fewer bits.
const _: () = assert!(
    lucce_callgraph::SiteId::BITS <= PLACEHOLDER_SPAN
        && lucce_callgraph::MethodId::BITS <= PLACEHOLDER_SPAN
);

/// Offsets of constants in a class, each with its placeholder.
pub type PlaceholderConstants = Vec<(u32, u32)>;

/// The integer constants of a class that are placeholders.
pub fn find_placeholders(integers: &[(usize, i32)]) -> Option<PlaceholderConstants> {
    let constants = integers.iter().map(|(at, value)| {
        let value = value.cast_unsigned();
        Some((u32::try_from(*at).ok()?, value))
    });
    let meant = |(_, value): &(u32, u32)| matches!(value >> PLACEHOLDER_SPAN, 1..=3);
    let all: PlaceholderConstants = constants.collect::<Option<_>>()?;
    Some(all.into_iter().filter(meant).collect())
}

/// Replaces placeholders by ids. `None`: a placeholder has no id.
pub fn replace_placeholders(
    class: &mut [u8],
    constants: impl Iterator<Item = (u32, u32)>,
    ids: FirstClassIds,
    natives: &[u32],
) -> Option<()> {
    for (at, value) in constants {
        let index = value & ((1 << PLACEHOLDER_SPAN) - 1);
        let id = match value >> PLACEHOLDER_SPAN {
            1 => ids.first_site.checked_add(index)?,
            2 => ids.first_method.checked_add(index)?,
            3 => *natives.get(index as usize)?,
            _ => return None,
        };
        let at = at as usize;
        let place = class.get_mut(at..at.checked_add(4)?)?;
        if *place != value.to_be_bytes() {
            return None;
        }
        place.copy_from_slice(&id.to_be_bytes());
    }
    Some(())
}

const ACTS_AS_CARRIER: u8 = 1;
const HAS_HOOKS: u8 = 2;

/// A new entry: a class with hooks, or a class that needs none.
pub struct NewCacheEntry<'m> {
    pub acts_as_carrier: bool,
    /// `CodeRegistry::untracked_hash` of each class that was looked up.
    pub untracked_states: &'m BTreeMap<String, u64>,
    /// Indices of the methods that are natives with a bracket.
    pub natives: &'m [usize],
    pub image: &'m [u8],
    pub hooked: Option<(&'m [u8], &'m PlaceholderConstants)>,
}

impl NewCacheEntry<'_> {
    /// `None`: a part is too large.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        out.push(
            flag(self.acts_as_carrier, ACTS_AS_CARRIER) | flag(self.hooked.is_some(), HAS_HOOKS),
        );
        write_count(self.untracked_states.len(), &mut out)?;
        for (class, state) in self.untracked_states {
            write_text(class, &mut out)?;
            out.extend(state.to_le_bytes());
        }
        write_count(self.natives.len(), &mut out)?;
        for index in self.natives {
            out.extend(u16::try_from(*index).ok()?.to_le_bytes());
        }
        write_count(self.image.len(), &mut out)?;
        out.extend(self.image);
        if let Some((bytes, constants)) = self.hooked {
            write_count(constants.len(), &mut out)?;
            for (at, value) in constants {
                out.extend([at.to_le_bytes(), value.to_le_bytes()].concat());
            }
            write_count(bytes.len(), &mut out)?;
            out.extend(bytes);
        }
        Some(out)
    }
}

/// A parsed entry.
pub struct CacheEntryView<'e> {
    pub acts_as_carrier: bool,
    pub untracked_states: Vec<(&'e str, u64)>,
    pub natives: Vec<usize>,
    pub image: &'e [u8],
    /// The bytes with hooks, and their placeholders, eight bytes each.
    pub hooked: Option<(&'e [u8], &'e [u8])>,
}

impl<'e> CacheEntryView<'e> {
    /// `None`: the bytes are not a valid entry.
    pub fn parse(bytes: &'e [u8]) -> Option<CacheEntryView<'e>> {
        let mut from = ByteReader(bytes);
        let flags = from.read_u8()?;
        let queries = (0..from.read_u32()?).map(|_| Some((from.read_text()?, from.read_u64()?)));
        let queries = queries.collect::<Option<_>>()?;
        let natives = from.read_rows(2)?.chunks_exact(2);
        let natives = natives.map(|index| Some(ByteReader(index).read_u16()?.into()));
        let natives = natives.collect::<Option<_>>()?;
        let image = from.read_rows(1)?;
        let hooked = match flags & HAS_HOOKS {
            0 => None,
            _ => {
                let constants = from.read_rows(8)?;
                Some((from.read_rows(1)?, constants))
            }
        };
        from.0.is_empty().then_some(CacheEntryView {
            acts_as_carrier: flags & ACTS_AS_CARRIER != 0,
            untracked_states: queries,
            natives,
            image,
            hooked,
        })
    }
}

/// The placeholders of an entry: offset and value.
pub fn read_constants(rows: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    rows.chunks_exact(8).filter_map(|row| {
        let mut row = ByteReader(row);
        row.read_u32().zip(row.read_u32())
    })
}

#[cfg(test)]
mod cache_entry_tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written_and_no_part_of_it_is() {
        let queries = BTreeMap::from([("java/lang/A".into(), 7), ("java/lang/B".into(), 0)]);
        let constants = vec![
            (1, PLACEHOLDER_IDS.first_site),
            (5, NATIVE_PLACEHOLDERS + 1),
        ];
        let hooked = [0xca, 16, 0, 0, 0, 48, 0, 0, 1];
        for hooked in [None, Some((&hooked[..], &constants))] {
            let entry = NewCacheEntry {
                acts_as_carrier: hooked.is_none(),
                untracked_states: &queries,
                natives: &[3, 9],
                image: b"image",
                hooked,
            };
            let bytes = entry.to_bytes().unwrap();
            let entry = CacheEntryView::parse(&bytes).unwrap();
            let read: BTreeMap<String, u64> = entry
                .untracked_states
                .iter()
                .map(|(class, state)| ((*class).into(), *state))
                .collect();
            assert_eq!(read, queries);
            assert_eq!((entry.natives, entry.image), (vec![3, 9], &b"image"[..]));
            assert_eq!(entry.acts_as_carrier, hooked.is_none());
            assert_eq!(entry.hooked.map(|(bytes, _)| bytes), hooked.map(|of| of.0));
            for length in 0..bytes.len() {
                assert!(
                    CacheEntryView::parse(&bytes[..length]).is_none(),
                    "{length}"
                );
            }
            assert!(CacheEntryView::parse(&[&bytes[..], &[0]].concat()).is_none());
        }
    }

    #[test]
    fn ids_replace_their_placeholders() {
        let ids = FirstClassIds {
            first_method: 5,
            first_site: 70_000,
        };
        let site = PLACEHOLDER_IDS.first_site + 3;
        let all = [site, PLACEHOLDER_IDS.first_method, NATIVE_PLACEHOLDERS + 1];
        let integers: Vec<(usize, i32)> = (0..)
            .zip([all[0], 40_000, all[1], all[2]])
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(n, value): (usize, u32)| (1 + 4 * n, value.cast_signed()))
            .collect();
        let mut class = vec![9];
        class.extend(integers.iter().flat_map(|(_, value)| value.to_be_bytes()));
        let constants = find_placeholders(&integers).unwrap();
        assert_eq!(constants, [(1, all[0]), (9, all[1]), (13, all[2])]);
        let plain = class.clone();
        let put = |class: &mut [u8], natives: &[u32]| {
            replace_placeholders(class, constants.iter().copied(), ids, natives)
        };
        put(&mut class, &[1, 99]).unwrap();
        let words: Vec<u32> = class[1..]
            .chunks_exact(4)
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [70_003, 40_000, 5, 99]);
        // No such native, no placeholder there, and no room.
        assert!(put(&mut plain.clone(), &[1]).is_none());
        assert!(put(&mut class, &[1, 99]).is_none());
        assert!(put(&mut plain.clone()[..15], &[1, 99]).is_none());
    }
}
