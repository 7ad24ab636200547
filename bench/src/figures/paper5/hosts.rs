//! Figures 4 to 7: what hosts' filters lose, and how full they are. Checks are made of one source, plots show the city, and
//! the city with hubs where there is room.

use super::Source;
use super::claims::points;
use super::measure::{LOST, OCCUPANCY, WINDOWS};
use super::page::{axis, chart};
use crate::figures::report::{self, Check, Section, ends, extremes, heights};
use crate::figures::sheet::{Row, Sheet};
use crate::plot::{Chart, Line, Mark, Scale, plain, si};

/// Figures 4 and 5.
pub fn slots(sheet: &Sheet, judged: Source) -> Section {
    let of = |source: Source, n: &str, p: &str| {
        sheet.of(&[("trace", source.name()), ("n", n), ("p", p)])
    };
    let hours = |rows: &[Row<'_>], column: &str| -> Vec<(f64, f64)> {
        rows.iter().map(|row| (row.number("start") - 960.0, row.number(column))).collect()
    };
    let city = of(Source::City, "50", "0.1");
    let hour = || axis("minutes after 4 pm", Scale::Linear, plain);
    let figure_4 = Chart {
        title: "Figure 4: readings and distinct elements in ten minutes, city".into(),
        x: hour(),
        y: axis("in ten minutes", Scale::Log, si),
        lines: vec![
            report::line("readings", hours(&city, "readings")),
            report::line("distinct elements", hours(&city, "elements")),
            Line::crosses(
                "the paper: least and most",
                vec![(90.0, 30_000.0), (90.0, 42_000.0), (90.0, 4_400.0), (90.0, 7_200.0)],
            ),
        ],
    };
    let rates = ["0.1", "0.05", "0.01", "0.001"];
    let figure_5 = |part: &str, n: &str, most: f64| Chart {
        title: format!("Figure 5{part}: elements lost in ten minutes, n = {n}, city"),
        x: hour(),
        y: axis("elements lost", Scale::Linear, plain),
        lines: rates
            .map(|p| {
                let lost = hours(&of(Source::City, n, p), "lost");
                let events = heights(&lost);
                report::bars(report::line(format!("p = {p}"), lost), &events)
            })
            .into_iter()
            .chain([Line::crosses("the paper, p = 0.1: the most", vec![(140.0, most)])])
            .collect(),
    };
    let rows = of(judged, "50", "0.1");
    let between = |column: &str| extremes(&heights(&hours(&rows, column)));
    let (readings, elements) = (between("readings"), between("elements"));
    let most = |n: &str| extremes(&heights(&hours(&of(judged, n, "0.1"), "lost"))).1;
    let share = sum(&rows, "elements") / sum(&rows, "readings");
    let by_rate = |n: &str| rates.map(|p| sum(&of(judged, n, p), "lost"));
    let (fifty, hundred) = (by_rate("50"), by_rate("100"));
    let numbers = measured(sheet).flat_map(|trace| {
        ["50", "100"].into_iter().flat_map(move |n| {
            rates.into_iter().map(move |p| {
                let rows = sheet.of(&[("trace", trace), ("n", n), ("p", p)]);
                let cell = |column| format!("{}", sum(&rows, column));
                let lost = cell("lost");
                vec![trace.into(), n.into(), p.into(), cell("readings"), cell("elements"), lost]
            })
        })
    });
    Section {
        title: "Figures 4 and 5: from 4 to 7 pm, filters reset every ten minutes".into(),
        plots: vec![
            ("figure-4.svg".into(), figure_4),
            ("figure-5a.svg".into(), figure_5("a", "50", 79.0)),
            ("figure-5b.svg".into(), figure_5("b", "100", 22.0)),
        ],
        claim: "In ten minutes there are 30 to 42 thousand readings of 4.4 to 7.2 thousand distinct elements. All readings \
                are added to the hosts' filters (section 4.1). With n = 50 and p = 0.1, up to 79 elements are lost in \
                a slot (22 with n = 100); with p = 0.001, 18 in all slots together, and none with n = 100."
            .into(),
        checks: vec![
            Check::new(
                readings.0 >= 27_000.0 && readings.1 <= 46_000.0,
                format!("{} to {} readings per slot (the paper: 30 to 42 thousand)", readings.0, readings.1),
            ),
            Check::unless_fitted(
                true,
                (0.15..=0.17).contains(&share),
                format!(
                    "of {} to {} distinct elements (the paper: 4.4 to 7.2 thousand), {:.1} % overall (15 to 17 %)",
                    elements.0,
                    elements.1,
                    100.0 * share
                ),
            ),
            Check::new(
                within(most("50"), 79.0) && within(most("100"), 22.0),
                format!(
                    "at p = 0.1 at most {} are lost per slot with n = 50 (the paper: 79), {} with n = 100 (22)",
                    most("50"),
                    most("100")
                ),
            ),
            Check::new(
                fifty.windows(2).all(|pair| pair[0] >= pair[1]) && fifty[0] > fifty[3],
                format!("with n = 50, losses fall with p: {} for p = {}", counts(&fifty), rates.join(", ")),
            ),
            Check::new(
                hundred[0] < fifty[0],
                format!("with n = 100, fewer: {}", counts(&hundred)),
            ),
            Check::new(hundred[3] == 0.0, "none with n = 100 and p = 0.001"),
        ],
        why: WHY_SLOTS.into(),
        numbers: report::table(&["trace", "n", "p", "readings", "elements", "lost"], numbers),
    }
}

