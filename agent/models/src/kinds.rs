//! The program's own kinds of events: `LucceRtEvents.event` finds a text's type by plain reads, or asks the agent.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};

use crate::places::TextNumbers;

const PLACES: usize = 4;

/// The array of the helper class, and the types. A text is a number here, and 0 is none: what a String is made of is final.
struct ModelKinds {
    texts: [AtomicU32; PLACES],
    types: TextNumbers,
}

/// The type of a text, which the log says.
fn type_of(text: u32) -> u32 {
    text + 10
}

impl ModelKinds {
    fn new() -> ModelKinds {
        ModelKinds {
            texts: std::array::from_fn(|_| AtomicU32::new(0)),
            types: TextNumbers::new(PLACES),
        }
    }

    /// As `event`: plain reads. All texts have one hash.
    fn find_text(&self, text: u32) {
        for (place, at) in self.texts.iter().enumerate() {
            match at.load(Ordering::Relaxed) {
                0 => return self.add_kind(place, text),
                other if other == text => {
                    let found = self.types.get_number(place);
                    // Without its type the agent is asked.
                    assert!(found == 0 || found == type_of(text), "{found} for {text}");
                    return;
                }
                _ => {}
            }
        }
    }

    /// As the agent does, in `ProgramKinds::add_kind`.
    fn add_kind(&self, place: usize, text: u32) {
        if self
            .types
            .claim_place(place as i32, type_of(text))
            .is_some()
        {
            self.texts[place].store(text, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_text_that_is_seen_has_its_own_type_or_none_yet() {
    loom::model(|| {
        let kinds = Arc::new(ModelKinds::new());
        let shared = kinds.clone();
        let other = loom::thread::spawn(move || {
            shared.find_text(2);
            shared.find_text(1);
        });
        kinds.find_text(1);
        kinds.find_text(2);
        other.join().unwrap();
        // No text has two places, and who comes now finds what is there.
        let texts: Vec<u32> = kinds
            .texts
            .iter()
            .map(|text| text.load(Ordering::Relaxed))
            .filter(|text| *text != 0)
            .collect();
        assert!(matches!(texts[..], [1 | 2] | [1, 2] | [2, 1]), "{texts:?}");
        for text in [1, 2] {
            kinds.find_text(text);
        }
    });
}
