//! The results as a page.

use super::job::{LATELY, Output};
use super::{Comparison, Outcome};
use crate::machine;
use std::fmt::Write;

/// The page. Times are given against the first program of `lately` in each table, if there is one.
pub fn page(comparisons: &[Comparison], runs: usize) -> String {
    let mut page = format!(
        "# Whole programs\n\n\
         <!-- Written by `lately-bench programs`. -->\n\n\
         Every program reads the same file, already cached in memory, from standard input; output is \
         discarded. There are {runs} timed runs of each, interleaved, preceded by one whose output is counted. \
         Time is wall-clock time, the median and the extremes; memory is the highest peak resident size of all \
         runs. “Missing” are distinct records that a program did not write: false positives. \
         `LC_ALL=C`. Measured on {}.\n",
        machine::processor()
    );
    for comparison in comparisons {
        page += &table(comparison);
    }
    page
}

fn table(comparison: &Comparison) -> String {
    let Comparison { job, input, results, missing } = comparison;
    let mut text = format!(
        "\n## {}\n\n{}: {} records, {} distinct, {} bytes.\n\n\
         | program | time | fastest to slowest | time ÷ lately's | peak memory | lines out | right |\n\
         |---|---:|---:|---:|---:|---:|---|\n",
        job.name, job.about, input.records, input.distinct, input.bytes
    );
    let ours = results.iter().find(|outcome| outcome.program.executable == LATELY);
    for outcome in results {
        let (least, most) = outcome.spread();
        let ratio = ours
            .map_or("–".to_owned(), |ours| format!("{:.2}", outcome.median() / ours.median()));
        let _ = writeln!(
            text,
            "| `{}` | {:.2} s | {least:.2}–{most:.2} s | {ratio} | {:.1} MB | {} | {} |",
            outcome.program.name,
            outcome.median(),
            outcome.peak() as f64 / 1e6,
            outcome.lines,
            judgement(comparison, outcome),
        );
    }
    if !missing.is_empty() {
        let _ = write!(text, "\nNot installed, so not run: {}.\n", missing.join(", "));
    }
    text
}

fn judgement(comparison: &Comparison, outcome: &Outcome) -> String {
    let Comparison { job, input, .. } = comparison;
    let (_, most) = job.expected(outcome.program.output, *input);
    if !outcome.is_right(job, *input) {
        return format!("**no**: {most} expected");
    }
    match (outcome.program.output, most - outcome.lines) {
        (Output::Records | Output::One, _) => "removes nothing".to_owned(),
        (_, 0) => "yes".to_owned(),
        (_, missing) => format!("yes, {missing} missing"),
    }
}

/// The runs of `lately` whose output is wrong.
pub fn failures(comparisons: &[Comparison]) -> Vec<String> {
    let mut failures = Vec::new();
    for Comparison { job, input, results, .. } in comparisons {
        for outcome in results {
            let ours = outcome.program.executable == LATELY;
            if ours && !outcome.is_right(job, *input) {
                failures.push(format!("{} on {}", outcome.program.name, job.name));
            }
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::job::Job;
    use crate::programs::process::Measurement;
    use crate::workload::Summary;

    fn comparison(lines: u64) -> Comparison {
        let job = Job::all(1.0).remove(0);
        let runs = [3.0, 1.0, 2.0].map(|seconds| Measurement { seconds, peak: 5_000_000 });
        let outcome = |at: usize, lines| Outcome {
            program: job.programs[at].clone(),
            lines,
            runs: runs.to_vec(),
        };
        Comparison {
            results: vec![outcome(0, lines), outcome(2, 50)],
            input: Summary { records: 100, distinct: 50, bytes: 2_500 },
            missing: vec!["huniq".into()],
            job,
        }
    }

    #[test]
    fn a_row_says_time_memory_and_truth() {
        let text = page(&[comparison(49)], 3);
        let row = "| `lately dedup` | 2.00 s | 1.00–3.00 s | 1.00 | 5.0 MB | 49 | yes, 1 missing |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("so not run: huniq."));
        assert!(failures(&[comparison(49)]).is_empty());
    }

    #[test]
    fn wrong_output_is_told() {
        for lines in [40, 51] {
            assert!(page(&[comparison(lines)], 3).contains("**no**: 50 expected"));
            assert_eq!(failures(&[comparison(lines)]), ["lately dedup on lines.txt"]);
        }
    }
}
