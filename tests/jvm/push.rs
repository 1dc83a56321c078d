//! `push=URL` with a collector that is away, says nothing or refuses: the program runs as ever, the log has all, and says
//! where it is. Collectors that take what they get are tested with `lucce fleet collect`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use lucce_tests::{Checked, Java, Setup, ensure};

use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Counts";

/// What listens there.
#[derive(Clone, Copy)]
enum Collector {
    /// Nothing.
    Away,
    /// It takes connections, reads, and never answers.
    Silent,
    /// It is busy.
    Busy,
    /// It claims to have all of every run, to its end.
    Ended,
}

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    [
        ("away", Collector::Away),
        ("silent", Collector::Silent),
        ("busy", Collector::Busy),
        ("ended", Collector::Ended),
    ]
    .into_iter()
    .map(|(name, collector)| {
        test(format!("push::{name}"), false, move || {
            keeps(setup, name, collector)
        })
    })
    .collect()
}

impl Collector {
    /// Where it is. Its thread ends with this process.
    fn starts(self) -> Result<String, String> {
        if matches!(self, Collector::Away) {
            // No port that was free a moment ago: another test might have it by now.
            return Ok("http://127.0.0.1:1".into());
        }
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || self.serves(stream));
            }
        });
        Ok(format!("http://{address}"))
    }

    fn serves(self, mut stream: TcpStream) {
        let mut block = [0; 4096];
        // A request's head is in one piece, for it is small.
        while stream.read(&mut block).is_ok_and(|read| read > 0) {
            let answer: &[u8] = match self {
                Collector::Away | Collector::Silent => continue,
                Collector::Busy => {
                    b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
                }
                Collector::Ended => {
                    b"HTTP/1.1 200 OK\r\nContent-Length: 59\r\n\r\nlucce-collect 1\nnumber 7\ntoken ffffffffffffffff\nended true\n"
                }
            };
            let _ = stream.write_all(answer);
            return;
        }
    }
}

fn keeps(setup: &Setup, name: &str, collector: Collector) -> Checked {
    let url = collector.starts()?;
    let options = format!("push={url},push-every=100ms,push-service=shop,verify=5");
    let java = Java::new(setup, setup.jdk(), &format!("push-{name}"));
    let java = java.agent(&options).main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let log = java.log();
    let log = log.to_string_lossy();
    let said = ended.agent_lines().join("\n");
    let left = format!("not all is pushed, but it is in {log}");
    ensure(said.contains(&left) && said.contains("recorded in"), || {
        said.clone()
    })?;
    // Each cause once, however often it was tried.
    let causes = said.matches("the log keeps what is to be pushed").count();
    ensure(causes <= 1, || said.clone())?;
    if matches!(collector, Collector::Ended) {
        let told = "it says that it has this run to its end, which was not sent";
        ensure(said.contains(told), || said.clone())?;
    }
    let expected: u64 = ended
        .stdout
        .lines()
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    let report = java
        .lucce()
        .json(&["report", "--json", "--top", "0", &*log])?;
    let counted = crate::bursts::own(&report)?;
    ensure(counted == expected && expected > 10_000, || {
        format!("{counted} of {expected} allocations are counted")
    })?;
    java.lucce().check(&java.log())?;
    // By its mark the next JVM or `lucce push` finds the log.
    let mark = format!("{log}.push");
    ensure(std::path::Path::new(&mark).exists(), || {
        format!("{mark} is missing")
    })?;
    java.clean();
    Ok(())
}
