//! Line charts as SVG.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::error::Error;
use std::ops::Range;

/// A chart: named lines over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above the chart.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines; at most six, so that they can be distinguished.
    pub lines: Vec<Line>,
}

/// What an axis shows.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Linear from 0, or logarithmic.
    pub scale: Scale,
    /// How a value is written at a tick.
    pub tick: fn(f64) -> String,
}

/// Linear or logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0 to a little beyond the largest value.
    Linear,
    /// From 0 like [`Scale::Linear`], with a tick at every whole number only.
    Counting,
    /// Over the decades of the positive values. A value of 0 is drawn hollow below them.
    Log,
}

/// A line and the points it goes through.
#[derive(Clone, Debug)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
    /// Indices into `points`, each with the way it is marked.
    pub marks: Vec<(usize, Mark)>,
}

/// Ways to mark a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// A thick circle around it.
    Thick,
    /// Two thin circles around it.
    Double,
    /// A cross, joined to no other point: what somebody else measured.
    Cross,
    /// A vertical bar from and to: what chance may have added or taken.
    Bar(f64, f64),
    /// Whiskers from and to, and a box between the two inner values, around the point in its middle.
    Box([f64; 4]),
}

impl Mark {
    /// The values that it reaches to, besides the point.
    fn reach(self) -> Vec<f64> {
        match self {
            Self::Bar(low, high) => vec![low, high],
            Self::Box(values) => values.to_vec(),
            Self::Thick | Self::Double | Self::Cross => Vec::new(),
        }
    }
}

impl Line {
    /// Points that are joined to no other.
    pub fn crosses(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let marks = (0..points.len()).map(|at| (at, Mark::Cross)).collect();
        Self { name: name.into(), points, marks }
    }

    /// Is this point a cross?
    fn is_cross(&self, at: usize) -> bool {
        self.marks.contains(&(at, Mark::Cross))
    }
}

/// A tick in units of a thousand, a million, ….
pub fn si(value: f64) -> String {
    let (value, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, " G"),
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e3 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    format!("{}{unit}", plain(value))
}

