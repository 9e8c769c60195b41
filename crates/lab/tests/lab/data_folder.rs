//! Folders of pictures: what is read, what is left out, and that what is kept is not stale.

use minvel_lab::image::folder::{Folder, Framing, Pictures};
use minvel_lab::image::{Picture, folder};
use minvel_testing::Scratch;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A PNG file of samples as they are.
fn png(width: u32, height: u32, color: png::ColorType, depth: png::BitDepth, samples: &[u8]) -> Vec<u8> {
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        encoder.set_palette(vec![10, 20, 30, 40, 50, 60]);
    }
    encoder.write_header().unwrap().write_image_data(samples).unwrap();
    bytes
}

/// A picture whose every pixel tells where it stands: (x, y, shade).
fn grid(width: u32, height: u32, shade: u8) -> Vec<u8> {
    let place = |i: u32| [(i % width) as u8, (i / width) as u8, shade];
    let samples: Vec<u8> = (0..width * height).flat_map(place).collect();
    png(width, height, png::ColorType::Rgb, png::BitDepth::Eight, &samples)
}

fn fixture(name: &str) -> Picture {
    Picture::read(&Path::new("tests/data_fixtures").join(name)).unwrap()
}

/// Found by fuzzing: the decoder panicked on a palette that ends inside a colour.
#[test]
fn a_palette_that_ends_inside_a_colour_is_refused() {
    let said = Picture::read(&Path::new("tests/data_fixtures").join("odd_palette.png")).unwrap_err().to_string();
    assert!(said.contains("its palette has 70 bytes"), "{said}");
}

