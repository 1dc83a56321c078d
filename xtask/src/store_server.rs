//! A server of an object store on this machine.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::cpu;
use crate::formats::consumers;

/// The only bucket.
const BUCKET: &str = "runs";

/// gofakes3: S3 in memory, with an empty bucket. It ends with its owner.
pub struct StoreServer {
    process: Child,
    port: u16,
}

impl StoreServer {
    /// # Errors
    /// The server does not build or start.
    pub fn start() -> Result<StoreServer, String> {
        let mut server = Command::new(consumers::go("gofakes3")?);
        server.arg(BUCKET).stdin(Stdio::piped());
        server.stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = |e: std::io::Error| format!("gofakes3: {e}");
        let mut process = server.spawn().map_err(failed)?;
        let mut port = String::new();
        if let Some(said) = process.stdout.take() {
            BufReader::new(said).read_line(&mut port).map_err(failed)?;
        }
        let port = port.trim().parse();
        let port = port.map_err(|e| format!("gofakes3 told no port: {e}"))?;
        Ok(StoreServer { process, port })
    }

    /// A place in the bucket.
    pub fn url(&self) -> String {
        format!("s3://{BUCKET}/some/fleet")
    }

    /// The access, as `lucce-fleet` reads it; and the place, for tests of `fleet/`.
    pub fn environment(&self) -> [(&'static str, String); 6] {
        [
            ("LUCCE_TEST_STORE", self.url()),
            (
                "AWS_ENDPOINT_URL",
                format!("http://127.0.0.1:{}", self.port),
            ),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_ACCESS_KEY_ID", "test".into()),
            ("AWS_SECRET_ACCESS_KEY", "test".into()),
            ("AWS_REGION", "us-east-1".into()),
        ]
    }

    /// What the server has taken so far.
    pub fn cpu_time(&self) -> Duration {
        cpu::of_process(self.process.id())
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