const WHY_SLOTS: &str = "The shares were fitted over the three hours, not for each slot: the synthetic days begin around half past \
     seven and last ten hours, so the city empties during these three hours, which the paper's figure does not show. Losses require many \
     elements in one square kilometre at a time, and the city's people are spread more evenly than the paper's: its fullest \
     filter has fewer bits set (Figure 7). The crowd has fewer readings than one of the paper's slots, and still loses some.";

/// Figure 6.
pub fn lost(sheet: &Sheet, judged: Source) -> Section {
    let points = |source: Source, n: &str, p: &str, column: &str| {
        points(sheet, source, column, &[("n", n), ("p", p)])
    };
    let drawn = [
        (Source::City, "50", "0.1"),
        (Source::Hubs, "50", "0.1"),
        (Source::City, "50", "0.01"),
        (Source::Hubs, "50", "0.01"),
        (Source::Hubs, "100", "0.001"),
    ];
    let with_bars = |(source, n, p): (Source, &str, &str)| {
        let line = points(source, n, p, "lost_per_mille");
        let events = heights(&points(source, n, p, "elements_lost"));
        let name = format!("{}, n = {n}, p = {p}", source.name());
        (!line.is_empty()).then(|| report::bars(report::line(name, line), &events))
    };
    let mut lines: Vec<Line> = drawn.into_iter().filter_map(with_bars).collect();
    let line = |n: &str, p: &str| points(judged, n, p, "lost_per_mille");
    let known = vec![(1.0, 1.1), (15.0, 7.6), (60.0, 17.0), (30.0, 0.006), (60.0, 0.008)];
    lines.push(Line::crosses("the paper: n = 50, p = 0.1; n = 100, p = 0.001", known));
    let at = |n: &str, p: &str, window: f64| {
        let points = line(n, p);
        points.iter().find(|point| point.0 == window).map_or(f64::NAN, |point| point.1)
    };
    let worst = heights(&line("50", "0.1"));
    let (half, hour) = (at("100", "0.001", 30.0), at("100", "0.001", 60.0));
    let mut checks: Vec<Check> = [(1.0, 1.1), (15.0, 7.6), (60.0, 17.0)]
        .map(|(window, paper)| {
            let ours = at("50", "0.1", window);
            let text = format!("n = 50, p = 0.1, {window} min: {ours} ‰ (the paper: {paper})");
            let fitted = judged == Source::Hubs && window < 60.0;
            Check::unless_fitted(fitted, within(ours, paper), text)
        })
        .into();
    checks.extend([
        Check::new(
            worst.windows(2).all(|pair| pair[0] < pair[1]),
            "the share grows with the window: fuller filters have more false positives",
        ),
        Check::new(
            at("50", "0.01", 60.0) < 5.0,
            format!("n = 50, p = 0.01, 60 min: {} ‰, below 5", at("50", "0.01", 60.0)),
        ),
        Check::new(
            half <= 0.02 && hour <= 0.02,
            format!("n = 100, p = 0.001: {half} ‰ at 30 minutes (the paper: 0.006), {hour} at 60 (0.008), almost none"),
        ),
    ]);
    let numbers = measured(sheet).flat_map(|trace| {
        LOST.into_iter().map(move |(n, p)| {
            let (n, p) = (n.to_string(), p.to_string());
            let rows = sheet.of(&[("trace", trace), ("n", &n), ("p", &p)]);
            let of = |window: f64| rows.iter().find(|row| row.number("window") == window);
            let cell = |window| of(window).map_or("", |row| row.text("lost_per_mille")).to_owned();
            let expected = |row: &Row<'_>| {
                format!("{} / {}", row.text("elements_lost"), row.text("expected_lost"))
            };
            let last = of(60.0).map(expected).unwrap_or_default();
            let head = [trace.to_owned(), n, p];
            head.into_iter().chain([1.0, 15.0, 30.0, 60.0].map(cell)).chain([last]).collect()
        })
    });
    Section {
        title: "Figure 6: elements lost over the day".into(),
        plots: vec![(
            "figure-6.svg".into(),
            chart("Figure 6: elements lost, generated cities".into(), axis("elements lost in ‰", Scale::Log, plain), lines),
        )],
        claim: "With n = 50 and p = 0.1: 1.1 ‰ at one minute, 7.6 at 15, 17 at 60. With n = 50 and p = 0.01 below 5 ‰. \
                With n = 100 and p = 0.001: 0.006 ‰ at 30 minutes, 0.008 at 60."
            .into(),
        checks,
        why: WHY_LOST.into(),
        numbers: report::table(
            &["trace", "n", "p", "1 min ‰", "15 min ‰", "30 min ‰", "60 min ‰", "lost / expected, 60 min"],
            numbers,
        ),
    }
}