#[test]
fn every_kind_of_png_becomes_red_green_and_blue() {
    use png::{BitDepth, ColorType};
    let read = |color, depth, samples: &[u8]| Picture::decode(&png(2, 1, color, depth, samples)).unwrap().pixels;
    assert_eq!(read(ColorType::Rgb, BitDepth::Eight, &[1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6]);
    assert_eq!(read(ColorType::Rgba, BitDepth::Eight, &[1, 2, 3, 0, 4, 5, 6, 9]), [1, 2, 3, 4, 5, 6]);
    assert_eq!(read(ColorType::Grayscale, BitDepth::Eight, &[7, 8]), [7, 7, 7, 8, 8, 8]);
    assert_eq!(read(ColorType::GrayscaleAlpha, BitDepth::Eight, &[7, 1, 8, 2]), [7, 7, 7, 8, 8, 8]);
    assert_eq!(read(ColorType::Grayscale, BitDepth::Sixteen, &[7, 200, 8, 100]), [7, 7, 7, 8, 8, 8]);
    assert_eq!(read(ColorType::Grayscale, BitDepth::One, &[0b0100_0000]), [0, 0, 0, 255, 255, 255]);
    assert_eq!(read(ColorType::Indexed, BitDepth::Eight, &[1, 0]), [40, 50, 60, 10, 20, 30]);
}

/// The fixtures were written by Pillow 13.0 with quality 92 from (6x, 10y, 255 − 3x − 5y) and its grey shade.
#[cfg(feature = "jpeg")]
#[test]
fn a_jpeg_is_close_to_what_it_was_made_of() {
    let picture = fixture("gradient.jpg");
    assert_eq!((picture.height, picture.width), (24, 40));
    let expected = |i: usize| {
        let (y, x, c) = (i / 120, i / 3 % 40, i % 3);
        [6 * x, 10 * y, 255 - 3 * x - 5 * y][c] as f64
    };
    let errors: Vec<f64> = (0..3 * 960).map(|i| (picture.pixels[i] as f64 - expected(i)).abs()).collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    // Pillow itself reads its file back with a mean error of 1.23; a shift by one column would be 3 on average
    println!("mean error {mean:.2}");
    assert!(mean < 1.8, "{mean}");
    let grey = fixture("grey.jpg");
    assert_eq!((grey.height, grey.width), (24, 40));
    assert!(grey.pixels.as_chunks().0.iter().all(|[red, green, blue]| red == green && red == blue));
    assert!(grey.pixels[0].abs_diff(29) <= 2, "{}", grey.pixels[0]);
}

#[test]
fn pictures_come_in_the_order_of_their_files_and_bad_ones_are_named() {
    let scratch = Scratch::new("pictures");
    std::fs::create_dir(scratch.path("inner")).unwrap();
    for i in 0..60u8 {
        let name = if i < 40 { format!("{i:02}.png") } else { format!("inner/{i:02}.PNG") };
        // sizes differ much, so that threads overtake each other
        let side = if i % 7 == 0 { 200 } else { 4 };
        scratch.file(&name, grid(side, side, i));
    }
    let whole = grid(16, 16, 1);
    scratch.file("03.png", &whole[..whole.len() / 2]);
    scratch.file("11.png", b"");
    scratch.file("20.png", b"GIF89a");
    scratch.file("notes.txt", b"not a picture");
    let mut flipped = whole.clone();
    flipped[60] ^= 0xff;
    scratch.file("30.png", &flipped);
    let paths = folder::list(&scratch.path("")).unwrap();
    assert_eq!(paths.len(), 60);
    for threads in [1, 4] {
        let pictures = Pictures::new(paths.clone(), threads, |p| Ok(*p.pixels.last().unwrap()));
        let (good, bad): (Vec<_>, Vec<_>) = pictures.partition(Result::is_ok);
        let shades: Vec<u8> = good.into_iter().map(Result::unwrap).collect();
        let expected: Vec<u8> = (0..60).filter(|i| ![3, 11, 20, 30].contains(i)).collect();
        assert_eq!(shades, expected, "{threads} threads");
        let bad: Vec<_> = bad.into_iter().map(Result::unwrap_err).collect();
        let names: Vec<&str> = bad.iter().map(|s| s.path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["03.png", "11.png", "20.png", "30.png"]);
        assert!(bad[0].why.contains("damaged PNG") && bad[1].why == "is empty", "{bad:?}");
        assert!(bad[2].why.contains("neither PNG nor JPEG"), "{bad:?}");
    }
    // a reader that stops early is not waited for by threads that have nowhere to put their pictures
    let mut first = Pictures::new(paths, 4, |p| Ok(p.height));
    assert_eq!(first.next().unwrap().unwrap(), 200);
}

/// One picture that takes long let all others pile up behind it, decoded.
#[test]
fn a_slow_picture_does_not_let_the_others_pile_up() {
    let scratch = Scratch::new("pile");
    (0..200).for_each(|i| drop(scratch.file(&format!("{i:03}.png"), grid(4, 4, i as u8))));
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let mut pictures = Pictures::new(folder::list(&scratch.path("")).unwrap(), 2, move |p| {
        if p.pixels[2] == 0 {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(p.pixels[2])
    });
    assert_eq!(pictures.next().unwrap().unwrap(), 0);
    // eight for each thread, the first among them, and what came in since
    assert!(made.load(Ordering::SeqCst) <= 18, "{}", made.load(Ordering::SeqCst));
    assert_eq!(pictures.map(Result::unwrap).collect::<Vec<u8>>(), (1..200).collect::<Vec<u8>>());
}

#[test]
fn a_frame_is_the_middle_and_scaling_keeps_ramps() {
    let scratch = Scratch::new("framing");
    scratch.file("a.png", grid(178, 218, 9));
    let read = |crop, side| {
        let framing = Framing { crop, side };
        Folder::read(&scratch.path(""), framing, 2, None, |_, _| ()).unwrap().images
    };
    // the square of 140 begins 19 from the left and 39 from the top
    let cut = read(Some(140), 140);
    assert_eq!(cut.pixels[..3], [19, 39, 9]);
    assert_eq!(cut.pixels[3 * 139..][..3], [19 + 139, 39, 9]);
    assert_eq!(cut.pixels[3 * (140 * 140 - 1)..], [19 + 139, 39 + 139, 9]);
    // at half the size each pixel is the mean around it, on a ramp that of the middle
    let half = read(Some(140), 70);
    let expected = |i: usize| 19.0 + 2.0 * i as f64 + 0.5;
    for i in 1..69 {
        let red = half.pixels[3 * (70 * 30 + i)];
        assert!((red as f64 - expected(i)).abs() <= 0.5, "{i}: {red}");
    }
    assert!(half.pixels.iter().skip(2).step_by(3).all(|p| *p == 9));
    // without a crop the largest square, 178 of 218 rows
    let whole = read(None, 178);
    assert_eq!(whole.pixels[..2], [0, 20]);
    assert_eq!(Framing::FACES, Framing { crop: Some(140), side: 64 });
}

#[test]
fn what_was_decoded_is_kept_until_a_file_changes() {
    let scratch = Scratch::new("kept");
    let (pictures, cache) = (scratch.path("pictures"), scratch.path("cache"));
    std::fs::create_dir(&pictures).unwrap();
    let put = |shade: u8| std::fs::write(pictures.join("a.png"), grid(8, 8, shade)).unwrap();
    let bad = pictures.join("b.png");
    std::fs::write(&bad, b"nothing").unwrap();
    let touch = |seconds| {
        let file = File::options().append(true).open(pictures.join("a.png")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    };
    let framing = Framing { crop: None, side: 4 };
    let read = |framing| Folder::read(&pictures, framing, 1, Some(&cache), |_, _| ()).unwrap();
    put(1);
    touch(1000);
    let first = read(framing);
    assert_eq!((first.images.count, first.skipped.len(), &first.skipped[0].path), (1, 1, &bad));
    // another content under the same length and time is not looked at: the pixels are those that were kept
    put(2);
    touch(1000);
    assert_eq!(read(framing), first);
    touch(1001);
    let second = read(framing);
    assert_eq!((first.images.pixels[2], second.images.pixels[2]), (1, 2));
    assert_ne!(first.images.sha256, second.images.sha256);
    assert_eq!(read(Framing { crop: None, side: 2 }).images.pixels.len(), 12, "another framing is another file");
    // damaged ones are made again, and those with planes of colours as they once were
    for kept in [b"minvel pixels 2\n[]".to_vec(), [&b"minvel pixels 1\n[]\n"[..], &[0; 48]].concat()] {
        for entry in std::fs::read_dir(&cache).unwrap() {
            std::fs::write(entry.unwrap().path(), &kept).unwrap();
        }
        assert_eq!(read(framing), second);
    }
}

#[test]
fn a_part_of_a_folder_is_that_part_of_the_whole_decoded_now_or_before() {
    let scratch = Scratch::new("part");
    let (pictures, cache) = (scratch.path("pictures"), scratch.path("cache"));
    std::fs::create_dir(&pictures).unwrap();
    (0..7).for_each(|k| std::fs::write(pictures.join(format!("{k}.png")), grid(8, 8, k)).unwrap());
    std::fs::write(pictures.join("3.png"), b"nothing").unwrap();
    let framing = Framing { crop: None, side: 4 };
    let whole = Folder::read(&pictures, framing, 2, None, |_, _| ()).unwrap();
    assert_eq!((whole.count, whole.images.count, whole.skipped.len()), (6, 6, 1));
    for range in [4..6, 0..4, 2..2, 0..6] {
        // without a cache, with one that is empty, with one that is full
        for cache in [None, Some(&*cache), Some(&*cache)] {
            let choose = |count| {
                assert_eq!(count, 6);
                range.clone()
            };
            let part = Folder::read_part(&pictures, framing, 2, cache, choose, |_, _| ()).unwrap();
            assert_eq!(part, Folder { images: whole.images.part(range.clone()), ..whole.clone() });
        }
        if range.is_empty() {
            std::fs::remove_dir_all(&cache).unwrap();
        }
    }
}

#[test]
fn folders_without_pictures_are_refused_with_what_is_wrong() {
    let scratch = Scratch::new("empty");
    let read = || Folder::read(&scratch.path(""), Framing::FACES, 1, None, |_, _| ()).unwrap_err().to_string();
    assert!(read().contains("has no PNG or JPEG files"), "{}", read());
    scratch.file("small.png", grid(64, 64, 0));
    assert!(
        read().contains("small.png") && read().contains("64 × 64 pixels: too small to crop a square of 140"),
        "{}",
        read()
    );
    let missing = folder::list(&scratch.path("missing")).unwrap_err().to_string();
    assert!(missing.contains("missing"), "{missing}");
}
