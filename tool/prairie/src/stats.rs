//! Medians, spreads, ratios with their intervals, and geometric means.
// SPDX-License-Identifier: MIT

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

/// Bootstrap: how often the rounds are drawn anew, and how much of the outcomes an interval covers.
const DRAWS: usize = 2000;
const COVERAGE: f64 = 0.95;

/// With fewer, an interval covers less than it says, and nothing is claimed.
const ROUNDS_FOR_A_CLAIM: usize = 5;

/// The middle of a set of figures, and the half of them that lies around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Middle {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Middle {
    /// None without any figure.
    pub fn of(values: &[f64]) -> Option<Middle> {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        Some(Middle {
            median: quantile(&values, 0.5)?,
            low: quantile(&values, 0.25)?,
            high: quantile(&values, 0.75)?,
        })
    }
}

/// Of sorted values; between two of them, in proportion.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = part * last as f64;
    let (below, share) = (place.floor() as usize, place.fract());
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    // Those of infinite values would be no number.
    Some(if share == 0.0 || low == high { low } else { low + share * (high - low) })
}

/// The mean of figures and where it lies with 95 % confidence, by a bootstrap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    pub mean: f64,
    /// None: too few figures to say.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Mean {
    /// None without any figure.
    pub fn of(values: &[f64], seed: u64) -> Option<Mean> {
        let count = values.len();
        let mean = |sum: f64| sum / count as f64;
        let plain = mean(values.iter().sum());
        if count < ROUNDS_FOR_A_CLAIM {
            return (count > 0).then_some(Mean { mean: plain, low: None, high: None });
        }
        let mut random = StdRng::seed_from_u64(seed);
        let mut draw = || mean((0..count).map(|_| values[random.random_range(0..count)]).sum());
        let mut means: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
        means.sort_by(f64::total_cmp);
        let tail = (1.0 - COVERAGE) / 2.0;
        let (low, high) = (quantile(&means, tail), quantile(&means, 1.0 - tail));
        Some(Mean { mean: plain, low, high })
    }
}

/// How much of something, in comparison: below 1 is less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    pub value: f64,
    /// In which the ratio lies with 95 % confidence; None: one round says nothing about chance. Infinite
    /// where the other may cost nothing, which JSON has no number for.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub rounds: usize,
    /// Of counts, which chance does not touch.
    #[serde(skip)]
    pub is_exact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Less,
    More,
    /// The interval contains 1: no difference can be claimed.
    NoDifference,
    /// Too few rounds.
    Unknown,
}

impl Ratio {
    /// Of the medians of two columns whose rows are the same rounds: drawing whole rounds keeps
    /// what the machine did to both of them together.
    pub fn of_medians(ours: &[f64], theirs: &[f64], seed: u64) -> Option<Ratio> {
        assert_eq!(ours.len(), theirs.len(), "one pair a round");
        let value = divided(Middle::of(ours)?.median, Middle::of(theirs)?.median)?;
        let rounds = ours.len();
        let is_exact = false;
        if rounds < 2 {
            return Some(Ratio { value, low: None, high: None, rounds, is_exact });
        }
        let mut random = StdRng::seed_from_u64(seed);
        let mut ratios = Vec::with_capacity(DRAWS);
        let (mut a, mut b) = (vec![0.0; ours.len()], vec![0.0; ours.len()]);
        for _ in 0..DRAWS {
            for (a, b) in a.iter_mut().zip(&mut b) {
                let round = random.random_range(0..ours.len());
                (*a, *b) = (ours[round], theirs[round]);
            }
            ratios.push(drawn(median_of(&mut a), median_of(&mut b)));
        }
        ratios.sort_by(f64::total_cmp);
        let tail = (1.0 - COVERAGE) / 2.0;
        let (low, high) = (quantile(&ratios, tail), quantile(&ratios, 1.0 - tail));
        Some(Ratio { value, low, high, rounds, is_exact })
    }

    pub fn exact(value: f64) -> Ratio {
        let (all, rounds) = (Some(value), ROUNDS_FOR_A_CLAIM);
        Ratio { value, low: all, high: all, rounds, is_exact: true }
    }

    pub fn verdict(&self) -> Verdict {
        match (self.low, self.high) {
            _ if self.rounds < ROUNDS_FOR_A_CLAIM => Verdict::Unknown,
            (Some(_), Some(high)) if high < 1.0 => Verdict::Less,
            (Some(low), Some(_)) if low > 1.0 => Verdict::More,
            (Some(_), Some(_)) => Verdict::NoDifference,
            _ => Verdict::Unknown,
        }
    }

    pub fn inverse(&self) -> Ratio {
        Ratio {
            value: 1.0 / self.value,
            low: self.high.map(|high| 1.0 / high),
            high: self.low.map(|low| 1.0 / low),
            rounds: self.rounds,
            is_exact: self.is_exact,
        }
    }
}

fn median_of(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(values, 0.5).expect("there are rounds")
}

fn divided(a: f64, b: f64) -> Option<f64> {
    (a > 0.0 && b > 0.0).then(|| a / b)
}

/// The ratio of a draw. Draws without a cost on one side are the ends of the interval: without them it
/// would be narrower than chance is.
fn drawn(a: f64, b: f64) -> f64 {
    match (a > 0.0, b > 0.0) {
        (_, true) => a / b,
        (true, false) => f64::INFINITY,
        (false, false) => 1.0,
    }
}

