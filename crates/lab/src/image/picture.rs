//! One picture: a PNG or JPEG file as bytes of red, green and blue.
//!
//! **Conventions.** Pixels are `[height, width, 3]`; grey becomes three equal channels, transparency is left out, 16 bits
//! are cut to 8, and an orientation that a camera noted is not applied: all as Pillow's `convert("RGB")` does it.
//! **Error.** JPEG leaves decoders some freedom: bytes differ by a few units from those of other programs.
//! **Checked by** tests/lab/data_folder.rs.

use minvel::limits::TooLarge;
use minvel::{Error, Limits, file};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

/// A picture of any size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Pixels from top to bottom.
    pub height: usize,
    /// Pixels from left to right.
    pub width: usize,
    /// Row-major `[height, width, 3]`.
    pub pixels: Vec<u8>,
}

impl Picture {
    /// Reads a file; its first bytes tell the format.
    pub fn read(path: &Path) -> Result<Picture, Error> {
        Picture::decode(&file::read(path)?).map_err(|what| Error::content(path, what))
    }

    /// Decodes the bytes of a file, if the [limit](minvel::Limits::pixels) allows as many pixels as they announce.
    pub fn decode(bytes: &[u8]) -> Result<Picture, String> {
        weight(Cursor::new(bytes), bytes.len() as u64)?;
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => png(bytes),
            _ => jpeg(bytes),
        }
    }

    /// Memory that decoding a file will take; only its header is read.
    pub(super) fn weight_of(path: &Path) -> Result<u64, String> {
        let failed = |e| format!("cannot be read ({e})");
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        weight(BufReader::new(file), length)
    }

    /// From bytes `[height, width, channels]`: grey, or red, green and blue, each with or without opacity.
    fn of(height: usize, width: usize, channels: usize, bytes: &[u8]) -> Result<Picture, String> {
        if height * width == 0 || bytes.len() != height * width * channels {
            return Err(format!("has {} bytes for {height} × {width} pixels of {channels} channels", bytes.len()));
        }
        let colour = |pixel: &[u8]| if channels < 3 { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] };
        Ok(Picture { height, width, pixels: bytes.chunks(channels).flat_map(colour).collect() })
    }

    /// Its bytes in three channels, or in one: grey as Pillow's `convert("L")` has it (ITU-R 601), which leaves equal
    /// channels as they are.
    pub fn bytes(&self, channels: usize) -> Vec<u8> {
        let grey = |[r, g, b]: &[u8; 3]| {
            let [r, g, b] = [*r, *g, *b].map(u32::from);
            ((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16) as u8
        };
        if channels == 1 { self.pixels.as_chunks().0.iter().map(grey).collect() } else { self.pixels.clone() }
    }

    /// The middle part of so many rows and columns.
    pub fn centre(&self, height: usize, width: usize) -> Picture {
        assert!(height <= self.height && width <= self.width, "centre: {height} × {width} of a smaller picture");
        let (top, left) = ((self.height - height) / 2, (self.width - width) / 2);
        let rows = self.pixels.chunks(3 * self.width).skip(top).take(height);
        Picture { height, width, pixels: rows.flat_map(|row| &row[3 * left..3 * (left + width)]).copied().collect() }
    }

    /// At another size: each new pixel is a mean of the old ones below a triangle around it, as wide as two pixels of
    /// the coarser grid, so that a smaller picture is not jagged.
    pub fn scaled(&self, height: usize, width: usize) -> Picture {
        let (down, across) = (triangles(self.height, height), triangles(self.width, width));
        let mut rows = Vec::with_capacity(3 * self.height * width);
        for row in self.pixels.chunks(3 * self.width) {
            rows.extend(across.iter().flat_map(|t| [0, 1, 2].map(|c| t.of(|x| row[3 * x + c] as f64))));
        }
        let mut pixels = Vec::with_capacity(3 * height * width);
        for t in &down {
            let entry = |k: usize| t.of(|y| rows[3 * width * y + k]).round().clamp(0.0, 255.0) as u8;
            pixels.extend((0..3 * width).map(entry));
        }
        Picture { height, width, pixels }
    }
}

/// Weights of old entries, from the first on.
struct Weights {
    first: usize,
    weights: Vec<f64>,
}

impl Weights {
    fn of(&self, value: impl Fn(usize) -> f64) -> f64 {
        self.weights.iter().enumerate().map(|(i, w)| w * value(self.first + i)).sum()
    }
}

