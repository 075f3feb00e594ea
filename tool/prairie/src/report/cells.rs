//! The text of single cells.
// SPDX-License-Identifier: MIT

use crate::analysis::{Failure, Metric};
use crate::stats::{Middle, Ratio, Verdict};
use crate::units;

use super::Result;

pub const NONE: &str = "–";

/// What explains all ratios; counts need no explanation.
const LEGEND: &str = "≈: no difference can be claimed, the 95 % interval of the ratio of medians \
    (bootstrap over rounds) contains 1. ?: fewer than five rounds, too few to claim anything.";

pub fn legend(result: &Result) -> &'static str {
    if result.instructions { "" } else { LEGEND }
}

pub fn ratio(ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else { return NONE.to_owned() };
    if ratio.is_exact {
        return format!("{:.3}", ratio.value);
    }
    let value = digits(ratio.value);
    match ratio.verdict() {
        Verdict::NoDifference => format!("≈ {value}"),
        Verdict::Unknown => format!("{value} ?"),
        Verdict::Less | Verdict::More => value,
    }
}

/// With its interval.
pub fn ratio_with_interval(of: Option<Ratio>) -> String {
    match of {
        Some(Ratio { low: Some(low), high: Some(high), .. }) if low < high => {
            format!("{} ({} to {})", ratio(of), digits(low), digits(high))
        }
        _ => ratio(of),
    }
}

/// Two decimals tell a difference of a per cent; large ratios need none.
fn digits(value: f64) -> String {
    if value < 9.995 { format!("{value:.2}") } else { units::digits(value) }
}

pub fn mean(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.3}"))
}

pub fn failure(failure: &Failure) -> String {
    failure.outcome.text().to_owned()
}

/// A median as people read it.
pub fn figure(result: &Result, workload: usize, metric: Metric, value: f64) -> String {
    match metric {
        Metric::Time => time(result, workload, value),
        Metric::Wall | Metric::Cpu => units::seconds(value),
        Metric::Peak => units::bytes(value),
        Metric::Area => units::byte_seconds(value),
        Metric::Faults | Metric::Switches => units::count(value),
    }
}

fn time(result: &Result, workload: usize, value: f64) -> String {
    if result.instructions {
        return units::count(value);
    }
    match &result.analysis.items[workload].workload.figure {
        Some(figure) if figure.higher_is_better => units::count_or_digits(1.0 / value),
        Some(_) => units::count_or_digits(value),
        None => units::seconds(value),
    }
}

/// The figure of a cell, or how it failed.
pub fn median(result: &Result, workload: usize, allocator: usize, metric: Metric) -> String {
    if let Some(failed) = result.analysis.failure(workload, allocator) {
        return failure(failed);
    }
    match result.analysis.middle(workload, allocator, metric) {
        Some(middle) => figure(result, workload, metric, middle.median),
        None => NONE.to_owned(),
    }
}

/// The middle half of the rounds, as an amount to add and to take away.
pub fn spread(middle: &Middle) -> String {
    let half = (middle.high - middle.low) / 2.0;
    format!("±{:.1} %", 100.0 * half / middle.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f64, low: f64, high: f64) -> Option<Ratio> {
        Some(Ratio { value, low: Some(low), high: Some(high), rounds: 9, is_exact: false })
    }

    #[test]
    fn a_ratio_says_whether_it_claims_anything() {
        assert_eq!(ratio(of(0.9, 0.85, 0.95)), "0.90");
        assert_eq!(ratio(of(0.99, 0.95, 1.02)), "≈ 0.99");
        let one = Ratio { value: 12.34, low: None, high: None, rounds: 1, is_exact: false };
        assert_eq!(ratio(Some(one)), "12.3 ?");
        assert_eq!(ratio(Some(Ratio::exact(0.9987))), "0.999");
        assert_eq!(ratio_with_interval(Some(Ratio::exact(0.9987))), "0.999");
        assert_eq!(ratio(None), "–");
        assert_eq!(ratio_with_interval(of(0.9, 0.85, 0.95)), "0.90 (0.85 to 0.95)");
    }

    /// As those of the peak memory of a small program may be.
    #[test]
    fn equal_figures_of_rounds_are_no_counts() {
        let of_rounds = |rounds| Ratio::of_medians(&vec![2.0; rounds], &vec![2.0; rounds], 1);
        assert_eq!(ratio(of_rounds(3)), "1.00 ?");
        assert_eq!(ratio(of_rounds(5)), "≈ 1.00");
        assert_eq!(ratio(Some(Ratio::exact(1.0))), "1.000");
    }

    #[test]
    fn a_spread_is_half_of_the_middle_half() {
        assert_eq!(spread(&Middle { median: 100.0, low: 98.0, high: 104.0 }), "±3.0 %");
    }
}
