//! Access control: a client must know the secret in the address, and its request must come from a page of this address.
//!
//! Other users of the machine can connect, and pages of other sites can make a browser send requests. Neither knows the
//! secret. In addition, the browser's `Host` reveals a site whose name was made to resolve to 127.0.0.1 (DNS rebinding),
//! and `Origin` reveals a script of another site.

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;

use super::http::PageRequest;

pub struct PageAccess {
    port: u16,
    secret: String,
    /// The token of clients that read `/metrics`; `None`: this path needs the secret, as the others do.
    metrics_token: Option<String>,
}

/// The path of the figures for Prometheus.
const METRICS: &str = "metrics";

/// The decision on a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessDecision {
    Page,
    /// The newest data, if newer than this reading.
    Data {
        after: u64,
    },
    /// The figures for Prometheus.
    Metrics,
    /// Redirects to the page's address.
    Redirect(String),
    Refused(&'static str),
    NotFound,
    /// The request's method would change something.
    MethodNotAllowed,
}

impl PageAccess {
    /// Creates a new secret for the server at this address. `metrics_token`: what clients of `/metrics` send in place of it.
    pub fn new(address: SocketAddr, metrics_token: Option<String>) -> io::Result<PageAccess> {
        let mut bits = [0_u8; 16];
        File::open("/dev/urandom")?.read_exact(&mut bits)?;
        let secret = format!("{:032x}", u128::from_ne_bytes(bits));
        let port = address.port();
        Ok(PageAccess {
            port,
            secret,
            metrics_token,
        })
    }

    /// The address that the user opens.
    pub fn page_address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.secret)
    }

    pub fn check_request(&self, request: &PageRequest) -> AccessDecision {
        if !matches!(request.hosts.as_slice(), [host] if self.is_own_host(host)) {
            return AccessDecision::Refused("this is no name of this server");
        }
        if request
            .origins
            .iter()
            .any(|origin| !self.is_own_origin(origin))
        {
            return AccessDecision::Refused("pages of other sites may not ask");
        }
        let target = request.target.strip_prefix('/').unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path == METRICS
            && let Some(token) = &self.metrics_token
        {
            return match (has_token(request, token), request.method.as_str()) {
                (false, _) => AccessDecision::Refused("the token of --token-file is missing"),
                (true, "GET" | "HEAD") => AccessDecision::Metrics,
                (true, _) => AccessDecision::MethodNotAllowed,
            };
        }
        let (secret, rest) = match path.split_once('/') {
            Some((secret, rest)) => (secret, Some(rest)),
            None => (path, None),
        };
        if !is_equal_secret(secret, &self.secret) {
            return AccessDecision::Refused(
                "the address lacks the secret that lucce serve has printed",
            );
        }
        match (request.method.as_str(), rest) {
            ("GET" | "HEAD", None) => AccessDecision::Redirect(format!("/{}/", self.secret)),
            ("GET" | "HEAD", Some("")) => AccessDecision::Page,
            ("GET" | "HEAD", Some("data")) => AccessDecision::Data {
                after: parse_after(query),
            },
            ("GET" | "HEAD", Some(METRICS)) => AccessDecision::Metrics,
            ("GET" | "HEAD", Some(_)) => AccessDecision::NotFound,
            _ => AccessDecision::MethodNotAllowed,
        }
    }

    fn is_own_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let names = ["127.0.0.1", "localhost"];
        names.iter().any(|name| {
            // A browser omits the default port of http.
            host == format!("{name}:{}", self.port) || self.port == 80 && host == *name
        })
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("http://");
        host.is_some_and(|host| self.is_own_host(host))
    }
}

/// Whether the request has one header `Authorization: Bearer TOKEN`.
fn has_token(request: &PageRequest, token: &str) -> bool {
    match request.authorizations.as_slice() {
        [header] => header
            .strip_prefix("Bearer ")
            .is_some_and(|sent| is_equal_secret(sent.trim(), token)),
        _ => false,
    }
}

/// Compares secrets in constant time.
fn is_equal_secret(candidate: &str, secret: &str) -> bool {
    let different = candidate.bytes().zip(secret.bytes());
    let different = different.fold(0, |sum, (a, b)| sum | (a ^ b));
    candidate.len() == secret.len() && different == 0
}

