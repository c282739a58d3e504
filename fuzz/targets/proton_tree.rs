//! A profile of Triton's Proton: any bytes, or brackets and fields of nodes in any order.
#![no_main]

use std::path::Path;

use gputrail_convert::import::ProtonTree;
use libfuzzer_sys::fuzz_target;

/// Pieces of such files.
const PIECES: [&str; 12] = [
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"children\":[",
    "\"frame\":{\"name\":\"k\"}",
    "\"metrics\":{\"count\":2,\"time (ns)\":30,\"flops\":1e9}",
    "\"CUDA\":{\"0\":{\"arch\":\"90\"}}",
    "\"",
    "null",
];

fuzz_target!(|data: &[u8]| {
    let text = match data.split_first() {
        Some((0, rest)) => rest.to_vec(),
        _ => {
            let piece = |byte: &u8| PIECES[usize::from(*byte) % PIECES.len()].as_bytes();
            data.iter().map(piece).collect::<Vec<_>>().concat()
        }
    };
    let tree = ProtonTree::parse(Path::new("tree.hatchet"), &text);
    for finding in &tree.findings {
        assert!(
            finding
                .offset
                .is_none_or(|offset| offset <= text.len() as u64)
        );
    }
    assert_eq!(tree.inclusive().len(), tree.nodes.len());
    for (place, node) in tree.nodes.iter().enumerate() {
        assert!(node.parent.is_none_or(|parent| parent < place));
        assert!(tree.stack(place).len() <= 512);
    }
});