/// None for an empty list.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some((values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_half_lies_around_the_median() {
        let middle = Middle::of(&[4.0, 1.0, 3.0, 2.0, 100.0]).unwrap();
        assert_eq!(middle, Middle { median: 3.0, low: 2.0, high: 4.0 });
        assert_eq!(Middle::of(&[1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Middle::of(&[]), None);
    }

    #[test]
    fn a_mean_has_an_interval_around_it() {
        let values: Vec<f64> = (0..20).map(|i| 10.0 + f64::from(i % 5)).collect();
        let mean = Mean::of(&values, 3).unwrap();
        assert_eq!(mean.mean, 12.0);
        assert!((11.0..12.0).contains(&mean.low.unwrap()), "{mean:?}");
        assert!((12.0..13.0).contains(&mean.high.unwrap()), "{mean:?}");
        assert_eq!(Mean::of(&[3.0], 1).unwrap(), Mean { mean: 3.0, low: None, high: None });
        assert_eq!(Mean::of(&[], 1), None);
    }

    #[test]
    fn a_clear_difference_is_claimed() {
        let slow: Vec<f64> = (0..10).map(|i| 2.0 + f64::from(i) * 0.01).collect();
        let fast: Vec<f64> = (0..10).map(|i| 1.0 + f64::from(9 - i) * 0.01).collect();
        let ratio = Ratio::of_medians(&fast, &slow, 1).unwrap();
        assert_eq!(ratio.verdict(), Verdict::Less);
        assert!((ratio.value - 0.5).abs() < 0.02, "{ratio:?}");
        assert!(ratio.low.unwrap() <= ratio.value && ratio.value <= ratio.high.unwrap());
        assert_eq!(ratio.inverse().verdict(), Verdict::More);
        assert_eq!(Ratio::of_medians(&slow, &fast, 1).unwrap().verdict(), Verdict::More);
    }

    #[test]
    fn noise_is_no_difference() {
        let one = [1.0, 1.3, 0.9, 1.2, 1.1, 0.8, 1.4, 1.0];
        let other = [1.1, 0.9, 1.2, 1.0, 1.3, 1.0, 0.9, 1.2];
        let ratio = Ratio::of_medians(&one, &other, 7).unwrap();
        assert_eq!(ratio.verdict(), Verdict::NoDifference);
    }

    /// As of context switches, of which some rounds have none.
    #[test]
    fn rounds_that_cost_nothing_count_in_the_interval() {
        let (some, one) = ([0.0, 0.0, 2.0, 2.0, 2.0], [1.0; 5]);
        let ratio = Ratio::of_medians(&some, &one, 1).unwrap();
        assert_eq!((ratio.value, ratio.low, ratio.high), (2.0, Some(0.0), Some(2.0)));
        assert_eq!(ratio.verdict(), Verdict::NoDifference);
        let ratio = Ratio::of_medians(&one, &some, 1).unwrap();
        assert_eq!((ratio.value, ratio.low, ratio.high), (0.5, Some(0.5), Some(f64::INFINITY)));
        assert_eq!(ratio.verdict(), Verdict::NoDifference);
    }

    #[test]
    fn a_disturbance_of_both_cancels_out() {
        // The machine doubles its pace from round to round; the ratio stays 0.9 in each.
        let theirs: Vec<f64> = (0..10).map(|round| f64::from(1 << round)).collect();
        let ours: Vec<f64> = theirs.iter().map(|time| time * 0.9).collect();
        let ratio = Ratio::of_medians(&ours, &theirs, 3).unwrap();
        assert!((ratio.low.unwrap() - 0.9).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.high.unwrap() - 0.9).abs() < 1e-9, "{ratio:?}");
    }

    #[test]
    fn a_seed_gives_the_same_interval() {
        let a = [1.0, 1.1, 1.2, 0.9];
        let b = [1.0, 1.2, 1.1, 1.3];
        assert_eq!(Ratio::of_medians(&a, &b, 5), Ratio::of_medians(&a, &b, 5));
    }

    #[test]
    fn few_rounds_say_nothing_about_chance() {
        let ratio = Ratio::of_medians(&[1.0], &[2.0], 1).unwrap();
        assert_eq!((ratio.value, ratio.verdict()), (0.5, Verdict::Unknown));
        let few = Ratio::of_medians(&[1.0; 4], &[2.0; 4], 1).unwrap();
        assert_eq!((few.high, few.verdict()), (Some(0.5), Verdict::Unknown));
        let enough = Ratio::of_medians(&[1.0; 5], &[2.0; 5], 1).unwrap();
        assert_eq!(enough.verdict(), Verdict::Less);
        assert_eq!(Ratio::of_medians(&[], &[], 1), None);
        assert_eq!(Ratio::of_medians(&[1.0], &[0.0], 1), None);
    }

    #[test]
    fn counts_need_no_rounds() {
        assert_eq!(Ratio::exact(0.999).verdict(), Verdict::Less);
        assert_eq!(Ratio::exact(1.001).verdict(), Verdict::More);
        assert_eq!(Ratio::exact(1.0).verdict(), Verdict::NoDifference);
    }

    #[test]
    fn the_geometric_mean_treats_halves_and_doubles_alike() {
        assert!((geometric_mean(&[0.5, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