/// A tick as a bare number, without needless digits.
pub fn plain(value: f64) -> String {
    let text = format!("{value:.9}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}

const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

impl Chart {
    /// The chart as an SVG document.
    ///
    /// # Errors
    /// When there is nothing to draw, or drawing fails.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let values = |pick: fn(&(f64, f64)) -> f64| {
            self.lines.iter().flat_map(|line| &line.points).map(pick).collect::<Vec<_>>()
        };
        let x = Coordinates::over(&values(|point| point.0), &self.x)
            .ok_or("an empty chart")?
            .off_the_axis();
        let marks = self.lines.iter().flat_map(|line| &line.marks);
        let mut heights = values(|point| point.1);
        // The lower end of a bar is no reason to make a logarithmic axis longer.
        heights.extend(marks.flat_map(|mark| mark.1.reach()).filter(|&value| value > 0.0));
        let y = Coordinates::over(&heights, &self.y).ok_or("an empty chart")?.off_the_axis();
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (800, 500)).into_drawing_area();
            root.fill(&WHITE)?;
            let mut chart = ChartBuilder::on(&root)
                .caption(&self.title, ("sans-serif", 19))
                .margin(14)
                .margin_right(30)
                .x_label_area_size(52)
                .y_label_area_size(84)
                .build_cartesian_2d(x.clone(), y.clone())?;
            chart
                .configure_mesh()
                .x_desc(&self.x.label)
                .y_desc(&self.y.label)
                .x_labels(x.ticks())
                .y_labels(y.ticks())
                .max_light_lines(1)
                .bold_line_style(RGBColor(218, 218, 218))
                .label_style(("sans-serif", 14))
                .axis_desc_style(("sans-serif", 15))
                .draw()?;
            for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
                draw_line(&mut chart, line, *colour, &y)?;
            }
            chart
                .configure_series_labels()
                .background_style(WHITE.mix(0.85))
                .border_style(RGBColor(200, 200, 200))
                .label_font(("sans-serif", 14))
                .position(self.legend_position(&x, &y))
                .margin(8)
                .draw()?;
            root.present()?;
        }
        Ok(svg)
    }

    /// The corner (or middle of a side) that has the fewest points in it, or where each has some the
    /// emptiest height on the left.
    fn legend_position(&self, x: &Coordinates, y: &Coordinates) -> SeriesLabelPosition {
        use SeriesLabelPosition as At;
        let places = [
            (At::UpperLeft, 0.0, 1.0),
            (At::UpperRight, 1.0, 1.0),
            (At::LowerLeft, 0.0, 0.0),
            (At::LowerRight, 1.0, 0.0),
            (At::MiddleLeft, 0.0, 0.5),
            (At::MiddleRight, 1.0, 0.5),
        ];
        let crowd = |right: f64, up: f64, width: f64, reach: f64| -> usize {
            let near = |line: &Line, at: f64| {
                // Along the line, not only at its points: the legend must not cover either.
                let step = at * (line.points.len().saturating_sub(1)) as f64;
                let (a, b) = (line.points[step as usize], line.points[step.ceil() as usize]);
                let part = step.fract();
                let px = x.share(a.0) * (1.0 - part) + x.share(b.0) * part;
                let py = y.share(a.1) * (1.0 - part) + y.share(b.1) * part;
                (px - right).abs() < width && (py - up).abs() < reach
            };
            let steps = (0..=40).map(|step| f64::from(step) / 40.0);
            let lines = self.lines.iter().filter(|line| !line.points.is_empty());
            lines.map(|line| steps.clone().filter(|&at| near(line, at)).count()).sum()
        };
        let rows = self.lines.len() as f64;
        let usual = places
            .into_iter()
            .map(|(place, right, up)| (crowd(right, up, 0.42, 0.06 + 0.06 * rows), place))
            .min_by_key(|&(crowd, _)| crowd);
        let half = 0.02 + 0.025 * rows;
        let longest = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let width = 0.09 + 0.011 * longest as f64;
        let heights = (15..=85).step_by(5).map(|percent| f64::from(percent) / 100.0);
        let other = heights
            .map(|up| {
                // The top left corner, in pixels of a plotting area of some 400.
                let top = 400.0 * (1.0 - up - half) + 8.0;
                (crowd(0.0, up, width, half), At::Coordinate(8, top.max(8.0) as i32))
            })
            .min_by_key(|&(crowd, _)| crowd);
        let best = match (usual, other) {
            (Some((at_a_side, place)), Some((between, other))) if at_a_side > 0 => {
                if between < at_a_side { Some(other) } else { Some(place) }
            }
            (usual, _) => usual.map(|(_, place)| place),
        };
        best.unwrap_or(At::UpperRight)
    }
}

type Area<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Coordinates, Coordinates>>;

fn draw_line(
    chart: &mut Area<'_, '_>,
    line: &Line,
    colour: RGBColor,
    y: &Coordinates,
) -> Result<(), Box<dyn Error>> {
    let place = |&(x, value): &(f64, f64)| (x, y.shown(value));
    let joined = line.points.iter().enumerate().filter(|(at, _)| !line.is_cross(*at));
    let joined: Vec<_> = joined.map(|(_, point)| point).collect();
    let series = if joined.is_empty() {
        chart.draw_series(
            line.points.iter().map(|point| Cross::new(place(point), 5, colour.stroke_width(2))),
        )?
    } else {
        chart.draw_series(LineSeries::new(
            joined.iter().copied().map(place),
            colour.stroke_width(2),
        ))?
    };
    series
        .label(&line.name)
        .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(3)));
    chart.draw_series(joined.iter().map(|point| {
        let style = if y.is_zero(point.1) { colour.stroke_width(1) } else { colour.filled() };
        Circle::new(place(point), 4, style)
    }))?;
    for &(index, mark) in &line.marks {
        let Some(&at) = line.points.get(index) else { continue };
        draw_mark(chart, place(&at), mark, colour, y)?;
    }
    Ok(())
}

fn draw_mark(
    chart: &mut Area<'_, '_>,
    at: (f64, f64),
    mark: Mark,
    colour: RGBColor,
    y: &Coordinates,
) -> Result<(), Box<dyn Error>> {
    let bar = |low: f64, high: f64, width: u32| {
        let ends = vec![(at.0, y.shown(low)), (at.0, y.shown(high))];
        PathElement::new(ends, colour.stroke_width(width))
    };
    let circles = |radii: &'static [i32], width: u32| {
        radii.iter().map(move |&radius| Circle::new(at, radius, colour.stroke_width(width)))
    };
    match mark {
        Mark::Thick => chart.draw_series(circles(&[9], 3)).map(drop)?,
        Mark::Double => chart.draw_series(circles(&[8, 12], 1)).map(drop)?,
        Mark::Cross => {}
        Mark::Bar(low, high) => chart.draw_series([bar(low, high, 1)]).map(drop)?,
        Mark::Box([least, low, high, most]) => {
            chart.draw_series([bar(least, most, 1), bar(low, high, 9)])?;
            // The point in the middle would be lost on the box.
            chart.draw_series([Circle::new(at, 3, WHITE.filled())])?;
        }
    }
    Ok(())
}

