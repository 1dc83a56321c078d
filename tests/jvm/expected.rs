//! What a program says that it does: lines `name|line|count|sum`.

/// A name and a line, and how often something happened there.
pub type Expected = ((String, i64), (u64, u64));

/// Nothing for other lines.
pub fn expected(printed: &str) -> Option<Expected> {
    let mut fields = printed.split('|');
    let name = fields.next()?.to_owned();
    let line = fields.next()?.parse().ok()?;
    let sums = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(((name, line), sums))
}
