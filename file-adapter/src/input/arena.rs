//! Blocks that files are read into, and that become the arenas of batches without a copy.
//!
//! A block whose last batch is dropped goes back to the pool it came from, so reading a large file
//! touches the same few pages of memory again and again. Not here: what the bytes mean.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Hands out blocks and keeps a bounded number of free ones.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    block_bytes: usize,
    /// Most free blocks that are kept.
    keep: usize,
    /// The last one given back is the next one given out: it is the one still in the cache.
    free: Mutex<Vec<Vec<u8>>>,
}

impl Pool {
    /// A pool of blocks of `block_bytes` that keeps at most `keep` free ones.
    pub(super) fn new(block_bytes: usize, keep: usize) -> Self {
        Self { shared: Arc::new(Shared { block_bytes, keep, free: Mutex::default() }) }
    }

    /// The size of an ordinary block.
    pub(super) fn block_bytes(&self) -> usize {
        self.shared.block_bytes
    }

    /// An empty block with room for at least `capacity` bytes.
    pub(super) fn block(&self, capacity: usize) -> Block {
        let ordinary = capacity <= self.shared.block_bytes;
        let free = if ordinary { self.shared.free().pop() } else { None };
        let bytes = free.unwrap_or_else(|| vec![0; capacity.max(self.shared.block_bytes)]);
        Block { bytes, len: 0, pool: self.shared.clone() }
    }

    /// A block that begins with `filled` and has room for an ordinary block more. It may grow to `most` bytes, block by
    /// block, without being copied again, so that a record of many blocks is in memory once: room that is not used is
    /// no memory yet.
    pub(super) fn block_after(&self, filled: Vec<u8>, most: usize) -> Block {
        let (len, block) = (filled.len(), self.shared.block_bytes);
        let mut bytes = filled;
        if bytes.capacity() < len + block {
            let mut larger = Vec::with_capacity(most.max(len + block));
            larger.append(&mut bytes);
            bytes = larger;
        }
        bytes.resize(len + block, 0);
        Block { bytes, len, pool: self.shared.clone() }
    }
}

#[cfg(test)]
impl Pool {
    pub(super) fn free_blocks(&self) -> usize {
        self.shared.free().len()
    }
}

impl Shared {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer that is filled from its front.
///
/// **Invariant:** `len <= bytes.len()`.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    len: usize,
    pool: Arc<Shared>,
}

impl Block {
    /// What has been filled.
    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The room behind it.
    pub(super) fn spare(&mut self) -> &mut [u8] {
        &mut self.bytes[self.len..]
    }

    /// `n` bytes of the room have been filled.
    pub(super) fn advance(&mut self, n: usize) {
        assert!(n <= self.bytes.len() - self.len, "a block was filled beyond its end");
        self.len += n;
    }

    /// Copies `bytes` behind what has been filled.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.spare()[..bytes.len()].copy_from_slice(bytes);
        self.advance(bytes.len());
    }

    /// The filled part as memory of its own.
    pub(super) fn into_filled(mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(self.len);
        bytes
    }

    /// Whether `bytes` are so few that they should not hold the block.
    pub(super) fn is_too_large_for(&self, bytes: usize) -> bool {
        bytes < self.bytes.len() / 4
    }

    /// The filled part as an arena.
    pub(super) fn into_arena(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self.filled()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.bytes.len() != self.pool.block_bytes {
            return;
        }
        let mut free = self.pool.free();
        if free.len() < self.pool.keep {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back_when_its_last_slice_is_dropped() {
        let pool = Pool::new(16, 1);
        let mut block = pool.block(1);
        block.extend(b"0123456789");
        let place = block.filled().as_ptr();
        let arena = block.into_arena();
        assert_eq!(arena.as_ptr(), place, "a full block is not copied");
        let slice = arena.slice(2..4);
        drop(arena);
        assert!(pool.shared.free().is_empty());
        drop(slice);
        assert_eq!(pool.block(16).bytes.as_ptr(), place);
    }

    /// With an allocator that copies what grows, a long record was in memory three times.
    #[test]
    fn a_long_beginning_grows_where_it_is() {
        let pool = Pool::new(16, 2);
        let mut filled = vec![b'x'; 16];
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..6 {
            let mut block = pool.block_after(filled, 128);
            places.insert(block.filled().as_ptr());
            block.extend(&[b'y'; 16]);
            filled = block.into_filled();
        }
        assert_eq!((filled.len(), places.len()), (112, 1));
    }

    #[test]
    fn the_pool_keeps_a_bounded_number_of_ordinary_blocks() {
        let pool = Pool::new(16, 2);
        let blocks = [16, 16, 16, 17, 1000].map(|capacity| pool.block(capacity));
        drop(blocks);
        assert_eq!(pool.shared.free().len(), 2);
    }
}