/// One axis' range and scale. Our own, so that linear and logarithmic axes are of one type.
#[derive(Clone)]
struct Coordinates {
    scale: Scale,
    /// Of the values, or of their decimal logarithms.
    range: Range<f64>,
    linear: RangedCoordf64,
    tick: fn(f64) -> String,
    /// The floor of a logarithmic axis stands for 0.
    zero_on_floor: bool,
    /// Some value would be drawn on the end of a linear axis.
    near_zero: bool,
}

impl Coordinates {
    fn over(values: &[f64], axis: &Axis) -> Option<Self> {
        // An axis has an end: a rate of something that took no time has no place on it.
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let largest = values.iter().copied().reduce(f64::max)?;
        let any_zero = values.iter().any(|&value| value <= 0.0);
        let range = match axis.scale {
            Scale::Linear | Scale::Counting => {
                0.0..if largest > 0.0 { largest * 1.08 } else { 1.0 }
            }
            Scale::Log => {
                let positive = values.iter().copied().filter(|&value| value > 0.0);
                let least = positive.reduce(f64::min).unwrap_or(1.0);
                let steps = log_steps(least.log10().floor() as i32, largest.max(least));
                let low = steps.iter().copied().rfind(|&step| step <= least).unwrap_or(least);
                let high = steps.last().copied().unwrap_or(10.0 * least);
                let low = if any_zero { low.log10().floor() - 1.0 } else { low.log10() };
                low..high.log10()
            }
        };
        let linear = RangedCoordf64::from(range.clone());
        Some(Self {
            scale: axis.scale,
            range,
            linear,
            tick: axis.tick,
            zero_on_floor: any_zero,
            near_zero: values.iter().any(|&value| value <= 0.01 * largest),
        })
    }

    /// Room before the lowest value, so that nothing lies on the other axis.
    fn off_the_axis(mut self) -> Self {
        match self.scale {
            Scale::Linear if self.near_zero => self.range.start = -0.04 * self.range.end,
            Scale::Log if !self.zero_on_floor => {
                self.range.start -= 0.04 * (self.range.end - self.range.start);
            }
            Scale::Linear | Scale::Counting | Scale::Log => {}
        }
        self.linear = RangedCoordf64::from(self.range.clone());
        self
    }

    /// Where 0 is drawn on a logarithmic axis: half a decade above its lower end, which is a decade below all
    /// other values.
    fn zero(&self) -> f64 {
        10_f64.powf(self.range.start + if self.zero_on_floor { 0.5 } else { 0.0 })
    }

    fn is_zero(&self, value: f64) -> bool {
        self.scale == Scale::Log && value <= 0.0
    }

    /// The value at whose height this one is drawn.
    fn shown(&self, value: f64) -> f64 {
        if self.scale == Scale::Log { value.max(self.zero()) } else { value.max(self.range.start) }
    }

    fn on_scale(&self, value: f64) -> f64 {
        if self.scale == Scale::Log {
            value.max(10_f64.powf(self.range.start)).log10()
        } else {
            value
        }
    }

    /// Where between the ends of the axis, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        (self.on_scale(self.shown(value)) - self.range.start) / (self.range.end - self.range.start)
    }

    fn ticks(&self) -> usize {
        if self.scale == Scale::Counting { self.range.end as usize + 1 } else { 9 }
    }
}

/// 1, 2 and 5 times each power of 10 from that of `decade` to the first that is not below `until`.
fn log_steps(decade: i32, until: f64) -> Vec<f64> {
    let all = (decade..).flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(decade)));
    let mut beyond = false;
    all.take_while(|&step| !std::mem::replace(&mut beyond, step >= until * 0.999_999)).collect()
}

