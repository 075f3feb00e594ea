//! Pictures of one workload: bars of medians, and memory over time.
// SPDX-License-Identifier: MIT

use plotters::prelude::*;

use crate::analysis::Metric;
use crate::record::{Outcome, Run};

use super::picture::COLOURS;
use super::{Result, cells};

const FONT: &str = "sans-serif";
const WIDTH: u32 = 560;
const BAR_HEIGHT: u32 = 30;
const CURVE_HEIGHT: u32 = 300;
/// The last mark of an axis is a word that reaches beyond it.
const MARGIN_RIGHT: u32 = 28;
/// The names stand behind the last point.
const LEGEND_ROOM: f64 = 1.3;
/// More points are no more to be seen.
const POINTS_MAX: usize = 200;

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// The subject's is always the same.
fn colour(result: &Result, allocator: usize) -> RGBColor {
    let order = std::iter::once(result.subject)
        .chain(result.allocator_indices().filter(|index| *index != result.subject));
    let place = order.into_iter().position(|index| index == allocator).unwrap_or(0);
    COLOURS[place % COLOURS.len()]
}

/// What figures are divided by, so that an axis has round marks in the unit that is printed.
fn unit(metric: Metric, highest: f64) -> f64 {
    let is_bytes = metric == Metric::Peak;
    let fits = |unit: &f64| highest >= *unit;
    let units = [1024f64.powi(3), 1024f64.powi(2), 1024.0];
    units.into_iter().filter(|_| is_bytes).find(fits).unwrap_or(1.0)
}

/// None: nothing was measured.
pub fn bars(result: &Result, workload: usize, metric: Metric) -> Option<String> {
    let mut rows: Vec<(usize, f64, f64, f64)> = result
        .allocator_indices()
        .filter_map(|allocator| {
            let middle = result.analysis.middle(workload, allocator, metric)?;
            Some((allocator, middle.low, middle.median, middle.high))
        })
        .collect();
    rows.sort_by(|a, b| b.2.total_cmp(&a.2));
    let highest = rows.iter().map(|row| row.3).fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let mut svg = String::new();
    draw_bars(&mut svg, result, workload, metric, &rows, highest).ok()?;
    Some(svg)
}

