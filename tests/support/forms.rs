//! Plans of a range window in both forms: for few keys one flat table, or levels, which such windows have if their snapshot is
//! from before there were flat tables.
// Each test program uses a part.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "tests")]

use lately::PlanError;
use lately::range::{RangePlan, RangeSpec};

pub type Form = fn(RangeSpec) -> Result<RangePlan, PlanError>;

/// As planned, which is flat for few keys; and in levels.
pub const FORMS: [Form; 2] = [RangeSpec::plan, |spec| spec.plan()?.in_levels()];

/// The plan in each form, or the one plan where it is in levels anyway.
pub fn in_each_form(spec: RangeSpec) -> Vec<RangePlan> {
    let mut plans = FORMS.map(|form| form(spec).unwrap()).to_vec();
    plans.dedup();
    plans
}