impl Ranged for Coordinates {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.linear.map(&self.on_scale(*value), limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let points = self.linear.key_points(hint).into_iter();
                points.filter(|&value| self.range.start == 0.0 || value > -1e-9).collect()
            }
            Scale::Counting => (0..=self.range.end as u32).map(f64::from).collect(),
            Scale::Log => {
                let (low, high) = (self.range.start, self.range.end);
                let decades = high - low > 2.5;
                let lowest = if self.zero_on_floor { low + 1.0 } else { low };
                let steps = log_steps(lowest.floor() as i32, 10_f64.powf(high));
                // Compared as logarithms, with room for their rounding.
                let inside = |&step: &f64| (lowest - 1e-9..=high + 1e-9).contains(&step.log10());
                let whole = |&step: &f64| !decades || step.log10().fract().abs() < 1e-9;
                let zero = self.zero_on_floor.then(|| self.zero());
                zero.into_iter().chain(steps.into_iter().filter(inside).filter(whole)).collect()
            }
        }
    }

    fn range(&self) -> Range<f64> {
        let value = |at: f64| if self.scale == Scale::Log { 10_f64.powf(at) } else { at };
        value(self.range.start)..value(self.range.end)
    }
}

impl ValueFormatter<f64> for Coordinates {
    fn format_ext(&self, value: &f64) -> String {
        let zero = self.scale == Scale::Log && self.zero_on_floor && *value <= self.zero() * 1.001;
        (self.tick)(if zero { 0.0 } else { *value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale, points: Vec<(f64, f64)>) -> Chart {
        let axis = |scale| Axis { label: "quantity in units".into(), scale, tick: si };
        Chart {
            title: "A title".into(),
            x: axis(Scale::Linear),
            y: axis(scale),
            lines: vec![Line { name: "a line".into(), points, marks: vec![(0, Mark::Double)] }],
        }
    }

    #[test]
    fn draws_every_scale() {
        for scale in [Scale::Linear, Scale::Counting, Scale::Log] {
            let svg = chart(scale, vec![(1e7, 0.0), (2e7, 3.0), (3e7, 20.0)]).svg().unwrap();
            for text in ["A title", "a line", "quantity in units", "20 M"] {
                assert!(svg.contains(text), "{scale:?} lacks {text}");
            }
        }
        assert!(chart(Scale::Log, vec![(1.0, 0.0)]).svg().is_ok());
        assert!(chart(Scale::Linear, vec![]).svg().is_err());
        assert!(chart(Scale::Log, vec![(1.0, f64::INFINITY), (2.0, 5.0)]).svg().is_ok());
    }

    /// Nothing is drawn on the axis itself, and marks stay inside.
    #[test]
    fn zeros_and_marks_have_room() {
        let axis = |scale| Axis { label: "quantity".into(), scale, tick: si };
        for (scale, least) in [(Scale::Linear, 0.0), (Scale::Log, 0.0), (Scale::Log, 1.0)] {
            let values = [least, 3.0, 40.0];
            let y = Coordinates::over(&values, &axis(scale)).unwrap().off_the_axis();
            assert!(values.iter().all(|&value| (0.02..0.98).contains(&y.share(y.shown(value)))));
            assert!(y.share(y.shown(least)) < y.share(3.0));
        }
        let mut chart = chart(Scale::Linear, vec![(1.0, 2.0), (2.0, 3.0)]);
        chart.lines[0].marks =
            vec![(0, Mark::Bar(1.0, 90.0)), (1, Mark::Box([1.0, 2.0, 4.0, 5.0]))];
        chart.lines.push(Line::crosses("the paper", vec![(1.5, 7.0)]));
        let svg = chart.svg().unwrap();
        assert!(svg.contains("the paper") && svg.contains("90"), "the axis reaches to the bar");
    }

    #[test]
    fn logarithmic_steps_reach_just_beyond() {
        assert_eq!(log_steps(0, 3.0), [1.0, 2.0, 5.0]);
        assert_eq!(log_steps(0, 5.0), [1.0, 2.0, 5.0]);
        assert_eq!(log_steps(1, 99.0), [10.0, 20.0, 50.0, 100.0]);
    }

    #[test]
    fn ticks_are_short() {
        let ticks = [0.0, 15e6, 2.5e3, 1e9].map(si);
        assert_eq!(ticks, ["0", "15 M", "2.5 k", "1 G"]);
        assert_eq!([0.001, 1.0, 100.0].map(plain), ["0.001", "1", "100"]);
    }
}
