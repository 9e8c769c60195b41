//! Minimum velocity learning of unnormalised models.
