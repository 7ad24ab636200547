//! All of GeoConvert's answers in `../shared/data/mgrs_vectors`.

use lately_edge::cell::{Position, SmallCell};
use std::path::PathBuf;

#[test]
fn agrees_with_geoconvert() {
    let shared = std::env::var("LATELY_SHARED").map_or_else(
        |_| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = shared.join("data/mgrs_vectors");
    if !folder.exists() {
        eprintln!("skipped: {} is not here", folder.display());
        return;
    }
    let mut compared = 0;
    for file in ["special", "band_edges", "random20k"] {
        let text = std::fs::read_to_string(folder.join(format!("{file}_geoconvert.tsv"))).unwrap();
        for line in text.lines() {
            let (position, name) = line.split_once('\t').unwrap();
            let (latitude, longitude) = position.split_once(' ').unwrap();
            let position = Position {
                latitude: latitude.parse().unwrap(),
                longitude: longitude.parse().unwrap(),
            };
            // Metres are cut off, not rounded, so hundreds of metres are too.
            let (prefix, digits) = name.split_at(name.len() - 10);
            let small = format!("{prefix}{}{}", &digits[..3], &digits[5..8]);
            assert_eq!(SmallCell::at(position).unwrap().to_string(), small, "{line}");
            compared += 1;
        }
    }
    assert_eq!(compared, 27_962);
}
