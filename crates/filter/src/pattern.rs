//! A pattern: literal pieces with anything between them.

use std::fmt;

use crate::PatternError;

/// The pieces between the stars; a single piece has no star.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ClassPattern(Vec<Box<[u8]>>);

impl fmt::Display for ClassPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, piece) in self.0.iter().enumerate() {
            let star = if number == 0 { "" } else { "*" };
            write!(f, "{star}{}", String::from_utf8_lossy(piece))?;
        }
        Ok(())
    }
}

impl ClassPattern {
    pub(crate) fn parse(text: &str) -> Result<ClassPattern, PatternError> {
        check_pattern(text).map_err(|why| PatternError(format!("pattern '{text}': {why}")))?;
        Ok(ClassPattern(
            text.split('*')
                .map(|piece| piece.as_bytes().into())
                .collect(),
        ))
    }

    pub(crate) fn matches_class(&self, class: &str) -> bool {
        let class = class.as_bytes();
        match self.0.split_first() {
            Some((name, [])) => match strip_piece(name, class) {
                Some(rest) => matches!(rest.first(), None | Some(b'$')),
                None => false,
            },
            Some((first, rest)) => {
                strip_piece(first, class).is_some_and(|class| match_pieces(rest, class))
            }
            None => false,
        }
    }

    /// Whether it matches exactly this text.
    pub(crate) fn matches_text(&self, text: &str) -> bool {
        match self.0.split_first() {
            Some((name, [])) => **name == *text.as_bytes(),
            _ => self.matches_class(text),
        }
    }

    /// Whether it stands for one name, without a star.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.len() == 1
    }

    /// The pattern of a method's name, of the characters that such names may have.
    pub(crate) fn parse_method(text: &str) -> Option<ClassPattern> {
        let name = text
            .strip_prefix('<')
            .and_then(|text| text.strip_suffix('>'));
        let is_known = matches!(name, Some("init" | "clinit"));
        let is_name = !text.is_empty() && text.chars().all(|c| is_pattern_char(c) && c != '.');
        (is_known || is_name).then(|| {
            let pieces = text.split('*');
            ClassPattern(pieces.map(|piece| piece.as_bytes().into()).collect())
        })
    }

    /// Whether it may match a class whose name begins with `prefix`.
    pub(crate) fn may_match_below(&self, prefix: &str) -> bool {
        let prefix = prefix.as_bytes();
        self.0.first().is_some_and(|head| {
            let common = head.len().min(prefix.len());
            let begin = head.get(..common).zip(prefix.get(..common));
            begin.is_some_and(|(head, prefix)| strip_piece(head, prefix).is_some())
        })
    }

    /// Whether it matches every class whose name begins with `prefix`.
    pub(crate) fn matches_all_below(&self, prefix: &str) -> bool {
        match &*self.0 {
            [head, rest] => rest.is_empty() && strip_piece(head, prefix.as_bytes()).is_some(),
            _ => false,
        }
    }
}

/// Matches pieces that each follow a star: all but the last at their first occurrence.
fn match_pieces(pieces: &[Box<[u8]>], mut class: &[u8]) -> bool {
    let Some((last, pieces)) = pieces.split_last() else {
        return true;
    };
    for piece in pieces {
        let Some(rest) = find_piece(piece, class) else {
            return false;
        };
        class = rest;
    }
    let behind = class.len().checked_sub(last.len());
    behind.is_some_and(|at| {
        class
            .get(at..)
            .is_some_and(|end| strip_piece(last, end).is_some())
    })
}

/// Returns the rest behind the first occurrence of `piece`.
fn find_piece<'c>(piece: &[u8], class: &'c [u8]) -> Option<&'c [u8]> {
    (0..=class.len()).find_map(|at| strip_piece(piece, class.get(at..)?))
}

/// Returns the rest behind `piece` at the beginning. Dots match the slashes of internal names.
fn strip_piece<'c>(piece: &[u8], class: &'c [u8]) -> Option<&'c [u8]> {
    let (head, rest) = class.split_at_checked(piece.len())?;
    let same = |(wanted, found): (&u8, &u8)| wanted == found || (*wanted, *found) == (b'.', b'/');
    piece.iter().zip(head).all(same).then_some(rest)
}

fn check_pattern(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("is empty; patterns such as org.h2.* or com.acme.Foo are joined by '+'");
    }
    if text.contains('/') {
        return Err("names of packages have dots, not slashes");
    }
    if let Some(wrong) = text.chars().find(|c| !is_pattern_char(*c)) {
        return Err(match wrong {
            '(' | ')' | '#' | ':' => "a pattern names classes, not methods",
            '?' | '[' | ']' | '^' | '|' | '\\' => "the only wildcard is '*'",
            _ => "holds a character that no class name has",
        });
    }
    if text.starts_with('.') || text.contains("..") {
        return Err("a part of the name is empty");
    }
    if text.ends_with('.') {
        return Err("ends in a dot; a package is written with a star, such as org.h2.*");
    }
    Ok(())
}

/// Whether the character is a star, or one that compilers use in names.
fn is_pattern_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '-' | '*')
}
