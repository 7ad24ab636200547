//! `lately epc`: a tag's identifier in all its spellings.

use crate::Failure;
use clap::Args;
use lately_stream::epc::Epc;
use std::io::{BufRead, Write, stdin, stdout};

/// Translate EPCs: hex, base64, Python bytes, tag URIs in; hex and URIs out
///
/// Prints, separated by tabs: the input, its spelling, hex, tag URI, pure identity URI. A `-` means
/// that the EPC has none.
#[derive(Args)]
#[command(after_help = "\
Example:
  lately epc 3074257BF7194E4000001A85
  3074257BF7194E4000001A85  hex  3074257BF7194E4000001A85  urn:epc:tag:sgtin-96:3.0614141.812345.6789  urn:epc:id:sgtin:0614141.812345.6789")]
pub struct Arguments {
    /// EPCs in any spelling; if none is given, read from standard input, one per line
    values: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut out = stdout().lock();
    let mut bad = 0;
    if arguments.values.is_empty() {
        for line in stdin().lock().split(b'\n') {
            bad += translate(&mut out, line?.trim_ascii())?;
        }
    } else {
        for value in &arguments.values {
            bad += translate(&mut out, value.as_bytes())?;
        }
    }
    match bad {
        0 => Ok(()),
        n => Err(Failure::Trouble(if n == 1 {
            "1 value is not an EPC".into()
        } else {
            format!("{n} values are not EPCs")
        })),
    }
}

/// Prints a line for one value, and returns how many (0 or 1) were not an EPC.
fn translate(out: &mut impl Write, value: &[u8]) -> Result<u32, Failure> {
    if value.is_empty() {
        return Ok(0);
    }
    let shown = String::from_utf8_lossy(value);
    match Epc::parse(value) {
        Ok((epc, spelling)) => {
            let or_dash = |uri: Result<String, _>| uri.unwrap_or_else(|_| "-".into());
            let (tag, id) = (or_dash(epc.to_tag_uri()), or_dash(epc.to_id_uri()));
            writeln!(out, "{shown}\t{spelling}\t{}\t{tag}\t{id}", epc.to_hex())?;
            Ok(0)
        }
        Err(error) => {
            eprintln!("lately: {shown}: {error}");
            Ok(1)
        }
    }
}
