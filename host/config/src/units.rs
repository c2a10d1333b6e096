//! Sizes and spans of time as people write them.

use std::time::Duration;

/// Reads a size: a number and `B`, `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024) or `kB`, `MB`, `GB`, `TB` (powers of 1000);
/// a number alone is bytes. None if it is not one, or does not fit 64 bits.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    scaled(number, scale)
}

/// Reads a span of time: a number and `ns`, `us`, `ms`, `s`, `min` or `h`; a number alone is milliseconds. None if it is
/// not one, or longer than 584 years.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "" | "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" | "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    scaled(number, scale).map(Duration::from_nanos)
}

/// Writes a size in the largest unit that divides it.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes != 0 && bytes.trailing_zeros() >= *shift) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}"),
    }
}

/// Writes a span of time in the largest unit that divides it.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    let units =
        [("h", 3_600_000_000_000), ("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    match units.iter().find(|(_, scale)| ns != 0 && ns.is_multiple_of(*scale)) {
        Some((unit, scale)) => format!("{}{unit}", ns / scale),
        None => format!("{ns}ns"),
    }
}

fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    if end == 0 { None } else { Some((&text[..end], text[end..].trim_start())) }
}

/// `number × scale` without the loss of a double; digits beyond the scale's precision are cut off.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return None;
    }
    let mut total = u128::from(whole.parse::<u64>().ok()?) * u128::from(scale);
    let mut place = u128::from(scale);
    for digit in fraction.chars().take(18) {
        total += place * u128::from(digit.to_digit(10)?) / 10;
        place /= 10;
    }
    u64::try_from(total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let table =
            [("4MiB", 4 << 20), ("1.5KiB", 1536), ("10", 10), ("8 GiB", 8 << 30), ("1kB", 1000), ("1_000B", 1000)];
        for (text, expected) in table {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for text in ["", "MiB", "1 parsec", "-1", "1.2.3", "20000000TiB", "1m", "1K"] {
            assert_eq!(bytes(text), None, "{text}");
        }
        for value in [0, 1, 1023, 1024, 64 << 20, 1 << 40, u64::MAX] {
            assert_eq!(bytes(&show_bytes(value)), Some(value));
        }
    }

    #[test]
    fn spans() {
        let table = [
            ("10ms", 10_000_000),
            ("1s", 1_000_000_000),
            ("250us", 250_000),
            ("5", 5_000_000),
            ("1.5 s", 1_500_000_000),
        ];
        for (text, expected) in table {
            assert_eq!(duration(text), Some(Duration::from_nanos(expected)), "{text}");
        }
        assert_eq!(duration("10min"), Some(Duration::from_secs(600)));
        for text in ["", "s", "1 parsec", "-1s", "1MiB"] {
            assert_eq!(duration(text), None, "{text}");
        }
        for ns in [0, 1, 100_000, 5_000_000, 600_000_000_000, 3_600_000_000_000] {
            assert_eq!(duration(&show_duration(Duration::from_nanos(ns))), Some(Duration::from_nanos(ns)));
        }
    }
}
