//! Connections, and the end.

use std::convert::Infallible;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::access::{self, AccessToken};
use super::metrics::ServerMetrics;
use super::request::ServerRequest;
use super::response::ServerResponse;
use crate::error::FleetError;

/// What clients may take of the process.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Connections at a time; more wait until one ends.
    pub connections: usize,
    /// Requests that are answered at a time; more are refused with 503 and `Retry-After`.
    pub requests: usize,
    /// Bytes of a request's head, 8192 at least.
    pub head: usize,
    /// Until a head is there, and from one request on a connection to the next; also for each piece of a body.
    pub idle_timeout: Duration,
    /// For a request with its body, from the head to the last byte of it, and again for the answer to be taken by the client.
    pub request: Duration,
    /// After so long a connection ends with the request that is being answered.
    pub connection: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections: 256,
            requests: 8,
            head: 16 << 10,
            idle_timeout: Duration::from_secs(10),
            request: Duration::from_secs(60),
            connection: Duration::from_secs(300),
        }
    }
}

/// A head has not more of them.
const HEADERS: usize = 64;
/// What is answered although all threads are busy, and to everybody: it says nothing but that the server is there.
const HEALTH: &str = "/health";

/// A server that listens.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    token: Option<AccessToken>,
    limits: ServerLimits,
}

struct ServerState<H> {
    token: Option<AccessToken>,
    limits: ServerLimits,
    metrics: ServerMetrics,
    handler: H,
    permits: Arc<Semaphore>,
}

impl HttpServer {
    /// # Errors
    /// The address is not this machine's own (loopback) and there is no token, or it cannot be listened on.
    pub fn bind(
        address: SocketAddr,
        token: Option<AccessToken>,
        limits: ServerLimits,
    ) -> Result<HttpServer, FleetError> {
        if token.is_none() && !address.ip().is_loopback() {
            return Err(FleetError::Usage(format!(
                "{address}: other machines can ask there, so a token is needed: leave out --no-token, or give --token-file FILE"
            )));
        }
        let failed = |e| FleetError::Usage(format!("{address}: {e}"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(HttpServer {
            listener,
            address,
            token,
            limits,
        })
    }

    /// `http://127.0.0.1:4321`
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers until SIGTERM or SIGINT; what is being answered then is ended first. `GET /health` says `ok` to everybody.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn run_until_signal<H>(self, metrics: ServerMetrics, handler: H) -> Result<(), FleetError>
    where
        H: Fn(&mut ServerRequest) -> ServerResponse + Send + Sync + 'static,
    {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime
            .worker_threads(1)
            .max_blocking_threads(self.limits.requests + 1)
            .enable_all();
        let runtime = runtime.build().map_err(FleetError::Output)?;
        let last = self.limits.request;
        let ended = runtime.block_on(async {
            let mut signals = Vec::new();
            for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
                signals.push(signal(kind).map_err(FleetError::Output)?);
            }
            let ended = futures::future::select_all(
                signals.iter_mut().map(|signal| Box::pin(signal.recv())),
            );
            self.serve_until(ended, metrics, handler).await
        });
        runtime.shutdown_timeout(last);
        ended
    }

    async fn serve_until<H>(
        self,
        end: impl Future,
        metrics: ServerMetrics,
        handler: H,
    ) -> Result<(), FleetError>
    where
        H: Fn(&mut ServerRequest) -> ServerResponse + Send + Sync + 'static,
    {
        let listener =
            tokio::net::TcpListener::from_std(self.listener).map_err(FleetError::Output)?;
        let limits = self.limits;
        let shared = Arc::new(ServerState {
            permits: Arc::new(Semaphore::new(limits.requests)),
            token: self.token,
            limits: limits.clone(),
            metrics,
            handler,
        });
        let (stop, stopped) = watch::channel(false);
        let mut open = JoinSet::new();
        let mut end = pin!(end);
        loop {
            tokio::select! {
                _ = &mut end => break,
                Some(_) = open.join_next() => {}
                accepted = listener.accept(), if open.len() < limits.connections => {
                    match accepted {
                        Ok((stream, _)) => {
                            open.spawn(serve_connection(stream, shared.clone(), stopped.clone()));
                        }
                        // What one connection cannot have, as a file descriptor, the next may.
                        Err(_) => sleep(Duration::from_millis(100)).await,
                    }
                }
            }
        }
        drop(listener);
        // Fails if there is no connection.
        let _ = stop.send(true);
        let all = async { while open.join_next().await.is_some() {} };
        // Who is slower is cut off.
        let _ = timeout(limits.request, all).await;
        Ok(())
    }
}

async fn serve_connection<H>(
    stream: TcpStream,
    shared: Arc<ServerState<H>>,
    mut stop: watch::Receiver<bool>,
) where
    H: Fn(&mut ServerRequest) -> ServerResponse + Send + Sync + 'static,
{
    let limits = shared.limits.clone();
    // Only makes answers later.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer_request(shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_timeout)
        .max_buf_size(limits.head.max(8192))
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        // A client that has gone away has no use for an answer.
        _ = connection.as_mut() => return,
        _ = stop.changed() => {}
        () = sleep(limits.connection) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(limits.request * 2, connection).await;
}

async fn answer_request<H>(
    shared: Arc<ServerState<H>>,
    request: hyper::Request<Incoming>,
) -> hyper::Response<Full<Bytes>>
where
    H: Fn(&mut ServerRequest) -> ServerResponse + Send + Sync + 'static,
{
    let begun = Instant::now();
    let method = method_name(request.method());
    shared.metrics.begin_request();
    let answer = match request.uri().path() {
        HEALTH => health_response(request.method()),
        _ => dispatch_request(&shared, request, begun).await,
    };
    let (route, status) = (answer.route(), answer.status());
    shared
        .metrics
        .finish_request(method, route, status, begun.elapsed());
    answer.into_hyper()
}

async fn dispatch_request<H>(
    shared: &Arc<ServerState<H>>,
    request: hyper::Request<Incoming>,
    begun: Instant,
) -> ServerResponse
where
    H: Fn(&mut ServerRequest) -> ServerResponse + Send + Sync + 'static,
{
    if let Err(refused) = access::check_access(shared.token.as_ref(), request.headers()) {
        return refused.with_route("refused");
    }
    let Ok(permit) = shared.permits.clone().try_acquire_owned() else {
        return ServerResponse::from_message(503, "as many requests as may be are being answered")
            .with_header("Retry-After", "1")
            .with_route("refused");
    };
    let limits = &shared.limits;
    let until = begun + limits.request;
    let mut request =
        match ServerRequest::new(request, Handle::current(), limits.idle_timeout, until) {
            Ok(request) => request,
            Err(refused) => return refused.with_route("refused"),
        };
    let own = shared.clone();
    let answer = tokio::task::spawn_blocking(move || {
        let answer = (own.handler)(&mut request);
        drop(permit);
        answer
    });
    // A panic of a handler's ends with its thread: others are answered.
    answer.await.unwrap_or_else(|_| {
        ServerResponse::from_message(500, "this request has met an error of the server's")
    })
}

fn health_response(method: &hyper::Method) -> ServerResponse {
    match method.as_str() {
        "GET" | "HEAD" => ServerResponse::from_text(200, "ok\n").with_route("health"),
        _ => ServerResponse::from_message(405, "GET is what can be done here")
            .with_header("Allow", "GET, HEAD")
            .with_route("health"),
    }
}

/// One of few names, whatever a client sent.
fn method_name(method: &hyper::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        _ => "other",
    }
}