const WHY_LOST: &str = "At one hour the city loses as much as in the paper, and less with shorter windows. The paper's 1.1 ‰ at \
     one minute is the rate of a filter with nine elements (3 hashes, 239 bits): its readings came from square kilometres \
     with nine others in that minute. Nine tenths of the city's filters have three or fewer (Figure 7), as its people move \
     independently; the people of the crowd are close together somewhere, and lose 0.2 ‰ in a trace forty times smaller. The last column shows, at 60 minutes, how many elements were lost and how many the hosts themselves expect to \
     have lost, judging only by the fill of their filters: the two agree, so the difference is in the fill, not in the filters.";

/// Figure 7.
pub fn occupancy(sheet: &Sheet, judged: Source) -> Section {
    let plot = |source: Source, p: &str, part: &str| {
        let of = |column: &str| points(sheet, source, column, &[("p", p)]);
        // Boxes from quartile to quartile, whiskers from the first decile to the ninth, as in the paper.
        let bounds = ["first", "quarter", "three_quarters", "ninth"].map(of);
        let mut boxes = report::line("deciles, quartiles, median", of("median"));
        for at in 0..boxes.points.len() {
            let bound = |line: &Vec<(f64, f64)>| line.get(at).map_or(f64::NAN, |point| point.1);
            let bounds = bounds.each_ref().map(bound);
            // Some windows were measured before quartiles were noted.
            let whole = bounds.iter().all(|bound| bound.is_finite());
            let whiskers = Mark::Bar(bounds[0], bounds[3]);
            boxes.marks.push((at, if whole { Mark::Box(bounds) } else { whiskers }));
        }
        let fullest = Line::crosses("fullest", of("most"));
        let (highest, one) = if p == "0.1" { (40.0, Some(174.0)) } else { (132.0, None) };
        let paper = WINDOWS.map(|window| (window as f64, highest)).to_vec();
        let mut lines =
            vec![boxes, fullest, report::line("the paper: no ninth decile above", paper)];
        lines.extend(one.map(|bits| Line::crosses("the paper: the fullest", vec![(15.0, bits)])));
        let title = format!(
            "Figure 7{part}: bits set at the end of a window, n = 50, p = {p}, {}",
            source.name()
        );
        let file = match source {
            Source::Hubs => format!("figure-7{part}-hubs.svg"),
            _ => format!("figure-7{part}.svg"),
        };
        (file, chart(title, axis("bits set", Scale::Log, plain), lines))
    };
    let ninth = |p| points(sheet, judged, "ninth", &[("p", p)]);
    let deciles = ninth("0.1");
    let (coarse, fine) = (heights(&deciles), heights(&ninth("0.001")));
    let at = |line: &[(f64, f64)], window: f64| {
        line.iter().find(|point| point.0 == window).map_or(f64::NAN, |point| point.1)
    };
    let fullest = at(&points(sheet, judged, "most", &[("p", "0.1")]), 15.0);
    let grows = |line: &[f64]| ends(line).0 < ends(line).1;
    let apart =
        coarse.iter().zip(&fine).map(|(coarse, fine)| (coarse / 239.0 - fine / 718.0).abs());
    let apart = apart.fold(0.0, f64::max);
    let columns = OCCUPANCY;
    let rows = sheet.rows().map(|row| columns.map(|column| row.text(column).to_owned()).to_vec());
    Section {
        title: "Figure 7: how full filters are".into(),
        plots: [Source::City, Source::Hubs]
            .into_iter()
            .flat_map(|source| [(source, "0.1", "a"), (source, "0.001", "b")])
            .filter(|(source, p, _)| !points(sheet, *source, "median", &[("p", p)]).is_empty())
            .map(|(source, p, part)| plot(source, p, part))
            .collect(),
        claim: "With n = 50, nine tenths of the filters have at most 40 of 239 bits set (p = 0.1), or 132 of 718 \
                (p = 0.001), which are similar shares; few are much fuller. The fewest bits are set at one minute; longer windows \
                hardly differ."
            .into(),
        checks: vec![
            Check::new(
                coarse.iter().all(|&bits| bits <= 40.0),
                format!("p = 0.1: ninth deciles {} of 239 bits, none above 40", counts(&coarse)),
            ),
            Check::new(
                fine.iter().all(|&bits| bits <= 132.0),
                format!("p = 0.001: ninth deciles {} of 718 bits, none above 132", counts(&fine)),
            ),
            Check::new(grows(&coarse) && grows(&fine), "fewest at one minute"),
            Check::unless_fitted(
                judged == Source::Hubs,
                within(fullest, 174.0),
                format!("the fullest at 15 minutes has {fullest} of 239 bits set (the paper: 174)"),
            ),
            Check::new(
                apart < 0.05,
                format!("the share of set bits hardly depends on p: ninth deciles differ by at most {:.1} points", 100.0 * apart),
            ),
            Check::new(
                ends(&coarse).1 <= 1.5 * at(&deciles, 15.0),
                "and hardly on the window beyond 15 minutes",
            ),
        ],
        why: WHY_OCCUPANCY.into(),
        numbers: report::table(&columns, rows),
    }
}

const WHY_OCCUPANCY: &str = "Filters without any bit set are omitted, as in the paper. *over* counts filters more than half full, \
     whose false positive rate exceeds the one they were designed for. The city's filters are fuller than the paper's \
     overall, but the fullest are not as full: the same elements are spread more evenly over square kilometres. The paper's \
     whiskers no longer move beyond some window, which suggests that most of its cells are places where people \
     stay; the city's cells also fill with people passing through.";

/// The sum of a column over rows.
fn sum(rows: &[Row<'_>], column: &str) -> f64 {
    rows.iter().map(|row| row.number(column)).sum()
}

/// The names of those that are in a table.
fn measured(sheet: &Sheet) -> impl Iterator<Item = &'static str> {
    let is_there = |name: &&str| !sheet.of(&[("trace", *name)]).is_empty();
    Source::ALL.map(Source::name).into_iter().filter(is_there)
}

/// Is it between half of the paper's number and twice that?
fn within(ours: f64, paper: f64) -> bool {
    (paper / 2.0..=paper * 2.0).contains(&ours)
}

fn counts(values: &[f64]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
