//! Code sources of classes: the places that classes were loaded from, by number.

use lucce_tracelog::CodeSourceId;
use rustc_hash::FxHashMap;

use crate::registry::{CodeRegistry, row_of_id};

/// All locations, each once. Ids count from 1 and are never reused.
#[derive(Default)]
pub(super) struct CodeSources {
    locations: Vec<String>,
    by_location: FxHashMap<String, CodeSourceId>,
}

/// A program that makes a location for each class must not fill the memory.
const MAX_SOURCES: usize = 1 << 16;

impl CodeSources {
    /// The id of a location; the default id if there are too many.
    fn intern_location(&mut self, location: &str) -> CodeSourceId {
        if let Some(known) = self.by_location.get(location) {
            return *known;
        }
        if self.locations.len() == MAX_SOURCES {
            return CodeSourceId::default();
        }
        self.locations.push(location.to_owned());
        let id = CodeSourceId(self.locations.len() as u32);
        self.by_location.insert(location.to_owned(), id);
        id
    }
}

impl CodeRegistry {
    /// Records where a class, given by id, was loaded from.
    pub fn set_code_source(&mut self, class: u32, location: &str) {
        let source = self.code_sources.intern_location(location);
        if let Some(class) = self.classes.get_mut(row_of_id(class)) {
            class.code_source = source;
        }
    }

    /// The location of a code source. `None`: the default id.
    pub fn code_source_location(&self, source: CodeSourceId) -> Option<&str> {
        let row = (source.0 as usize).checked_sub(1)?;
        self.code_sources.locations.get(row).map(String::as_str)
    }
}

#[cfg(test)]
mod code_sources_tests {
    use super::*;

    #[test]
    fn a_location_has_one_id_and_the_number_of_ids_is_bounded() {
        let mut sources = CodeSources::default();
        let first = sources.intern_location("file:/a.jar");
        assert_eq!(first, CodeSourceId(1));
        assert_eq!(sources.intern_location("file:/a.jar"), first);
        for number in 1..MAX_SOURCES {
            assert_ne!(
                sources.intern_location(&number.to_string()),
                CodeSourceId(0)
            );
        }
        assert_eq!(sources.intern_location("one more"), CodeSourceId(0));
        assert_eq!(sources.intern_location("file:/a.jar"), first);
    }
}
