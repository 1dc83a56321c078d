//! Model of the program's kinds of events: `LucceRtProgramEvents.event` finds the type of a text by plain reads, or asks the
//! agent.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};

use lucce_layout::text_numbers::TextNumbers;

const PLACES: usize = 4;

/// The helper class's array, and the types. A text is a number here, 0 for none: the contents of a String are final.
struct ModelKinds {
    texts: [AtomicU32; PLACES],
    types: TextNumbers,
}

/// The type of a text, as in the log.
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

    /// Reads like `event`: plainly. All texts have one hash.
    fn find_text(&self, text: u32) {
        for (place, at) in self.texts.iter().enumerate() {
            match at.load(Ordering::Relaxed) {
                0 => return self.add_kind(place, text),
                other if other == text => {
                    let number = self.types.get_number(place);
                    // Without its type, the real code asks the agent.
                    assert!(
                        number == 0 || number == type_of(text),
                        "{number} for {text}"
                    );
                    return;
                }
                _ => {}
            }
        }
    }

    /// Adds a kind like the agent's `ProgramKinds::add_kind`.
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
        // No text has two places, and a reader now finds all that is there.
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
