//! Numbers as people read and write them.

use std::time::Duration;

/// Bytes with a power-of-two unit: `16 MiB`, `1.5 KiB`, `8 B`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", digits(value), UNITS[unit])
}

/// Nanoseconds with a unit: `850 ns`, `12.3 µs`, `1.25 ms`, `3.40 s`.
pub fn nanoseconds(ns: f64) -> String {
    let magnitude = ns.abs();
    if magnitude < 999.5 {
        format!("{} ns", digits(ns.round()))
    } else if magnitude < 999.5e3 {
        format!("{} µs", digits(ns / 1e3))
    } else if magnitude < 999.5e6 {
        format!("{} ms", digits(ns / 1e6))
    } else if magnitude < 600e9 {
        format!("{} s", digits(ns / 1e9))
    } else {
        format!("{} min", digits(ns / 60e9))
    }
}

/// Gigabytes a second, three significant digits.
pub fn bandwidth(gigabytes: f64) -> String {
    if gigabytes >= 999.5 {
        format!("{gigabytes:.0}")
    } else if gigabytes != 0.0 && gigabytes < 0.00995 {
        format!("{gigabytes:.4}")
    } else if gigabytes < 0.995 {
        format!("{gigabytes:.3}")
    } else {
        digits(gigabytes)
    }
}

/// A count with thin groups: `1 234 567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits, without a fraction of zeros.
fn digits(value: f64) -> String {
    let magnitude = value.abs();
    let text = if magnitude >= 99.95 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b == b'0') => whole.to_owned(),
        _ => text,
    }
}

/// Reads `10ms`, `250us`, `3 s`, `5m`, `1h`, `800ns`; a number alone is seconds.
///
/// # Errors
/// A text that is none of these, in words.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("`{unit}` is no unit of time: ns, us, ms, s, m, h or d")),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| format!("`{text}` is out of range"))
}

/// Reads `4096`, `16KiB`, `1.5 MiB`, `2GB` (decimal), `8k` (1024).
///
/// # Errors
/// A text that is none of these, in words.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(format!("`{unit}` is no unit of size: B, KiB, MiB, GiB, TiB, KB, MB, GB or TB")),
    };
    let value = number * factor;
    if value < 1.8e19 { Ok(value as u64) } else { Err(format!("`{text}` is out of range")) }
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 =
        text[..end].parse().map_err(|_| format!("`{text}` must be a number with a unit, such as `10ms` or `4MiB`"))?;
    Ok((number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_three_digits() {
        let cases = [0, 8, 1023, 1024, 1536, 1 << 20, 16 << 20, 100_000_000, 1 << 40];
        let texts = cases.map(bytes);
        assert_eq!(texts, ["0 B", "8 B", "1023 B", "1 KiB", "1.50 KiB", "1 MiB", "16 MiB", "95.4 MiB", "1 TiB"]);
    }

    #[test]
    fn times_change_their_unit() {
        let texts = [850.0, 12_345.0, 999_600.0, 1_250_000.0, 3.4e9, 1.2e12].map(nanoseconds);
        assert_eq!(texts, ["850 ns", "12.3 µs", "1 ms", "1.25 ms", "3.40 s", "20 min"]);
    }

    #[test]
    fn what_people_write_is_read() {
        assert_eq!(parse_duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_duration("3"), Ok(Duration::from_secs(3)));
        assert_eq!(parse_duration(" 1.5 h"), Ok(Duration::from_secs(5400)));
        assert!(parse_duration("3 parsecs").unwrap_err().contains("parsecs"));
        assert!(parse_duration("soon").is_err());
        assert_eq!(parse_bytes("8k"), Ok(8192));
        assert_eq!(parse_bytes("1.5 MiB"), Ok(1_572_864));
        assert_eq!(parse_bytes("2GB"), Ok(2_000_000_000));
        assert!(parse_bytes("-1").is_err());
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([7, 1234, 12345, 1_234_567].map(count), ["7", "1234", "12 345", "1 234 567"]);
    }
}