/// Parses `after=7`.
fn parse_after(query: &str) -> u64 {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let after = pairs.find(|(key, _)| *key == "after");
    after
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod access_tests {
    use super::*;

    fn access() -> PageAccess {
        PageAccess {
            port: 4321,
            secret: "00ff".into(),
            metrics_token: None,
        }
    }

    fn check(method: &str, target: &str, hosts: &[&str], origins: &[&str]) -> AccessDecision {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        access().check_request(&PageRequest {
            method: method.into(),
            target: target.into(),
            hosts: texts(hosts),
            origins: texts(origins),
            authorizations: Vec::new(),
        })
    }

    const OWN: &[&str] = &["127.0.0.1:4321"];

    fn is_refused(decision: &AccessDecision) -> bool {
        matches!(decision, AccessDecision::Refused(_))
    }

    #[test]
    fn who_knows_the_secret_gets_the_page_and_its_data() {
        assert_eq!(check("GET", "/00ff/", OWN, &[]), AccessDecision::Page);
        assert_eq!(
            check("HEAD", "/00ff/", &["LocalHost:4321"], &[]),
            AccessDecision::Page
        );
        let data = |after| AccessDecision::Data { after };
        assert_eq!(check("GET", "/00ff/data?after=7", OWN, &[]), data(7));
        assert_eq!(check("GET", "/00ff/data?after=x", OWN, &[]), data(0));
        assert_eq!(
            check("GET", "/00ff/metrics", OWN, &[]),
            AccessDecision::Metrics
        );
        let own = &["http://127.0.0.1:4321"];
        assert_eq!(check("GET", "/00ff/data", OWN, own), data(0));
        let place = AccessDecision::Redirect("/00ff/".into());
        assert_eq!(check("GET", "/00ff", OWN, &[]), place);
        assert_eq!(
            check("GET", "/00ff/etc/passwd", OWN, &[]),
            AccessDecision::NotFound
        );
        assert_eq!(
            check("POST", "/00ff/", OWN, &[]),
            AccessDecision::MethodNotAllowed
        );
    }

    #[test]
    fn requests_without_the_secret_are_refused() {
        for target in [
            "/",
            "",
            "/00fe/",
            "/00f/",
            "/00ff0/",
            "/data",
            "/metrics",
            "/favicon.ico",
            "00ff/",
        ] {
            for method in ["GET", "POST"] {
                let decision = check(method, target, OWN, &[]);
                assert!(is_refused(&decision), "{method} {target}: {decision:?}");
            }
        }
    }

    #[test]
    fn the_token_opens_the_figures_alone() {
        let access = PageAccess {
            metrics_token: Some("t0ken".into()),
            ..access()
        };
        let check = |target: &str, headers: &[&str]| {
            access.check_request(&PageRequest {
                method: "GET".into(),
                target: target.into(),
                hosts: vec!["localhost:4321".into()],
                origins: Vec::new(),
                authorizations: headers.iter().map(|text| (*text).to_owned()).collect(),
            })
        };
        let own = &["Bearer t0ken"];
        assert_eq!(check("/metrics", own), AccessDecision::Metrics);
        assert!(is_refused(&check("/", own)));
        assert!(is_refused(&check("/data", own)));
        let wrong: [&[&str]; 4] = [
            &[],
            &["Bearer t0ke"],
            &["t0ken"],
            &["Bearer t0ken", "Bearer t0ken"],
        ];
        for headers in wrong {
            assert!(is_refused(&check("/metrics", headers)), "{headers:?}");
        }
    }

    #[test]
    fn names_that_were_bent_to_this_machine_are_refused() {
        let foreign: [&[&str]; 7] = [
            &[],
            &["evil.example:4321"],
            &["127.0.0.1"],
            &["127.0.0.1:4322"],
            &["127.0.0.1.evil.example:4321"],
            &["127.0.0.1:4321", "evil.example:4321"],
            &["localhost:4321:80"],
        ];
        for hosts in foreign {
            assert!(is_refused(&check("GET", "/00ff/", hosts, &[])), "{hosts:?}");
        }
        for origin in ["http://evil.example", "null", "https://127.0.0.1:4321"] {
            let decision = check("GET", "/00ff/data", OWN, &[origin]);
            assert!(is_refused(&decision), "{origin}");
        }
    }

    #[test]
    fn each_server_has_a_secret_of_its_own() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let [a, b] = [(); 2].map(|()| PageAccess::new(address, None).unwrap());
        assert!(a.secret.len() == 32 && a.secret != b.secret);
        assert!(a.is_own_host("localhost") && a.is_own_host("127.0.0.1:80"));
    }
}
