//! State dicts of PyTorch: both forms are read, nothing is executed, and pytorch-fid's weights give Inception's features.

use minvel_engine::Options;
use minvel_lab::fid::torch;
use minvel_lab::fid::{FeatureMap, Inception};
use minvel_testing::Scratch;
use minvel_testing::state_dict::{Item, pickle, published, stream, zipped};

fn items() -> Vec<Item> {
    let values: Vec<f32> = (0..70_000).map(|i| i as f32 / 7.0).collect();
    vec![
        Item::new("layer.weight", &[2, 3], &[1.0, -2.0, 3.5, 4.0, f32::MIN_POSITIVE, 6.0]),
        Item::new("layer.bias", &[2], &[0.25, -0.5]),
        Item::counter("layer.num_batches_tracked", 12),
        Item::new("large", &[7, 10_000], &values),
    ]
}

/// The error of reading bytes.
fn refused(bytes: &[u8]) -> String {
    let scratch = Scratch::new("torch-refused");
    let path = scratch.file("weights.pth", bytes);
    let said = torch::read(&path).unwrap_err().to_string();
    assert!(said.contains("weights.pth"), "{said}");
    said
}

#[test]
fn both_forms_give_the_tensors() {
    let scratch = Scratch::new("torch");
    for bytes in [zipped(&items(), pickle(&items())), stream(&items(), pickle(&items()))] {
        let state = torch::read(&scratch.file("weights.pth", bytes)).unwrap();
        assert_eq!(state.keys().collect::<Vec<_>>(), ["large", "layer.bias", "layer.weight"], "counts are left out");
        assert_eq!(state["layer.weight"].shape, [2, 3]);
        assert_eq!(state["layer.weight"].values, [1.0, -2.0, 3.5, 4.0, f32::MIN_POSITIVE, 6.0]);
        assert_eq!(state["layer.bias"].values, [0.25, -0.5]);
        assert_eq!((state["large"].values.len(), state["large"].values[69_999]), (70_000, 69_999.0 / 7.0));
    }
}

#[test]
fn pickles_that_want_more_than_tensors_are_refused_by_name() {
    let calls = |code: &[u8]| [b"\x80\x02", code, b"."].concat();
    for (code, expected) in [
        (&b"cos\nsystem\nX\x04\x00\x00\x00true\x85R"[..], "os.system"),
        (b"cbuiltins\neval\nX\x01\x00\x00\x001\x85R", "builtins.eval"),
        (b"ctorch\nload\nX\x01\x00\x00\x001\x85R", "torch.load"),
        // protocol 4 and the other ways to name a function
        (b"\x8c\x02os\x8c\x06system\x93", "0x8c"),
        (b"(ios\nsystem\n", "0x69"),
        (b"ccollections\nOrderedDict\nK\x01\x85R", "in a way that a state dict does not"),
        (b"K\x01", "holds no dictionary"),
        (b"}K\x01K\x02s", "not text"),
        (b"}X\x01\x00\x00\x00aK\x02s", "`a` is not a tensor"),
        (b"t", "did not begin"),
        (b"(R", "stack is empty"),
        (b"h\x07", "did not store"),
        (b"X\xff\xff\xff\x7fa", "truncated"),
        (b"", "stack is empty"),
    ] {
        let said = refused(&zipped(&[], calls(code)));
        assert!(said.contains(expected), "{said} lacks {expected}");
    }
    assert!(refused(b"words").contains("instruction"));
    assert!(refused(b"").contains("truncated"));
    assert!(refused(b"PK\x03\x04 and no more").contains("not a readable PyTorch state dict"));
}

#[test]
fn tensors_that_do_not_fit_their_storages_are_refused() {
    // shape [2, 3] becomes [2, 4], and its strides with it
    let whole = pickle(&items());
    let replaced = |from: &[u8], to: &[u8]| {
        let at = whole.windows(from.len()).position(|w| w == from).unwrap();
        [&whole[..at], to, &whole[at + from.len()..]].concat()
    };
    let shape = b"(K\x02K\x03t(K\x03K\x01t";
    for (pickle, expected) in [
        (replaced(shape, b"(K\x02K\x04t(K\x04K\x01t"), "`layer.weight` reaches beyond its storage"),
        (replaced(shape, b"(K\x02K\x03t(K\x01K\x02t"), "row-major"),
        (replaced(shape, b"(K\x02K\x03t(K\x01t"), "row-major"),
        (replaced(b"tQK\x00", b"tQK\x01"), "reaches beyond its storage"),
        (replaced(b"tQK\x00", b"tQJ\xff\xff\xff\xff"), "negative offset"),
    ] {
        for bytes in [zipped(&items(), pickle.clone()), stream(&items(), pickle.clone())] {
            let said = refused(&bytes);
            assert!(said.contains(expected), "{said} lacks {expected}");
        }
    }
    let huge = b"(J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7ft(K\x01K\x01K\x01t";
    let said = refused(&zipped(&items(), replaced(shape, huge)));
    assert!(said.contains("row-major") || said.contains("too large"), "{said}");
    // cut off at any place
    let whole = stream(&items()[..3], pickle(&items()[..3]));
    (0..whole.len()).step_by(7).for_each(|length| drop(refused(&whole[..length])));
}

#[test]
fn published_weights_of_inception_give_the_same_features() {
    let original = match Inception::home() {
        Ok(path) => path,
        Err(why) => return println!("SKIPPED: {why}"),
    };
    let scratch = Scratch::new("torch-inception");
    let image: Vec<f32> = (0..32 * 32 * 3).map(|i| (i * 7 % 256) as f32 / 255.0).collect();
    let features = |path: &std::path::Path| {
        Inception::read(path).unwrap().of([32, 32]).apply(&image, 16, 0, 0, &Options::default())
    };
    let items = published(&original, 2.0);
    let expected = features(&original);
    for bytes in [zipped(&items, pickle(&items)), stream(&items, pickle(&items))] {
        let path = scratch.file("weights.pth", bytes);
        let made = scratch.path("made.safetensors");
        Inception::convert(&path, &made).unwrap();
        // halving and doubling are exact but for the smallest numbers
        assert!(features(&made) == expected, "the features differ");
    }
    // a layer that is missing, and one of another shape
    let changed = |change: &dyn Fn(&mut Item)| {
        let mut items = published(&original, 1.0);
        items.iter_mut().filter(|item| item.name == "Mixed_7c.branch3x3_2a.conv.weight").for_each(change);
        let path = scratch.file("weights.pth", zipped(&items, pickle(&items)));
        Inception::convert(&path, &scratch.path("bad.safetensors")).unwrap_err().to_string()
    };
    let said = changed(&|item| item.name = "other".into());
    assert!(said.contains("has no `Mixed_7c.branch3x3_2a.conv.weight`"), "{said}");
    let said = changed(&|item| item.shape = vec![384, 384, 3, 1]);
    assert!(said.contains("has shape [384, 384, 3, 1]; Inception's is [384, 384, 1, 3]"), "{said}");
    assert!(!scratch.path("bad.safetensors").exists());
}
