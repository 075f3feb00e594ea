//! Time against memory: a point for each allocator and workload, and each allocator's mean.
// SPDX-License-Identifier: MIT

use plotters::coord::Shift;
use plotters::coord::combinators::{BindKeyPoints, LogCoord, WithKeyPoints};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::analysis::Metric;
use crate::trouble::{About, Result, Trouble};

use super::Result as Comparison;

const SIZE: (u32, u32) = (960, 640);
const FONT: &str = "sans-serif";

/// Told apart also by people who do not see all colours; the subject's is the first.
pub const COLOURS: [RGBColor; 10] = [
    RGBColor(20, 20, 20),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(204, 121, 167),
    RGBColor(150, 130, 0),
    RGBColor(130, 130, 130),
    RGBColor(120, 60, 160),
];

struct Series {
    name: String,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
    mean: (f64, f64),
}

pub fn svg(comparison: &Comparison) -> Result<String> {
    let series = series(comparison);
    if series.iter().all(|series| series.points.is_empty()) {
        return Err(Trouble::new("no picture: no workload was right under two allocators"));
    }
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&area, comparison, &series).about("the picture")?;
        area.present().about("the picture")?;
    }
    Ok(text)
}

fn series(comparison: &Comparison) -> Vec<Series> {
    let analysis = comparison.analysis;
    let others = comparison.allocator_indices().filter(|a| *a != comparison.subject);
    let order = std::iter::once(comparison.subject).chain(others);
    let points = |allocator: usize| {
        comparison.item_indices().filter_map(move |workload| {
            let value = |metric| {
                Some(analysis.ratio(workload, allocator, comparison.subject, metric)?.value)
            };
            Some((value(Metric::Time)?, value(Metric::Peak)?))
        })
    };
    let series = order.enumerate().filter_map(|(index, allocator)| {
        let overall = analysis.overall(allocator, comparison.subject);
        Some(Series {
            name: comparison.name(allocator).to_owned(),
            colour: COLOURS[index % COLOURS.len()],
            points: points(allocator).collect(),
            mean: (overall.time?, overall.peak?),
        })
    });
    series.collect()
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

fn draw(area: &Area, comparison: &Comparison, series: &[Series]) -> Outcome {
    area.fill(&WHITE)?;
    let subject = comparison.subject_name();
    let time = if comparison.instructions { "instructions" } else { "time" };
    let (main, side) = area.split_horizontally(SIZE.0 - 170);
    let range = |pick: fn(&(f64, f64)) -> f64| {
        range_of(series.iter().flat_map(|s| s.points.iter().chain([&s.mean])).map(pick))
    };
    let (x, y) = (range(|point| point.0), range(|point| point.1));
    let caption = format!("Time against memory, {subject} = 1: left and down is better");
    let mut chart = ChartBuilder::on(&main)
        .caption(caption, (FONT, 20))
        .margin(12)
        .x_label_area_size(48)
        .y_label_area_size(64)
        .build_cartesian_2d(axis(x), axis(y))?;
    chart
        .configure_mesh()
        .x_desc(format!("{time} by {subject}'s (logarithmic)"))
        .y_desc(format!("peak memory by {subject}'s (logarithmic)"))
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .bold_line_style(BLACK.mix(0.12))
        .light_line_style(TRANSPARENT)
        .label_style((FONT, 14))
        .draw()?;
    // Where the subject stands.
    let line = BLACK.mix(0.45);
    chart.draw_series([
        PathElement::new([(1.0, y.0), (1.0, y.1)], line),
        PathElement::new([(x.0, 1.0), (x.1, 1.0)], line),
    ])?;
    for one in series.iter().skip(1) {
        let style = one.colour.mix(0.55).filled();
        chart.draw_series(one.points.iter().map(|point| Circle::new(*point, 3, style)))?;
    }
    for one in series {
        let edge = WHITE.stroke_width(2);
        chart.draw_series([Circle::new(one.mean, 9, one.colour.filled())])?;
        chart.draw_series([Circle::new(one.mean, 9, edge)])?;
    }
    legend(&side, series)
}

/// Beside the chart, in the order of time, so that names never cover points.
fn legend(side: &Area, series: &[Series]) -> Outcome {
    const LINE: i32 = 24;
    let text = (FONT, 15).into_font().color(&BLACK);
    let text = text.pos(Pos::new(HPos::Left, VPos::Center));
    let small = (FONT, 12).into_font().color(&BLACK.mix(0.7));
    let small = small.pos(Pos::new(HPos::Left, VPos::Center));
    let mut order: Vec<&Series> = series.iter().collect();
    order.sort_by(|a, b| a.mean.0.total_cmp(&b.mean.0));
    let mut y = 60;
    for one in order {
        side.draw(&Circle::new((10, y), 7, one.colour.filled()))?;
        side.draw(&Text::new(one.name.clone(), (24, y), text.clone()))?;
        let mean = format!("{:.2} time, {:.2} memory", one.mean.0, one.mean.1);
        side.draw(&Text::new(mean, (24, y + 15), small.clone()))?;
        y += LINE + 16;
    }
    for (index, line) in ["large: geometric mean", "small: one workload"].iter().enumerate() {
        let place = (4, y + 10 + 16 * index as i32);
        side.draw(&Text::new((*line).to_owned(), place, small.clone()))?;
    }
    Ok(())
}

/// All values and 1, with some room on both sides.
fn range_of(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((1.0f64, 1.0f64), |(l, h), v| (l.min(v), h.max(v)));
    (low.min(0.9) / 1.1, high.max(1.1) * 1.1)
}

/// A logarithmic axis with marks at round values.
fn axis(range: (f64, f64)) -> WithKeyPoints<LogCoord<f64>> {
    let axis: LogCoord<f64> = (range.0..range.1).log_scale().into();
    axis.with_key_points(marks(range))
}

/// The rounder ones first, and then whatever still has room.
fn marks((low, high): (f64, f64)) -> Vec<f64> {
    const APART: f64 = 0.07;
    const ROUND: &[f64] =
        &[1.0, 2.0, 5.0, 1.5, 3.0, 7.0, 1.2, 8.0, 9.0, 4.0, 6.0, 1.1, 1.3, 9.5, 1.05];
    let decades = [1.0, 0.1, 10.0, 0.01, 100.0, 0.001, 1000.0];
    let place = |value: f64| (value / low).ln() / (high / low).ln();
    let mut marks: Vec<f64> = Vec::new();
    for value in ROUND.iter().flat_map(|round| decades.map(|decade| round * decade)) {
        let is_inside = (low..=high).contains(&value);
        if is_inside && marks.iter().all(|mark| (place(*mark) - place(value)).abs() > APART) {
            marks.push(value);
        }
    }
    marks.sort_by(f64::total_cmp);
    marks
}

fn label(value: &f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_holds_everything_and_one() {
        assert_eq!(range_of([2.0, 4.0].into_iter()), (0.9 / 1.1, 4.0 * 1.1));
        assert_eq!(range_of([0.5].into_iter()), (0.5 / 1.1, 1.1 * 1.1));
    }

    #[test]
    fn marks_are_round_and_apart() {
        let narrow = marks((0.8, 1.4));
        assert!(narrow.contains(&1.0) && narrow.len() >= 4, "{narrow:?}");
        let wide = marks((0.05, 40.0));
        assert!(wide.contains(&0.1) && wide.contains(&10.0), "{wide:?}");
        assert!(wide.len() < 15, "{wide:?}");
    }

    #[test]
    fn labels_have_no_needless_digits() {
        assert_eq!(label(&1.0), "1");
        assert_eq!(label(&0.5), "0.5");
        assert_eq!(label(&10.0), "10");
    }
}
