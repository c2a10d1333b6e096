use super::Sketch;

/// Numbers that look random and are the same in every run.
fn numbers(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    })
}

fn check(mut values: Vec<f64>) {
    let mut sketch = Sketch::default();
    values.iter().for_each(|v| sketch.observe(*v));
    values.sort_by(f64::total_cmp);
    for q in [0.0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
        let rank = ((q * values.len() as f64).ceil() as usize).max(1);
        let exact = values[rank - 1];
        let found = sketch.quantile(q).expect("not empty");
        assert!((found - exact).abs() <= exact.abs() * Sketch::ERROR + f64::EPSILON, "{q}: {found}, exactly {exact}");
    }
    assert_eq!((sketch.least(), sketch.greatest()), (values.first().copied(), values.last().copied()));
    assert_eq!(sketch.count(), values.len() as u64);
}

#[test]
fn quantiles_are_right_to_half_a_percent() {
    check(numbers(1).take(20_000).collect());
    check(numbers(2).take(20_000).map(|x| (-x.ln() * 1e4).powi(3)).collect());
    check(numbers(3).take(20_000).map(|x| 1e-9 / x).collect());
    check(numbers(4).take(20_000).map(|x| (x - 0.5) * 1e12).collect());
    check(vec![0.0, 0.0, 1.0, -1.0]);
    check(vec![5.0]);
}

#[test]
fn merging_is_exact_and_order_makes_no_difference() {
    let parts: Vec<Vec<f64>> = (0..5).map(|s| numbers(s).take(1000).map(|x| 1.0 / x).collect()).collect();
    let sketch = |values: &[f64]| {
        let mut sketch = Sketch::default();
        values.iter().for_each(|v| sketch.observe(*v));
        sketch
    };
    let whole = sketch(&parts.concat());
    let (mut forward, mut backward) = (Sketch::default(), Sketch::default());
    parts.iter().for_each(|p| forward.merge(&sketch(p)));
    parts.iter().rev().for_each(|p| backward.merge(&sketch(p)));
    for q in [0.1, 0.5, 0.99, 1.0] {
        assert_eq!(whole.quantile(q), forward.quantile(q));
        assert_eq!(whole.quantile(q), backward.quantile(q));
    }
    assert_eq!(whole.count(), 5000);
}

#[test]
fn extremes_stay_bounded() {
    let mut sketch = Sketch::default();
    for value in [f64::MAX, f64::MIN_POSITIVE, -f64::MAX, 5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0] {
        sketch.observe(value);
    }
    assert_eq!(sketch.count(), 5);
    assert_eq!(sketch.quantile(1.0).map(f64::is_finite), Some(true));
    assert_eq!(sketch.buckets().count(), 4);
    sketch.clear();
    assert_eq!((sketch.count(), sketch.quantile(0.5), sketch.least()), (0, None, None));
}
