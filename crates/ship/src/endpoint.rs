//! The address of a server.

use std::fmt;

/// `http://HOST[:PORT][/PATH]`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HttpEndpoint {
    /// A name or an address, without the brackets of IPv6.
    pub host: String,
    pub port: u16,
    /// Host and port as written in the URL.
    pub authority: String,
    pub path: String,
}

impl HttpEndpoint {
    /// Parses a URL. `path` is the default if the URL has no path.
    ///
    /// # Errors
    /// What is wrong with the URL; the caller prints the URL in front of it.
    pub fn parse(url: &str, path: &str) -> Result<Self, String> {
        let otherwise = path;
        if url.starts_with("https:") {
            let text =
                "there is no TLS: name a server on this machine, which hands on what it gets";
            return Err(text.to_owned());
        }
        let rest = url.strip_prefix("http://");
        let rest = rest.ok_or("must begin with http://, as http://localhost:4318")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if url.contains(|c: char| c.is_ascii_whitespace() || c.is_control()) || path.contains('#') {
            return Err("is no URL of a server".to_owned());
        }
        if authority.contains('@') {
            return Err("must have no user and no password".to_owned());
        }
        let (host, port) = split_authority(authority)?;
        if host.is_empty() {
            return Err("must name a host".to_owned());
        }
        let path = match path {
            "" | "/" => otherwise.to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        Ok(HttpEndpoint {
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            path,
        })
    }
}

/// IPv6 addresses contain colons, so they stand in brackets.
fn split_authority(authority: &str) -> Result<(&str, u16), String> {
    let bracketed = authority.strip_prefix('[').map(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some(None) => return Err("has a [ without its ]".to_owned()),
        Some(Some((host, ""))) => (host, None),
        Some(Some((host, rest))) => (host, Some(rest.strip_prefix(':').unwrap_or("?"))),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        None => 80,
        Some(port) => {
            let port = port.parse().ok().filter(|port| *port != 0);
            port.ok_or("has a port that is no number from 1 to 65535")?
        }
    };
    Ok((host, port))
}

impl fmt::Display for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod endpoint_tests {
    use super::*;

    const PATH: &str = "/otherwise";

    #[test]
    fn urls_are_taken_apart() {
        let parts = |url: &str| {
            let endpoint = HttpEndpoint::parse(url, PATH).unwrap();
            let HttpEndpoint {
                host, port, path, ..
            } = endpoint;
            (host, port, path)
        };
        let of = |host: &str, port, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(parts("http://localhost:4318"), of("localhost", 4318, PATH));
        assert_eq!(parts("http://a.example/"), of("a.example", 80, PATH));
        assert_eq!(parts("http://[::1]:9/in/p"), of("::1", 9, "/in/p"));
        assert_eq!(parts("http://[::1]"), of("::1", 80, PATH));
        assert_eq!(parts("http://h?tenant=1"), of("h", 80, "/?tenant=1"));
        let shown = HttpEndpoint::parse("http://[::1]:9", PATH)
            .unwrap()
            .to_string();
        assert_eq!(shown, format!("http://[::1]:9{PATH}"));
    }

    #[test]
    fn what_is_no_url_of_a_server_is_refused() {
        for (url, why) in [
            ("https://h:4318", "no TLS"),
            ("localhost:4318", "must begin with http://"),
            ("http://", "a host"),
            ("http://:4318", "a host"),
            ("http://h:0", "a port"),
            ("http://h:70000", "a port"),
            ("http://h:", "a port"),
            ("http://::1", "a port"),
            ("http://[::1", "["),
            ("http://[::1]9", "a port"),
            ("http://u:p@h", "no user"),
            ("http://h/a b", "no URL"),
            ("http://h/a\r\nX: y", "no URL"),
        ] {
            let message = HttpEndpoint::parse(url, PATH).unwrap_err();
            assert!(message.contains(why), "{url}: {message}");
        }
    }
}
