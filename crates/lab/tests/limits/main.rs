//! Memory that hostile files may take: counted, so that these tests are a process of their own.

#[path = "../support/memory.rs"]
mod memory;

mod parquet_pages;
mod readers;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;
