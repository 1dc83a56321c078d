//! What a server tells of itself: the text format of Prometheus.

use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

/// Requests by route, method and status, and how long answers took; more by [`ServerMetrics::register_metric`].
#[derive(Clone)]
pub struct ServerMetrics {
    registry: Registry,
    requests: Option<Arc<RequestMetrics>>,
}

struct RequestMetrics {
    counted: IntCounterVec,
    seconds: HistogramVec,
    answering: IntGauge,
}

/// Seconds.
const STEPS: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0];

impl ServerMetrics {
    /// `prefix`: what the names of all metrics begin with, as `lucce_fleet`.
    #[must_use]
    pub fn new(prefix: &str) -> ServerMetrics {
        let registry = Registry::new();
        // Names that Prometheus would refuse are an error of the caller's, and then nothing is counted.
        let requests = RequestMetrics::new(prefix, &registry).ok().map(Arc::new);
        ServerMetrics { registry, requests }
    }

    /// One more metric; one of a name that is there already is left out.
    pub fn register_metric(&self, metric: impl Collector + 'static) {
        let _ = self.registry.register(Box::new(metric));
    }

    /// All of them, as Prometheus reads them (`text/plain; version=0.0.4`).
    #[must_use]
    pub fn encode_text(&self) -> String {
        let families = self.registry.gather();
        TextEncoder::new()
            .encode_to_string(&families)
            .unwrap_or_default()
    }

    pub(super) fn begin_request(&self) {
        if let Some(requests) = &self.requests {
            requests.answering.inc();
        }
    }

    pub(super) fn finish_request(
        &self,
        method: &'static str,
        route: &str,
        status: u16,
        took: Duration,
    ) {
        if let Some(requests) = &self.requests {
            requests.answering.dec();
            let status = status.to_string();
            let counted = &requests.counted;
            counted.with_label_values(&[route, method, &status]).inc();
            let seconds = requests.seconds.with_label_values(&[route]);
            seconds.observe(took.as_secs_f64());
        }
    }
}

impl RequestMetrics {
    fn new(prefix: &str, registry: &Registry) -> prometheus::Result<RequestMetrics> {
        let counted = IntCounterVec::new(
            Opts::new(
                format!("{prefix}_requests_total"),
                "Requests that were answered.",
            ),
            &["route", "method", "status"],
        )?;
        let seconds = HistogramVec::new(
            HistogramOpts::new(
                format!("{prefix}_request_seconds"),
                "From a request's head to its answer.",
            )
            .buckets(STEPS.to_vec()),
            &["route"],
        )?;
        let answering = IntGauge::new(
            format!("{prefix}_requests_answering"),
            "Requests that are being answered.",
        )?;
        registry.register(Box::new(counted.clone()))?;
        registry.register(Box::new(seconds.clone()))?;
        registry.register(Box::new(answering.clone()))?;
        Ok(RequestMetrics {
            counted,
            seconds,
            answering,
        })
    }
}
