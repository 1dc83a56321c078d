//! The program's own kinds of events: `LucceRtEvents.event` finds a text's type by plain reads, or asks the agent.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};

use crate::places::Places;

const PLACES: usize = 4;

/// The array of the helper class, and the types. A text is a number here, and 0 is none: what a String is made of is final.
struct Kinds {
    texts: [AtomicU32; PLACES],
    types: Places,
}

/// The type of a text, which the log says.
fn type_of(text: u32) -> u32 {
    text + 10
}

impl Kinds {
    fn new() -> Kinds {
        Kinds {
            texts: std::array::from_fn(|_| AtomicU32::new(0)),
            types: Places::new(PLACES),
        }
    }

    /// As `event`: plain reads. All texts have one hash.
    fn event(&self, text: u32) {
        for (place, at) in self.texts.iter().enumerate() {
            match at.load(Ordering::Relaxed) {
                0 => return self.learn(place, text),
                other if other == text => {
                    let found = self.types.number(place);
                    // Without its type the agent is asked.
                    assert!(found == 0 || found == type_of(text), "{found} for {text}");
                    return;
                }
                _ => {}
            }
        }
    }

    /// As the agent does, in `OwnKinds::learn`.
    fn learn(&self, place: usize, text: u32) {
        if self.types.take(place as i32, type_of(text)).is_some() {
            self.texts[place].store(text, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_text_that_is_seen_has_its_own_type_or_none_yet() {
    loom::model(|| {
        let kinds = Arc::new(Kinds::new());
        let shared = kinds.clone();
        let other = loom::thread::spawn(move || {
            shared.event(2);
            shared.event(1);
        });
        kinds.event(1);
        kinds.event(2);
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
            kinds.event(text);
        }
    });
}
