//! Long lists of JSON, read row by row: as one value a report of all contexts takes many times the memory of its text.

use std::fmt;
use std::io::Read;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::Checked;

/// Hands each element of the list `key` to `each`, which may refuse it. Gives the object without that list.
///
/// # Errors
/// It is no such object, has no such list, or a row is refused.
pub fn read_rows(
    json: impl Read,
    key: &str,
    each: &mut dyn FnMut(Value) -> Checked,
) -> Result<Value, String> {
    let mut reader = serde_json::Deserializer::from_reader(json);
    let visitor = ObjectVisitor { key, each };
    let rest = reader.deserialize_map(visitor).map_err(|e| e.to_string())?;
    reader.end().map_err(|e| e.to_string())?;
    Ok(rest)
}

struct ObjectVisitor<'a> {
    key: &'a str,
    each: &'a mut dyn FnMut(Value) -> Checked,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "an object with a list {}", self.key)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut rest = Map::new();
        let mut has_list = false;
        while let Some(name) = object.next_key::<String>()? {
            if name == self.key {
                has_list = true;
                object.next_value_seed(ListSeed { each: self.each })?;
            } else {
                rest.insert(name, object.next_value()?);
            }
        }
        match has_list {
            true => Ok(Value::Object(rest)),
            false => Err(A::Error::custom(format!("no list {}", self.key))),
        }
    }
}

struct ListSeed<'a> {
    each: &'a mut dyn FnMut(Value) -> Checked,
}

impl<'de> DeserializeSeed<'de> for ListSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<(), D::Error> {
        list.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ListSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(row) = list.next_element()? {
            (self.each)(row).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
