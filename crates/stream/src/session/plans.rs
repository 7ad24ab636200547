//! What each structure would cost for the same terms: what `lately plan` shows.

use super::{DedupSpec, Span, SpecError};
use crate::quantity;
use lately::{Plan, Structure, WhenFull, Window};
use serde_json::{Value, json};
use std::fmt;
use std::num::NonZeroU64;

/// What one structure would cost.
///
/// # Example
/// ```
/// use lately_stream::session::DedupSpec;
/// use std::time::Duration;
/// let plans = DedupSpec::within(Duration::from_secs(10)).plans();
/// let chosen: Vec<_> = plans.iter().filter(|row| row.chosen).collect();
/// assert_eq!(chosen.len(), 1);
/// assert_eq!(chosen[0].to_json()["structure"], "aged-table");
/// ```
#[derive(Clone, Debug)]
pub struct PlanRow {
    /// The structure.
    pub structure: Structure,
    /// Its plan, or why there is none.
    pub plan: Result<Plan, SpecError>,
    /// It is the one that is taken when nobody names one.
    pub chosen: bool,
}

impl DedupSpec {
    /// A plan for each structure that keeps windows of this kind; for one alone, where one is named.
    pub fn plans(&self) -> Vec<PlanRow> {
        let structures: Vec<Structure> = match self.structure {
            Some(structure) => vec![structure],
            None => Structure::ALL.iter().copied().filter(|other| self.kept_by(*other)).collect(),
        };
        // With a memory these are tables that use all of it, and a session starts with a small one.
        let chosen = self.roomiest_plan().ok().filter(|_| self.memory.is_none());
        let chosen = chosen.map(|plan| plan.structure());
        let row = |structure| PlanRow {
            structure,
            plan: Self { structure: Some(structure), ..self.clone() }.roomiest_plan(),
            chosen: chosen == Some(structure),
        };
        structures.into_iter().map(row).collect()
    }

    /// Can the structure keep windows of this kind?
    fn kept_by(&self, structure: Structure) -> bool {
        let one = NonZeroU64::MIN;
        structure.keeps(match self.span {
            Span::Within(_) => Window::Time { span: one, capacity: one },
            Span::Last(_) => Window::Count(one),
            Span::Ever => Window::Unbounded { capacity: one },
        })
    }

    /// The plan; with a memory but no rate named, the one with the lowest rate that fits.
    ///
    /// # Errors
    /// [`SpecError`] names the term that cannot be kept.
    pub fn roomiest_plan(&self) -> Result<Plan, SpecError> {
        let mut spec = self.clone();
        if spec.memory.is_some() {
            spec.when_full.get_or_insert(WhenFull::Refuse);
        }
        if spec.memory.is_none() || spec.fpr.is_some() {
            return spec.plan();
        }
        // A capacity that nobody named must not shrink to suit the rate.
        spec.expect = Some(spec.spec()?.window().capacity());
        let with_rate =
            |exponent: f64| Self { fpr: Some(10f64.powf(-exponent)), ..spec.clone() }.plan();
        // Exponents of the rate: 0.01 fits whatever fits at all, 15 is as low as a digest goes.
        let (mut fits, mut fails) = (0.01, 15.0);
        let mut best = with_rate(fits)?;
        for _ in 0..30 {
            let middle = f64::midpoint(fits, fails);
            match with_rate(middle) {
                Ok(plan) => (fits, best) = (middle, plan),
                Err(_) => fails = middle,
            }
        }
        Ok(best)
    }
}

impl PlanRow {
    /// As JSON, by the names of `lately plan --json`.
    pub fn to_json(&self) -> Value {
        let (structure, chosen) = (self.structure.name(), self.chosen);
        match &self.plan {
            Ok(plan) => {
                let (cell, hashes) = plan.cell_bits_and_hashes();
                json!({
                    "structure": structure,
                    "chosen": chosen,
                    "capacity": plan.capacity(),
                    "memory_bytes": plan.memory(),
                    "bits_per_key": plan.bits_per_key(),
                    "lower_bound_bits_per_key": plan.lower_bound(),
                    "times_lower_bound": plan.bits_per_key() / plan.lower_bound(),
                    "cell_bits": cell,
                    "hashes": hashes,
                    "slack": plan.slack(),
                    "lateness": plan.lateness(),
                    "fpr": plan.fpr(),
                    "wrongly_dropped_per_million": plan.fpr() * 1e6,
                })
            }
            Err(error) => json!({
                "structure": structure,
                "chosen": chosen,
                "error": error.to_string(),
            }),
        }
    }
}

/// A table of rows, as text: a heading and a line for each, without a line end after the last.
#[derive(Clone, Copy, Debug)]
pub struct PlanTable<'a> {
    /// What it shows.
    pub rows: &'a [PlanRow],
    /// What comes before the name of a term that cannot be kept: `--` where terms are flags.
    pub prefix: &'a str,
}

impl fmt::Display for PlanTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<24}{:>10}{:>11}{:>10}{:>8}{:>7}{:>6}{:>8}{:>10}{:>10}",
            "structure",
            "keys",
            "memory",
            "bits/key",
            "bound",
            "times",
            "cell",
            "hashes",
            "slack",
            "dropped"
        )?;
        let lateness = |row: &PlanRow| row.plan.as_ref().ok().map(Plan::lateness);
        let late = self.rows.iter().filter_map(lateness).max().unwrap_or(0);
        for row in self.rows {
            let (mark, structure) = (if row.chosen { "*" } else { " " }, row.structure);
            match &row.plan {
                Ok(plan) if plan.lateness() < late => {
                    write!(f, "\n{mark} {}  in order only", line(plan))?;
                }
                Ok(plan) => write!(f, "\n{mark} {}", line(plan))?,
                Err(why) => write!(f, "\n{mark} {structure:<22}{}{why}", self.prefix)?,
            }
        }
        Ok(())
    }
}

fn line(plan: &Plan) -> String {
    let (cell, hashes) = plan.cell_bits_and_hashes();
    let slack = match plan.window() {
        Window::Time { .. } => quantity::display_duration(rounded(plan.slack())),
        Window::Count(_) => quantity::display_count(plan.slack()),
        Window::Unbounded { .. } => "-".into(),
    };
    format!(
        "{:<22}{:>10}{:>11}{:>10.1}{:>8.1}{:>7.2}{:>6}{:>8}{:>10}{:>10}",
        plan.structure(),
        quantity::display_count(plan.capacity()),
        quantity::display_bytes(plan.memory()),
        plan.bits_per_key(),
        plan.lower_bound(),
        plan.bits_per_key() / plan.lower_bound(),
        cell,
        hashes,
        slack,
        dropped(plan.fpr() * 1e6),
    )
}

/// To four digits: 99.999999 ms is 100 ms to a reader.
fn rounded(n: u64) -> u64 {
    let unit = 10u64.pow(n.max(1).ilog10().saturating_sub(3));
    n.div_ceil(unit) * unit
}

fn dropped(records: f64) -> String {
    if records >= 0.01 { format!("{records:.2}") } else { format!("{records:.1e}") }
}
