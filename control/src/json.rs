//! JSON for the bodies of replies: so little of it that a library would be more.

use std::fmt::{Display, Write};

/// An object that is being written.
#[derive(Default)]
pub struct Object(String);

impl Object {
    /// A number, or anything that is JSON already.
    #[must_use]
    pub fn raw(mut self, key: &str, value: impl Display) -> Object {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        quote(&mut self.0, key);
        // Writing to a string cannot fail.
        let _ = write!(self.0, ":{value}");
        self
    }

    /// A text.
    #[must_use]
    pub fn text(self, key: &str, value: &str) -> Object {
        let mut quoted = String::new();
        quote(&mut quoted, value);
        self.raw(key, quoted)
    }

    /// Texts.
    #[must_use]
    pub fn list<'v>(self, key: &str, values: impl IntoIterator<Item = &'v str>) -> Object {
        let mut list = String::from("[");
        for value in values {
            if list.len() > 1 {
                list.push(',');
            }
            quote(&mut list, value);
        }
        list.push(']');
        self.raw(key, list)
    }

    /// The whole object.
    #[must_use]
    pub fn end(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

/// A list of what is JSON already.
#[must_use]
pub fn array(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

fn quote(into: &mut String, text: &str) {
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
mod tests {
    use super::*;

    #[test]
    fn what_json_cannot_hold_is_escaped() {
        let object = Object::default()
            .raw("n", 1)
            .text("a\"b", "c\\d\ne")
            .list("l", ["x", "y"])
            .raw("o", Object::default().end());
        let wanted = r#"{"n":1,"a\"b":"c\\d\u000ae","l":["x","y"],"o":{}}"#;
        assert_eq!(object.end(), wanted);
    }
}
