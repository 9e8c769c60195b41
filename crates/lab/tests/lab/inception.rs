//! Inception: what is said of wrong weights. Its features: real_data/inception.rs.

use minvel_lab::fid::Inception;
use minvel_testing::Scratch;

#[test]
fn files_that_are_not_its_weights_are_refused_by_name() {
    let scratch = Scratch::new("inception");
    let path = scratch.path("weights.safetensors");
    std::fs::write(&path, b"nothing").unwrap();
    let said = Inception::read(&path).unwrap_err().to_string();
    assert!(said.contains("weights.safetensors") && said.contains("safetensors file"), "{said}");
    // a whole file with one layer of the wrong shape
    let header = br#"{"conv.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat();
    std::fs::write(&path, bytes).unwrap();
    let said = Inception::read(&path).unwrap_err().to_string();
    assert!(said.contains("`conv.weight` has shape [1]; Inception's is [32, 3, 3, 3]"), "{said}");
}
