//! Memory aligned to cache lines.
#![allow(unsafe_code)] // a slice over an over-aligned allocation

use crate::device::DeviceError;
use crate::limits::filled;
use crate::math::Real;
use std::ops::{Deref, DerefMut};

/// One cache line: the unit of allocation.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]); // read only through the cast below

/// A fixed number of elements, zero at first, starting on a cache line.
pub(crate) struct Aligned<T> {
    lines: Vec<Line>,
    len: usize,
    kind: std::marker::PhantomData<T>,
}

impl<T: Real> Aligned<T> {
    /// `len` zeros, or an error if there is no memory for them.
    pub fn new(len: usize) -> Result<Self, DeviceError> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| DeviceError::no_room(None))?;
        let lines = filled(Line([0; 64]), bytes.div_ceil(64))?;
        Ok(Aligned { lines, len, kind: std::marker::PhantomData })
    }
}

impl<T> Aligned<T> {
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.lines.as_mut_ptr().cast()
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold `len` elements; f32 and f64 (the only `Real`s) accept any bits.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