fn draw_bars(
    svg: &mut String,
    result: &Result,
    workload: usize,
    metric: Metric,
    rows: &[(usize, f64, f64, f64)],
    highest: f64,
) -> Drawn {
    let height = 50 + BAR_HEIGHT * rows.len() as u32;
    let area = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    let count = rows.len() as f64;
    let unit = unit(metric, highest);
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .margin_right(MARGIN_RIGHT)
        .x_label_area_size(30)
        .y_label_area_size(110)
        .build_cartesian_2d(0.0..highest / unit * 1.25, 0.0..count)?;
    let figure = |value: &f64| cells::figure(result, workload, metric, *value * unit);
    let name = |place: &f64| {
        let row = rows.get(place.floor() as usize);
        row.map_or(String::new(), |row| result.name(row.0).to_owned())
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_labels(5)
        .y_labels(1)
        .x_label_formatter(&figure)
        .y_label_formatter(&|_| String::new())
        .bold_line_style(BLACK.mix(0.12))
        .light_line_style(TRANSPARENT)
        .label_style((FONT, 13))
        .draw()?;
    for (place, (allocator, low, median, high)) in rows.iter().enumerate() {
        let (bottom, top) = (place as f64 + 0.18, place as f64 + 0.82);
        let middle = place as f64 + 0.5;
        let colour = colour(result, *allocator);
        let [low, median, high] = [low, median, high].map(|value| value / unit);
        chart.draw_series([Rectangle::new(
            [(0.0, bottom), (median, top)],
            colour.mix(0.75).filled(),
        )])?;
        let line = BLACK.stroke_width(2);
        chart.draw_series([PathElement::new([(low, middle), (high, middle)], line)])?;
        let text = (FONT, 13).into_font().color(&BLACK);
        let beside = chart.backend_coord(&(high.max(median), middle));
        area.draw(&Text::new(figure(&median), (beside.0 + 6, beside.1 - 6), text.clone()))?;
        let left = chart.backend_coord(&(0.0, middle));
        area.draw(&Text::new(name(&middle), (8, left.1 - 6), text))?;
    }
    area.present()?;
    Ok(())
}

/// The right run whose time is nearest to the median, of those that have a curve.
pub fn middle_run(runs: &[Run], workload: usize, allocator: usize) -> Option<&Run> {
    let mut of_cell: Vec<&Run> = runs
        .iter()
        .filter(|run| run.workload == workload && run.allocator == allocator && run.round > 0)
        .filter(|run| run.outcome == Outcome::Right && !run.series.is_empty())
        .collect();
    of_cell.sort_by(|a, b| a.wall_s.total_cmp(&b.wall_s));
    of_cell.get(of_cell.len() / 2).copied()
}

/// One curve for each cell is enough to see how memory goes, and others are no part of the data.
pub fn with_one_curve(runs: &[Run]) -> Vec<Run> {
    let is_kept = |run: &Run| {
        let middle = middle_run(runs, run.workload, run.allocator);
        middle.is_some_and(|middle| middle.round == run.round)
    };
    let kept: Vec<bool> = runs.iter().map(is_kept).collect();
    let mut runs = runs.to_vec();
    runs.iter_mut().zip(kept).filter(|(_, kept)| !kept).for_each(|(run, _)| run.series.clear());
    runs
}

/// None: no run has a curve of some length.
pub fn curves(result: &Result, workload: usize, runs: &[Run]) -> Option<String> {
    let curves: Vec<(usize, Vec<(f64, f64)>)> = result
        .allocator_indices()
        .filter(|allocator| result.analysis.failure(workload, *allocator).is_none())
        .filter_map(|allocator| {
            let run = middle_run(runs, workload, allocator)?;
            Some((allocator, thinned(&run.series)))
        })
        .filter(|(_, points)| points.len() > 2)
        .collect();
    if curves.is_empty() {
        return None;
    }
    let mut svg = String::new();
    draw_curves(&mut svg, result, workload, &curves).ok()?;
    Some(svg)
}

/// The highest of each piece.
fn thinned(series: &[(f64, u64)]) -> Vec<(f64, f64)> {
    let step = series.len().div_ceil(POINTS_MAX).max(1);
    let highest = |part: &[(f64, u64)]| {
        (part[0].0, part.iter().map(|point| point.1).max().unwrap_or(0) as f64)
    };
    series.chunks(step).map(highest).collect()
}

fn draw_curves(
    svg: &mut String,
    result: &Result,
    workload: usize,
    curves: &[(usize, Vec<(f64, f64)>)],
) -> Drawn {
    let all = || curves.iter().flat_map(|(_, points)| points);
    let end = all().map(|point| point.0).fold(0.0, f64::max);
    let highest = all().map(|point| point.1).fold(0.0, f64::max);
    let unit = unit(Metric::Peak, highest);
    let area = SVGBackend::with_string(svg, (WIDTH, CURVE_HEIGHT)).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .margin_right(MARGIN_RIGHT)
        .x_label_area_size(30)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..end * LEGEND_ROOM, 0.0..highest / unit * 1.08)?;
    chart
        .configure_mesh()
        .x_labels(6)
        .y_labels(5)
        .x_label_formatter(&|seconds| crate::units::seconds(*seconds))
        .y_label_formatter(&|bytes| cells::figure(result, workload, Metric::Peak, *bytes * unit))
        .bold_line_style(BLACK.mix(0.12))
        .light_line_style(TRANSPARENT)
        .label_style((FONT, 13))
        .draw()?;
    for (allocator, points) in curves {
        let colour = colour(result, *allocator);
        chart
            .draw_series([PathElement::new(
                points.iter().map(|(x, y)| (*x, y / unit)).collect::<Vec<_>>(),
                colour.stroke_width(2),
            )])?
            .label(result.name(*allocator))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(3)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::MiddleRight)
        .label_font((FONT, 13))
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_curve_keeps_its_peak() {
        let series: Vec<(f64, u64)> =
            (0..1000).map(|at| (f64::from(at), if at == 500 { 9 } else { 1 })).collect();
        let points = thinned(&series);
        assert_eq!(points.len(), 200);
        assert_eq!(points.iter().map(|point| point.1).fold(0.0, f64::max), 9.0);
    }
}
