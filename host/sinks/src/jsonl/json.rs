//! JSON text into a buffer that is reused.

/// Appends text as it is.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends a whole number.
#[inline]
pub(crate) fn int(out: &mut Vec<u8>, number: impl itoa::Integer) {
    put(out, itoa::Buffer::new().format(number));
}

/// Appends `text` (a comma, a key and a colon) and a whole number.
#[inline]
pub(crate) fn field(out: &mut Vec<u8>, text: &str, number: impl itoa::Integer) {
    put(out, text);
    int(out, number);
}

/// As [`field`], with null for None.
#[inline]
pub(crate) fn field_or_null(out: &mut Vec<u8>, text: &str, number: Option<impl itoa::Integer>) {
    put(out, text);
    match number {
        Some(number) => int(out, number),
        None => put(out, "null"),
    }
}

/// As [`field`], but nothing at all for 0.
#[inline]
pub(crate) fn field_unless_zero(out: &mut Vec<u8>, text: &str, number: u64) {
    if number != 0 {
        field(out, text, number);
    }
}

/// Appends `text` and a decimal number in its shortest form; null for None, NaN and infinity.
#[inline]
pub(crate) fn float(out: &mut Vec<u8>, text: &str, number: Option<f64>) {
    put(out, text);
    match number {
        Some(number) if number.is_finite() => put(out, zmij::Buffer::new().format_finite(number)),
        _ => put(out, "null"),
    }
}

/// Appends `text` and a string, quoted.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, key: &str, value: &str) {
    put(out, key);
    string(out, value, false);
}

/// As [`text`], but nothing at all for an empty one.
#[inline]
pub(crate) fn text_unless_empty(out: &mut Vec<u8>, key: &str, value: &str) {
    if !value.is_empty() {
        text(out, key, value);
    }
}

/// Appends a string, quoted and escaped; `slash`: `/` too, as Inspector's writer does.
#[inline]
pub(crate) fn string(out: &mut Vec<u8>, value: &str, slash: bool) {
    out.push(b'"');
    let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\' || (slash && byte == b'/');
    let mut rest = value.as_bytes();
    while let Some(at) = rest.iter().position(|byte| special(*byte)) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'\n' => put(out, "\\n"),
            b'\r' => put(out, "\\r"),
            b'\t' => put(out, "\\t"),
            byte if byte < 0x20 => {
                put(out, "\\u00");
                hex_digits(out, u64::from(byte), 2);
            }
            byte => out.extend_from_slice(&[b'\\', byte]),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends a bit pattern as a string: `"0x` and 16 digits `"`.
#[inline]
pub(crate) fn bits(out: &mut Vec<u8>, value: u64) {
    put(out, "\"0x");
    hex_digits(out, value, 16);
    out.push(b'"');
}

fn hex_digits(out: &mut Vec<u8>, value: u64, digits: u32) {
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(value >> (4 * digit)) as usize & 15]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back() {
        let all: String = (0..0x300u32).chain([0xfffd, 0x2028, 0x1f600]).filter_map(char::from_u32).collect();
        for value in ["", "plain", "a\"b\\c/d", "\u{0}\u{1f}\u{7f}\n\r\t", "\u{fffd}", &all] {
            for slash in [false, true] {
                let mut out = Vec::new();
                string(&mut out, value, slash);
                assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), value);
            }
        }
        let mut out = Vec::new();
        string(&mut out, "a/b", true);
        assert_eq!(out, b"\"a\\/b\"");
    }

    #[test]
    fn numbers_come_back() {
        for number in [0.0, 1.5, 1e-9, 1e300, 277.210914, f64::MIN_POSITIVE] {
            let mut out = Vec::new();
            float(&mut out, "", Some(number));
            assert_eq!(serde_json::from_slice::<f64>(&out).unwrap(), number);
        }
        for number in [f64::NAN, f64::INFINITY] {
            let mut out = Vec::new();
            float(&mut out, "", Some(number));
            assert_eq!(out, b"null");
        }
        let mut out = Vec::new();
        bits(&mut out, 0xabc);
        assert_eq!(out, b"\"0x0000000000000abc\"");
    }
}
