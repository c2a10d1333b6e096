//! Series of a filter: they belong to the host, so that they outlive a guest that fails.

use std::collections::HashMap;

use crate::bindings::host::Refusal;
use crate::sketch::Sketch;
use crate::types::{Aggregate, AggregateValue, Metric};

/// Labels a series may have.
const LABELS: usize = 8;
/// Bytes that the histograms of a filter may take together; one of durations takes a few KiB.
const HISTOGRAM_BYTES: usize = 16 << 20;

/// What a series is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    labels: Vec<(String, String)>,
}

#[derive(Debug)]
enum Slot {
    Counter { delta: f64, total: f64 },
    Gauge(Option<f64>),
    Histogram(Box<Sketch>),
}

#[derive(Debug)]
struct Series {
    key: Key,
    unit: String,
    slot: Slot,
    touched: bool,
}

/// All series of a filter.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    limit: usize,
    series: Vec<Series>,
    by_key: HashMap<Key, u32>,
    /// A name has one metric and one unit.
    names: HashMap<String, (Metric, String)>,
    histogram_bytes: usize,
}

/// Whether a text can be a name, unit or key.
pub(crate) fn is_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_.-/%".contains(&b);
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}

impl Registry {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }

    /// The number of a series, opened if it is new.
    pub(crate) fn open(
        &mut self,
        metric: Metric,
        name: String,
        unit: String,
        mut labels: Vec<(String, String)>,
    ) -> Result<u32, Refusal> {
        if labels.len() > LABELS {
            return Err(Refusal::TooManyLabels);
        }
        if !is_name(&name) || !is_name(&unit) || labels.iter().any(|(k, v)| !is_name(k) || v.len() > 128) {
            return Err(Refusal::BadName);
        }
        labels.sort();
        if labels.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Refusal::TooManyLabels);
        }
        if self.names.get(&name).is_some_and(|(m, u)| *m != metric || *u != unit) {
            return Err(Refusal::BadName);
        }
        let key = Key { name, labels };
        if let Some(index) = self.by_key.get(&key) {
            return Ok(*index);
        }
        if self.series.len() >= self.limit {
            return Err(Refusal::TooManySeries);
        }
        let index = self.series.len() as u32;
        self.names.entry(key.name.clone()).or_insert_with(|| (metric, unit.clone()));
        self.by_key.insert(key.clone(), index);
        let slot = match metric {
            Metric::Counter => Slot::Counter { delta: 0.0, total: 0.0 },
            Metric::Gauge => Slot::Gauge(None),
            Metric::Histogram => Slot::Histogram(Box::default()),
        };
        self.series.push(Series { key, unit, slot, touched: false });
        Ok(index)
    }

    /// Whether the value was taken.
    pub(crate) fn update(&mut self, series: u32, value: f64) -> bool {
        let Some(found) = self.series.get_mut(series as usize) else { return false };
        if !value.is_finite() {
            return false;
        }
        match &mut found.slot {
            Slot::Counter { delta, total } => {
                if value < 0.0 {
                    return false;
                }
                *delta += value;
                *total += value;
            }
            Slot::Gauge(last) => *last = Some(value),
            Slot::Histogram(sketch) => {
                if sketch.would_grow(value) {
                    if self.histogram_bytes > HISTOGRAM_BYTES {
                        return false;
                    }
                    self.histogram_bytes -= sketch.bytes();
                    sketch.observe(value);
                    self.histogram_bytes += sketch.bytes();
                } else {
                    sketch.observe(value);
                }
            }
        }
        found.touched = true;
        true
    }

    /// What changed in the window that ends now; the next one begins.
    pub(crate) fn take(&mut self) -> Vec<Aggregate> {
        let mut taken = Vec::new();
        for series in self.series.iter_mut().filter(|series| series.touched) {
            series.touched = false;
            let value = match &mut series.slot {
                Slot::Counter { delta, total } => {
                    AggregateValue::Counter { delta: std::mem::take(delta), total: *total }
                }
                Slot::Gauge(Some(value)) => AggregateValue::Gauge(*value),
                Slot::Gauge(None) => continue,
                Slot::Histogram(sketch) => {
                    let whole = sketch.clone();
                    sketch.clear();
                    AggregateValue::Histogram(whole)
                }
            };
            taken.push(Aggregate {
                name: series.key.name.clone(),
                unit: series.unit.clone(),
                labels: series.key.labels.clone(),
                value,
            });
        }
        taken
    }
}
