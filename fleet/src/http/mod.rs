//! HTTP/1.1 servers of the dataset (hyper). Every length, every wait and the number of clients have limits.
//!
//! ```text
//! client ─► server (connections, requests at a time, SIGTERM) ─► access (token, or this machine only) ─► handler ─► ServerResponse
//! ```
//! A handler is a function of a [`ServerRequest`] that may block: it has a thread of its own while it answers. It routes by
//! [`ServerRequest::path_parts`]. It reads a body into memory ([`ServerRequest::read_body`]) or into a file
//! ([`ServerRequest::read_body_to_file`]). It names the route in its [`ServerResponse`], and [`ServerMetrics`] count by route.
//!
//! ```no_run
//! use lucce_fleet::http::{HttpServer, ServerLimits, ServerMetrics, ServerResponse};
//! let metrics = ServerMetrics::new("lucce_example");
//! let server = HttpServer::bind(([127, 0, 0, 1], 0).into(), None, ServerLimits::default())?;
//! println!("{}", server.base_url());
//! server.run_until_signal(metrics.clone(), move |request| match (request.method(), &request.path_parts()[..]) {
//!     ("GET", ["metrics"]) => ServerResponse::from_text(200, metrics.encode_text()).with_route("metrics"),
//!     ("POST", ["logs", run]) if run.bytes().all(|c| c.is_ascii_hexdigit()) => {
//!         let path = std::env::temp_dir().join(run);
//!         match request.read_body_to_file(&path, 64 << 20) {
//!             Ok(bytes) => ServerResponse::from_text(200, format!("{bytes}\n")).with_route("logs"),
//!             Err(refused) => refused.with_route("logs"),
//!         }
//!     }
//!     _ => ServerResponse::from_message(404, "there is nothing here"),
//! })?;
//! # Ok::<(), lucce_fleet::error::FleetError>(())
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
