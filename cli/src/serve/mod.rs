//! `lucce serve`: serves the page of a running JVM to a browser.
//!
//! ```text
//! log     ─► PageReader: reads the log when a browser asks, at most once per interval
//! browser ─► http (request, answer) ─► access (checks the client) ─► the page, or its newest data
//! Prometheus ─► the same ─► metrics
//! ```

mod access;
mod http;
mod metrics;
mod opener;
mod page_reader;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lucce_control::stop_signal;
use lucce_options::units::parse_interval;
use lucce_page::HtmlPage;

use super::output::{lock_stdout, warn_if_readable};
use super::selection::CountSelection;
use super::target::{RunTarget, TargetArgs};
use super::{CommandError, CommandStatus, prefix_path, print_diagnostic, view};
use access::{AccessDecision, PageAccess};
use http::{PageRequest, PageResponse};
use opener::{OpenerFile, OpenerHolder};
use page_reader::PageReader;

/// Serve the page of a running JVM to the browser, and renew it while the JVM counts.
///
/// The page is that of `lucce view`, with the counts since the start and of the last seconds. Only this machine can read
/// it, at the printed address, which holds a secret. The path `metrics` below it has figures for Prometheus. Ctrl-C ends the
/// server; the JVM is not disturbed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce serve 1234 --open
  lucce serve com.acme.Server --interval 5s --include 'com.acme.*'
  lucce serve run-1234.lucce --port 8080")]
pub struct ServeArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Time between readings; longer if reading takes over a quarter of it
    #[arg(short, long, value_name = "TIME", default_value = "2s", value_parser = parse_interval)]
    interval: Duration,
    /// Port on the loopback device; 0: a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Serve /metrics to clients that send the token in this file (Authorization: Bearer)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    selection: CountSelection,
}

/// Maximum number of open connections, more than a few browsers need; further ones are closed.
const CONNECTIONS: usize = 32;

pub fn run(args: &ServeArgs) -> Result<CommandStatus, CommandError> {
    let target = RunTarget::from_name(&args.target.jvm)?;
    let token = args.token_file.as_deref().map(read_token).transpose()?;
    let readings = PageReader::new(target.log, &args.selection, args.interval)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .map_err(|e| CommandError::Usage(format!("port {}: {e}", args.port)))?;
    let access = PageAccess::new(listener.local_addr()?, token)?;
    let address = access.page_address();
    let mut out = lock_stdout();
    writeln!(out, "{address}")?;
    out.flush()?;
    // Otherwise the lock of standard output would be held while the page is served.
    drop(out);
    print_diagnostic("serves this page to browsers of this machine until Ctrl-C");
    let opener = OpenerHolder::default();
    if args.open {
        let file = OpenerFile::new(&address).map_err(|e| {
            CommandError::Usage(format!("the file that leads a browser to the page: {e}"))
        })?;
        let path = file.path();
        stop_signal::handle_stop_signals()?;
        opener.set_file(file);
        view::open_in_browser(path.as_os_str())?;
    }
    let server = PageServer {
        access,
        page_reader: Mutex::new(readings),
        open: AtomicUsize::new(0),
        opener,
        is_opened: args.open,
    };
    server.accept_connections(&listener)
}

/// The token in a file.
fn read_token(file: &Path) -> Result<String, CommandError> {
    warn_if_readable(Some(file));
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let token = text.and_then(|text| lucce_ship::parse_token(&text).map(str::to_owned));
    token.map_err(|why| CommandError::Usage(prefix_path(file, why)))
}

struct PageServer<'a> {
    access: PageAccess,
    /// One lock: browsers wait while the log is read once for all of them.
    page_reader: Mutex<PageReader<'a>>,
    /// Number of open connections.
    open: AtomicUsize,
    opener: OpenerHolder,
    /// Whether a browser was started for the page.
    is_opened: bool,
}

impl PageServer<'_> {
    /// Serves connections until the process ends.
    fn accept_connections(&self, listener: &TcpListener) -> Result<CommandStatus, CommandError> {
        thread::scope(|scope| {
            if self.is_opened {
                scope.spawn(|| self.opener.end_on_request());
            }
            for connection in listener.incoming() {
                // A resource that this connection lacks, such as a file descriptor, may be free for the next one.
                let Ok(connection) = connection else {
                    thread::sleep(Duration::from_millis(100));
                    continue;
                };
                // Relaxed: only the number counts.
                let open = self.open.fetch_add(1, Ordering::Relaxed);
                if open >= CONNECTIONS {
                    self.open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                scope.spawn(move || {
                    // A closed browser needs no answer.
                    let _ = self.serve_connection(connection);
                    self.open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(CommandStatus::Fine)
    }

    fn serve_connection(&self, mut connection: TcpStream) -> io::Result<()> {
        let from: SocketAddr = connection.peer_addr()?;
        if !from.ip().is_loopback() {
            return Ok(());
        }
        let Some(request) = http::read_request(&mut connection)? else {
            return http::write_response(
                &mut connection,
                true,
                &PageResponse::from_error(400, "no request"),
            );
        };
        let answer = self.answer_request(&request);
        http::write_response(&mut connection, request.wants_body(), &answer)
    }

    fn answer_request(&self, request: &PageRequest) -> PageResponse {
        match self.access.check_request(request) {
            AccessDecision::Refused(why) => PageResponse::from_error(403, why),
            AccessDecision::NotFound => PageResponse::from_error(404, "there is nothing else here"),
            AccessDecision::MethodNotAllowed => {
                PageResponse::from_error(405, "this page can be read only")
            }
            AccessDecision::Redirect(place) => PageResponse::redirect_to(&place),
            AccessDecision::Page => self.with_page_reader(|readings| {
                self.opener.remove_file();
                let page = readings.page_html()?;
                let policy = HtmlPage::content_policy(true);
                Ok(PageResponse::from_page(page, &policy))
            }),
            AccessDecision::Metrics => self.with_page_reader(|readings| {
                Ok(PageResponse::from_metrics(readings.metrics_text()?))
            }),
            AccessDecision::Data { after } => self.with_page_reader(|readings| {
                Ok(match readings.newer_data(after)? {
                    Some(data) => PageResponse::from_data(data),
                    None => PageResponse::no_content(),
                })
            }),
        }
    }

    fn with_page_reader(
        &self,
        what: impl FnOnce(&mut PageReader<'_>) -> Result<PageResponse, String>,
    ) -> PageResponse {
        // A reading that panicked is not kept; the previous one stays valid.
        let readings = self.page_reader.lock();
        let mut readings = readings.unwrap_or_else(PoisonError::into_inner);
        what(&mut readings).unwrap_or_else(|why| PageResponse::from_error(500, &why))
    }
}
