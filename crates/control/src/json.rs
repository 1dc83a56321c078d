//! JSON for the bodies of replies, without a library.

use std::fmt::{Display, Write};

/// An object under construction.
#[derive(Default)]
pub struct ReplyObject(String);

impl ReplyObject {
    /// Adds a number, or any other value that is JSON already.
    #[must_use]
    pub fn with_raw(mut self, key: &str, value: impl Display) -> ReplyObject {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        push_quoted(&mut self.0, key);
        // Writing to a string cannot fail.
        let _ = write!(self.0, ":{value}");
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn with_text(self, key: &str, value: &str) -> ReplyObject {
        let mut quoted = String::new();
        push_quoted(&mut quoted, value);
        self.with_raw(key, quoted)
    }

    /// Adds a list of texts.
    #[must_use]
    pub fn with_list<'v>(
        self,
        key: &str,
        values: impl IntoIterator<Item = &'v str>,
    ) -> ReplyObject {
        let mut list = String::from("[");
        for value in values {
            if list.len() > 1 {
                list.push(',');
            }
            push_quoted(&mut list, value);
        }
        list.push(']');
        self.with_raw(key, list)
    }

    /// Returns the whole object.
    #[must_use]
    pub fn into_json(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

/// Returns a list of values that are JSON already.
#[must_use]
pub fn join_array(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

fn push_quoted(into: &mut String, text: &str) {
    into.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => into.extend(['\\', c]),
            c if c < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(into, "\\u{:04x}", u32::from(c));
            }
            c => into.push(c),
        }
    }
    into.push('"');
}

#[cfg(test)]
mod json_tests {
    use super::*;

    #[test]
    fn what_json_cannot_hold_is_escaped() {
        let object = ReplyObject::default()
            .with_raw("n", 1)
            .with_text("a\"b", "c\\d\ne")
            .with_list("l", ["x", "y"])
            .with_raw("o", ReplyObject::default().into_json());
        let wanted = r#"{"n":1,"a\"b":"c\\d\u000ae","l":["x","y"],"o":{}}"#;
        assert_eq!(object.into_json(), wanted);
    }
}
