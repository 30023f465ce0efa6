//! The samples of one scrape, grouped by metric, and their text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockgate_controller::Histogram;
use prometheus::TextEncoder;
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram as Spread, LabelPair, Metric as Sample, MetricFamily,
    MetricType,
};

use super::table::{Kind, Metric};

/// What a sample can be; the text format knows only one kind of number.
pub(super) trait Number {
    fn number(self) -> f64;
}

impl Number for f64 {
    fn number(self) -> f64 {
        self
    }
}

impl Number for u64 {
    /// Exact up to 2^53, as everything is in Prometheus.
    fn number(self) -> f64 {
        self as f64
    }
}

impl Number for usize {
    fn number(self) -> f64 {
        self as f64
    }
}

impl Number for bool {
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

impl Number for Duration {
    fn number(self) -> f64 {
        self.as_secs_f64()
    }
}

impl Number for SystemTime {
    fn number(self) -> f64 {
        self.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

/// The samples of one scrape, by the metric's place in the table.
pub(super) struct Families(Vec<Vec<Sample>>);

impl Families {
    pub(super) fn new() -> Self {
        Self(Metric::ALL.iter().map(|_| Vec::new()).collect())
    }

    /// One sample; the labels' values in the order of the table.
    pub(super) fn put(&mut self, metric: Metric, labels: &[&str], number: impl Number) {
        let number = number.number();
        let mut sample = labelled(metric, labels);
        match metric.description().kind {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(number);
                sample.set_counter(counter);
            }
            Kind::Gauge => {
                let mut gauge = Gauge::default();
                gauge.set_value(number);
                sample.set_gauge(gauge);
            }
            Kind::Histogram => debug_assert!(false, "{metric:?} is more than one number"),
        }
        self.0[metric as usize].push(sample);
    }

    /// One sample, if there is one.
    pub(super) fn put_known(
        &mut self,
        metric: Metric,
        labels: &[&str],
        number: Option<impl Number>,
    ) {
        if let Some(number) = number {
            self.put(metric, labels, number);
        }
    }

    /// A histogram; the labels' values in the order of the table.
    pub(super) fn spread(&mut self, metric: Metric, labels: &[&str], histogram: &Histogram) {
        debug_assert_eq!(metric.description().kind, Kind::Histogram, "{metric:?}");
        let bucket = |(end, below): (Duration, u64)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(end.as_secs_f64());
            bucket.set_cumulative_count(below);
            bucket
        };
        let mut spread = Spread::default();
        spread.set_bucket(histogram.buckets().map(bucket).collect());
        spread.set_sample_count(histogram.count());
        spread.set_sample_sum(histogram.sum().as_secs_f64());
        let mut sample = labelled(metric, labels);
        sample.set_histogram(spread);
        self.0[metric as usize].push(sample);
    }

    /// The text format, version 0.0.4. Metrics without a sample do not appear.
    pub(super) fn text(self) -> String {
        let families = Metric::ALL.iter().zip(self.0).filter(|(_, samples)| !samples.is_empty());
        let families: Vec<_> = families.map(|(metric, samples)| family(*metric, samples)).collect();
        TextEncoder::new().encode_to_string(&families).unwrap_or_else(|error| {
            // Cannot be: a string takes everything, and no family is empty.
            tracing::error!("metrics cannot be rendered: {error}");
            String::new()
        })
    }
}

fn family(metric: Metric, samples: Vec<Sample>) -> MetricFamily {
    let description = metric.description();
    let mut family = MetricFamily::default();
    family.set_name(description.name.into());
    family.set_help(description.help.into());
    family.set_field_type(match description.kind {
        Kind::Counter => MetricType::COUNTER,
        Kind::Gauge => MetricType::GAUGE,
        Kind::Histogram => MetricType::HISTOGRAM,
    });
    family.set_metric(samples);
    family
}

fn labelled(metric: Metric, values: &[&str]) -> Sample {
    let names = metric.description().labels;
    debug_assert_eq!(names.len(), values.len(), "{metric:?} has the labels {names:?}");
    let pair = |(name, value): (&&str, &&str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).into());
        pair.set_value((*value).into());
        pair
    };
    Sample::from_label(names.iter().zip(values).map(pair).collect())
}
