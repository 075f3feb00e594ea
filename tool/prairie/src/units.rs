//! Figures as people read them: three significant digits, with a unit.
// SPDX-License-Identifier: MIT

use crate::trouble::{Result, Trouble};

/// Three significant digits, never in exponents.
pub fn digits(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        0.0 => 0,
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let last = units.last().expect("there are units");
    // Just below a unit's size rounds up to it.
    let found = units.iter().find(|(size, _)| value.abs() >= size * 0.9995);
    let (size, unit) = found.unwrap_or(last);
    format!("{} {unit}", digits(value / size))
}

/// Two digits for each byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn seconds(value: f64) -> String {
    scaled(value, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])
}

pub fn bytes(value: f64) -> String {
    const KIB: f64 = 1024.0;
    if value.abs() < KIB - 0.5 {
        return format!("{value:.0} B");
    }
    scaled(value, &[(KIB * KIB * KIB, "GiB"), (KIB * KIB, "MiB"), (KIB, "KiB")])
}

/// A size as people write it: 200M, 1.5G, 64KiB, 4096. Units are binary, as everywhere here.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let wrong = || Trouble::new("it must be a size, as 200M, 1.5G or 4096");
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim().to_ascii_lowercase();
    let power = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(wrong()),
    };
    Ok((number * 1024f64.powi(power)).round() as u64)
}

/// Memory held over time.
pub fn byte_seconds(value: f64) -> String {
    scaled(value, &[(1e9, "GB·s"), (1e6, "MB·s"), (1e3, "kB·s"), (1.0, "B·s")])
}

/// How many.
pub fn count(value: f64) -> String {
    if value < 9_999.5 {
        return format!("{value:.0}");
    }
    scaled(value, &[(1e9, "G"), (1e6, "M"), (1e3, "k")])
}

/// A program's own figure, whose unit stands elsewhere.
pub fn count_or_digits(value: f64) -> String {
    if value.abs() < 9_999.5 { digits(value) } else { count(value) }
}

/// A duration to wait for.
pub fn about(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("200M", 200 << 20),
            ("1.5G", 3 << 29),
            ("64KiB", 65536),
            ("1 kB", 1024),
        ] {
            assert_eq!(parse_bytes(text).unwrap(), bytes, "{text}");
        }
        for wrong in ["", "M", "1X", "-1", "1.2.3"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(seconds(1.2345), "1.23 s");
        assert_eq!(seconds(0.99999), "1.00 s");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(0.0), "0 ns");
        assert_eq!(bytes(50.0), "50 B");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(bytes(123.0 * 1024.0 * 1024.0), "123 MiB");
        assert_eq!(byte_seconds(2.5e6), "2.50 MB·s");
        assert_eq!(count(812.0), "812");
        assert_eq!(count(123_456.0), "123 k");
        assert_eq!(digits(0.0012), "0.001");
        assert_eq!(about(600.0), "10 min");
    }
}
