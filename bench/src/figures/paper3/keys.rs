//! Keys to insert and keys to ask for in vain.

use crate::workload::traces;
use lately::{Digest, Digester};
use std::path::Path;

/// Keys of the paper's data set.
pub const KEYS: usize = 400_468;

/// Distinct keys, hashed.
#[derive(Clone, Debug)]
pub struct Keys {
    /// In order: those of the log first, then generated ones.
    pub present: Vec<Digest>,
    /// None of the others.
    pub absent: Vec<Digest>,
    /// How many are of the log.
    pub real: usize,
    /// Why none is; empty when some are.
    pub missing: String,
}

impl Keys {
    /// This many keys, and this many absent ones.
    pub fn load(data: &Path, keys: usize, absent: usize) -> Self {
        let (queries, missing) = match traces::dns_queries(data) {
            Ok(queries) => (queries, String::new()),
            Err(error) => (Vec::new(), error.to_string().replace(',', ";")),
        };
        let digester = Digester::new(2018);
        let real = queries.len().min(keys);
        let logged = queries.iter().take(real).map(|query| digester.digest(query.as_bytes()));
        let generated = |kind: &str, number: usize| {
            digester.digest_fields([kind.as_bytes(), number.to_string().as_bytes()])
        };
        let more = (0..keys - real).map(|number| generated("generated", number));
        let present = logged.chain(more).collect();
        let absent = (0..absent).map(|number| generated("absent", number)).collect();
        Self { present, absent, real, missing }
    }
}
