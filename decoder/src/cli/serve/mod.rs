//! `lucce serve`: the page of a JVM that runs, in a browser.
//!
//! ```text
//! log ─► readings: reads it anew when a browser asks, and not more often than said
//! browser ─► http (a request, an answer) ─► access (who may ask) ─► the page, or the newest data for it
//! ```

mod access;
mod http;
mod opener;
mod readings;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lucce_control::stop;
use lucce_decoder::Page;

use super::classes::Classes;
use super::output::stdout;
use super::target::Target;
use super::{End, Failure, complain, view};
use access::{Access, Asked};
use http::{Answer, Request};
use opener::{Opener, OpenerFile};
use readings::Readings;

/// Shows the page of a JVM that runs in the browser, and renews it while the JVM counts.
///
/// The page is that of `lucce view`, with what was counted since the start and in the last seconds. Only this machine can ask
/// for it, by the address that is printed, which holds a secret. It ends with Ctrl-C; the JVM does not notice.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce serve 1234 --open
  lucce serve com.acme.Server --interval 5s
  lucce serve run-1234.lucce --port 8080")]
pub struct Args {
    /// The JVM: its process id, its main class or jar, or the end of one of these; or the log of a run
    #[arg(value_name = "PID|NAME|RUN")]
    jvm: String,
    /// From one look at the log to the next: 2s, 500ms; longer if that takes more than a quarter of the time
    #[arg(short, long, default_value = "2s", value_parser = super::window::time)]
    interval: u64,
    /// The port on the loopback device; 0: one that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Show the page in the browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    classes: Classes,
}

/// More connections at a time than a few browsers have are closed unanswered.
const CONNECTIONS: usize = 32;

pub fn run(args: &Args) -> Result<End, Failure> {
    let target = Target::of(&args.jvm)?;
    let readings = Readings::new(
        target.log,
        &args.classes,
        Duration::from_nanos(args.interval),
    )?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .map_err(|e| Failure::Usage(format!("port {}: {e}", args.port)))?;
    let access = Access::new(listener.local_addr()?)?;
    let address = access.address();
    let mut out = stdout();
    writeln!(out, "{address}")?;
    out.flush()?;
    // Else the lock of standard output would be held for as long as the page is served.
    drop(out);
    complain("serves this page to browsers of this machine until Ctrl-C");
    let opener = Opener::default();
    if args.open {
        let file = OpenerFile::new(&address).map_err(|e| {
            Failure::Usage(format!("the file that leads a browser to the page: {e}"))
        })?;
        let path = file.path();
        stop::listen()?;
        opener.hold(file);
        view::show(path.as_os_str())?;
    }
    let server = Server {
        access,
        readings: Mutex::new(readings),
        open: AtomicUsize::new(0),
        opener,
        is_opened: args.open,
    };
    server.run(&listener)
}

struct Server<'a> {
    access: Access,
    /// Browsers wait for each other while the log is read: it is read once for all of them.
    readings: Mutex<Readings<'a>>,
    /// Connections that are being answered.
    open: AtomicUsize,
    opener: Opener,
    /// A browser was asked to show the page.
    is_opened: bool,
}

impl Server<'_> {
    /// Ends only with the process.
    fn run(&self, listener: &TcpListener) -> Result<End, Failure> {
        thread::scope(|scope| {
            if self.is_opened {
                scope.spawn(|| self.opener.end_when_asked());
            }
            for connection in listener.incoming() {
                // What one connection cannot have, as a file descriptor, the next may.
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
                    // A browser that has gone away has no use for an answer.
                    let _ = self.serve(connection);
                    self.open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(End::Fine)
    }

    fn serve(&self, mut connection: TcpStream) -> io::Result<()> {
        let from: SocketAddr = connection.peer_addr()?;
        if !from.ip().is_loopback() {
            return Ok(());
        }
        let Some(request) = http::request(&mut connection)? else {
            return http::answer(&mut connection, true, &Answer::refused(400, "no request"));
        };
        let answer = self.answered(&request);
        http::answer(&mut connection, request.wants_body(), &answer)
    }

    fn answered(&self, request: &Request) -> Answer {
        match self.access.asked(request) {
            Asked::Refused(why) => Answer::refused(403, why),
            Asked::Unknown => Answer::refused(404, "there is nothing else here"),
            Asked::Method => Answer::refused(405, "this page can be read only"),
            Asked::Elsewhere(place) => Answer::moved(&place),
            Asked::Page => self.read(|readings| {
                self.opener.remove();
                let page = readings.page()?;
                let policy = Page::policy(true);
                Ok(Answer::page(page, &policy))
            }),
            Asked::Data { after } => self.read(|readings| {
                Ok(match readings.data(after)? {
                    Some(data) => Answer::data(data),
                    None => Answer::nothing_new(),
                })
            }),
        }
    }

    fn read(&self, what: impl FnOnce(&mut Readings<'_>) -> Result<Answer, String>) -> Answer {
        // A reading that has panicked is not kept: the one before it still holds.
        let readings = self.readings.lock();
        let mut readings = readings.unwrap_or_else(PoisonError::into_inner);
        what(&mut readings).unwrap_or_else(|why| Answer::refused(500, &why))
    }
}