/// For each of `to` new entries the weights of the `from` old ones.
fn triangles(from: usize, to: usize) -> Vec<Weights> {
    let scale = from as f64 / to as f64;
    let reach = scale.max(1.0);
    let weights = |i: usize| {
        let centre = (i as f64 + 0.5) * scale;
        let first = (centre - reach + 0.5).max(0.0) as usize;
        let last = ((centre + reach + 0.5) as usize).min(from);
        let raw = (first..last).map(|k| (1.0 - ((k as f64 + 0.5 - centre) / reach).abs()).max(0.0));
        let raw: Vec<f64> = raw.collect();
        let sum: f64 = raw.iter().sum();
        Weights { first, weights: raw.iter().map(|w| w / sum).collect() }
    };
    (0..to).map(weights).collect()
}

/// Bytes of an image `[height, width, channels]`, grey or in colour, as a PNG file.
pub fn png_file([height, width, channels]: [usize; 3], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![];
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(if channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().expect("memory takes any picture");
    writer.write_image_data(bytes).expect("as many bytes as the image has");
    writer.finish().expect("memory takes any picture");
    file
}

/// Memory that decoding will take, or an error if that is more than a picture may.
fn weight(mut bytes: impl BufRead + Seek, length: u64) -> Result<u64, String> {
    let failed = |e| format!("cannot be read ({e})");
    let [width, height] = match bytes.fill_buf().map_err(failed)? {
        [0x89, b'P', b'N', b'G', ..] => png_size(bytes)?,
        [0xff, 0xd8, ..] => jpeg_size(bytes)?,
        [] => return Err("is empty".into()),
        _ => return Err("is neither PNG nor JPEG".into()),
    };
    let weight = Limits::of_picture(width.saturating_mul(height), length);
    TooLarge::check(weight, 2).map_err(|why| format!("has {width} × {height} pixels and {why}"))?;
    Ok(weight)
}

/// Width and height stand behind the signature and the beginning of the first chunk.
fn png_size(mut bytes: impl Read) -> Result<[u64; 2], String> {
    let mut start = [0; 24];
    bytes.read_exact(&mut start).map_err(|_| "is a damaged PNG file (it is truncated)")?;
    Ok([16, 20].map(|at| u32::from_be_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]) as u64))
}

fn png(bytes: &[u8]) -> Result<Picture, String> {
    let broken = |e: png::DecodingError| format!("is a damaged PNG file ({e})");
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().map_err(broken)?;
    // the decoder takes whole colours for granted
    if let Some(palette) = reader.info().palette.as_ref().filter(|palette| palette.len() % 3 != 0) {
        return Err(format!("is a damaged PNG file (its palette has {} bytes, not three per colour)", palette.len()));
    }
    let size = reader.output_buffer_size().ok_or("is too large for a PNG file")?;
    let mut pixels = vec![0; size];
    let frame = reader.next_frame(&mut pixels).map_err(broken)?;
    let [height, width] = [frame.height, frame.width].map(|n| n as usize);
    Picture::of(height, width, frame.color_type.samples(), &pixels[..frame.buffer_size()])
}

#[cfg(feature = "jpeg")]
fn jpeg_decoder<R: BufRead + Seek>(bytes: R) -> Result<zune_jpeg::JpegDecoder<R>, String> {
    use zune_jpeg::zune_core::{colorspace::ColorSpace, options::DecoderOptions};
    let side = 1 << 16;
    let options = DecoderOptions::default().set_max_width(side).set_max_height(side).set_strict_mode(true);
    let options = options.jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(bytes, options);
    decoder.decode_headers().map_err(|e| format!("is a damaged JPEG file ({e})"))?;
    Ok(decoder)
}

#[cfg(feature = "jpeg")]
fn jpeg_size(bytes: impl BufRead + Seek) -> Result<[u64; 2], String> {
    let (width, height) = jpeg_decoder(bytes)?.dimensions().ok_or("is a JPEG file without a size")?;
    Ok([width as u64, height as u64])
}

#[cfg(feature = "jpeg")]
fn jpeg(bytes: &[u8]) -> Result<Picture, String> {
    let mut decoder = jpeg_decoder(Cursor::new(bytes))?;
    let pixels = decoder.decode().map_err(|e| format!("is a damaged JPEG file ({e})"))?;
    let (width, height) = decoder.dimensions().ok_or("is a JPEG file without a size")?;
    Picture::of(height, width, 3, &pixels)
}

#[cfg(not(feature = "jpeg"))]
fn jpeg_size(_: impl BufRead + Seek) -> Result<[u64; 2], String> {
    Err("is a JPEG file, which this build of minvel does not read".into())
}

#[cfg(not(feature = "jpeg"))]
fn jpeg(_: &[u8]) -> Result<Picture, String> {
    unreachable!("it has no size")
}
