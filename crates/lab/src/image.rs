//! Images: bytes of one size, from [`idx`] files ([`mnist`]), [`cifar`] or a [`folder`] of pictures.

pub mod cifar;
pub mod folder;
mod framed;
pub mod idx;
mod images;
pub mod mnist;
mod picture;

pub use framed::Framed;
pub use images::{Images, Labelled, intensities};
pub use picture::{Picture, png_file};
