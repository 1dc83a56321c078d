//! What servers of the dataset stand on: HTTP/1.1 (hyper) with an end to every length, every wait and every number of clients.
//!
//! ```text
//! client ─► server (connections, requests at a time, SIGTERM) ─► access (token, or this machine only) ─► handler ─► Response
//! ```
//! A handler is a function of a [`ServerRequest`] that may block: it has a thread of its own while it answers. It routes by
//! [`ServerRequest::path_parts`], takes a body into memory ([`ServerRequest::read_body`]) or into a file ([`ServerRequest::read_body_to_file`]), and names the route in
//! its [`ServerResponse`], by which [`ServerMetrics`] count. Whatever a request says, a handler that has not looked at it is not in danger.
//!
//! ```no_run
//! use lucce_fleet::http::{Limits, Metrics, Response, Server};
//! let metrics = Metrics::new("lucce_example");
//! let server = Server::bind(([127, 0, 0, 1], 0).into(), None, Limits::default())?;
//! println!("{}", server.address());
//! server.run(metrics.clone(), move |request| match (request.method(), &request.parts()[..]) {
//!     ("GET", ["metrics"]) => Response::text(200, metrics.text()).of("metrics"),
//!     ("POST", ["logs", run]) if run.bytes().all(|c| c.is_ascii_hexdigit()) => {
//!         let path = std::env::temp_dir().join(run);
//!         match request.body_to_file(&path, 64 << 20) {
//!             Ok(bytes) => Response::text(200, format!("{bytes}\n")).of("logs"),
//!             Err(refused) => refused.of("logs"),
//!         }
//!     }
//!     _ => Response::words(404, "there is nothing here"),
//! })?;
//! # Ok::<(), lucce_fleet::error::Error>(())
//! ```

mod access;
mod metrics;
mod request;
mod response;
mod server;

pub use access::AccessToken;
pub use metrics::ServerMetrics;
pub use request::ServerRequest;
pub use response::ServerResponse;
pub use server::{HttpServer, ServerLimits};
