//! Who may ask: who knows the token; without one, programs of this machine.
//!
//! A page of another site can make a browser of this machine ask. It cannot know the token. Without a token, such a page gives itself
//! away by the `Host` that the browser sends, if its name was made to mean 127.0.0.1 (DNS rebinding), or by its `Origin`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use subtle::ConstantTimeEq;

use super::ServerResponse;
use crate::error::FleetError;

/// What a client must know. Only one that was made is printed, once.
#[derive(Clone)]
pub struct AccessToken(String);

/// Fewer characters can be guessed.
const SHORTEST: usize = 16;
const LONGEST: usize = 4096;

impl AccessToken {
    /// The file's first line, without blanks around it.
    ///
    /// # Errors
    /// The file cannot be read, or the line is shorter than 16 characters or has others than visible ones of ASCII.
    pub fn read(path: &Path) -> Result<AccessToken, FleetError> {
        let text = std::fs::read_to_string(path).map_err(FleetError::for_path(path))?;
        AccessToken::new(text.lines().next().unwrap_or_default().trim())
            .map_err(|what| FleetError::Usage(format!("{}: {what}", path.display())))
    }

    /// # Errors
    /// In words.
    pub fn new(text: &str) -> Result<AccessToken, String> {
        let is_visible = text.bytes().all(|c| c.is_ascii_graphic());
        match is_visible && (SHORTEST..=LONGEST).contains(&text.len()) {
            true => Ok(AccessToken(text.to_owned())),
            false => Err(format!(
                "no token: {SHORTEST} to {LONGEST} visible characters of ASCII were expected"
            )),
        }
    }

    /// Of 128 random bits.
    ///
    /// # Errors
    /// The system gives none.
    pub fn new_random() -> Result<AccessToken, FleetError> {
        let path = Path::new("/dev/urandom");
        let mut bits = [0; 16];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut bits));
        read.map_err(FleetError::for_path(path))?;
        Ok(AccessToken(format!("{:032x}", u128::from_ne_bytes(bits))))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn matches_bytes(&self, bytes: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(bytes).into()
    }
}

/// # Errors
/// What is answered to who may not ask.
pub fn check_access(
    token: Option<&AccessToken>,
    headers: &HeaderMap,
) -> Result<(), ServerResponse> {
    match token {
        Some(token) => check_token(token, headers),
        None => check_local_request(headers),
    }
}

fn check_token(token: &AccessToken, headers: &HeaderMap) -> Result<(), ServerResponse> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let one = values.next().filter(|_| values.next().is_none());
    let bearer = one.and_then(|value| {
        let (scheme, rest) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(rest)
    });
    match bearer.is_some_and(|bearer| token.matches_bytes(bearer.trim_ascii())) {
        true => Ok(()),
        false => Err(ServerResponse::from_message(
            401,
            "the header Authorization: Bearer TOKEN is needed",
        )
        .with_header("WWW-Authenticate", "Bearer")),
    }
}

fn check_local_request(headers: &HeaderMap) -> Result<(), ServerResponse> {
    let mut hosts = headers.get_all(HOST).iter();
    let one = hosts.next().filter(|_| hosts.next().is_none());
    let is_own = |host: &[u8]| std::str::from_utf8(host).is_ok_and(is_loopback);
    if !one.is_some_and(|host| is_own(host.as_bytes())) {
        return Err(ServerResponse::from_message(
            403,
            "this is no name of this server",
        ));
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    match origins.all(|origin| {
        let host = origin.as_bytes().strip_prefix(b"http://");
        host.is_some_and(is_own)
    }) {
        true => Ok(()),
        false => Err(ServerResponse::from_message(
            403,
            "pages of other sites may not ask",
        )),
    }
}

/// Of any port: it may be another one at the near end of a tunnel.
fn is_loopback(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let names = ["127.0.0.1", "localhost", "[::1]"];
    names.iter().any(|name| {
        let rest = host.strip_prefix(name);
        rest.is_some_and(|rest| {
            let port = rest.strip_prefix(':');
            rest.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_ok())
        })
    })
}

#[cfg(test)]
mod access_tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn status(token: Option<&AccessToken>, pairs: &[(&'static str, &str)]) -> u16 {
        check_access(token, &headers(pairs)).map_or_else(|refused| refused.status(), |()| 200)
    }

    #[test]
    fn the_token_opens_and_nothing_else() {
        let token = AccessToken::new("0123456789abcdef").unwrap();
        let status_of = |header: &str| status(Some(&token), &[("authorization", header)]);
        assert_eq!(status_of("Bearer 0123456789abcdef"), 200);
        assert_eq!(status_of("bearer  0123456789abcdef "), 200);
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdeg",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert_eq!(status_of(wrong), 401, "{wrong}");
        }
        assert_eq!(status(Some(&token), &[("host", "localhost")]), 401);
        let right = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(status(Some(&token), &[right, right]), 401);
        assert_eq!(
            status(Some(&token), &[right, ("host", "fleet.example")]),
            200
        );
    }

    #[test]
    fn a_token_that_is_made_is_one() {
        let [one, other] = [(); 2].map(|()| AccessToken::new_random().unwrap());
        assert_ne!(one.as_str(), other.as_str());
        assert!(AccessToken::new(one.as_str()).is_ok());
    }

    #[test]
    fn tokens_cannot_be_guessed_or_invisible() {
        for wrong in [
            "",
            "short",
            "0123456789abcde f",
            "0123456789abcdé",
            &"x".repeat(5000),
        ] {
            assert!(AccessToken::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_a_token_this_machine_asks_by_its_own_name() {
        let status_of = |host: &str| status(None, &[("host", host)]);
        for own in ["127.0.0.1:1", "LocalHost:8080", "localhost", "[::1]:9"] {
            assert_eq!(status_of(own), 200, "{own}");
        }
        for foreign in [
            "evil.example:1",
            "127.0.0.1.evil.example",
            "localhost:1:2",
            "localhost:",
            "",
        ] {
            assert_eq!(status_of(foreign), 403, "{foreign}");
        }
        assert_eq!(status(None, &[]), 403);
        let own = ("host", "localhost:1");
        assert_eq!(status(None, &[own, ("host", "evil.example")]), 403);
        assert_eq!(status(None, &[own, ("origin", "http://127.0.0.1:1")]), 200);
        for origin in ["http://evil.example", "null", "https://localhost:1"] {
            assert_eq!(status(None, &[own, ("origin", origin)]), 403, "{origin}");
        }
    }
}
