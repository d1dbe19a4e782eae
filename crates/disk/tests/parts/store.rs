//! Bytes kept and forgotten.

use tierwise_disk::{MemoryStore, Store};

const SIZE: u64 = 1 << 20;

#[test]
fn bytes_read_are_bytes_written() {
    let store = MemoryStore::new(SIZE).expect("memory");
    assert!(store.read(0, SIZE as usize).iter().all(|&byte| byte == 0));
    store.write(SIZE - 3, &[1, 2, 3]);
    store.write(4095, &[4, 5]);
    assert_eq!(*store.read(SIZE - 4, 4), [0, 1, 2, 3]);
    assert_eq!(*store.read(4094, 4), [0, 4, 5, 0]);
}

#[test]
fn a_discarded_range_is_zero_and_its_neighbours_are_not() {
    let ranges = [
        (0, SIZE),
        (512, 512),
        (4096, 8192),
        (4095, 4098),
        (100, 9000),
        (8191, 1),
        (4096, 0),
    ];
    for (offset, length) in ranges {
        let store = MemoryStore::new(SIZE).expect("memory");
        store.write(0, &vec![7; SIZE as usize]);
        store.discard(offset, length);
        for (position, &byte) in store.read(0, SIZE as usize).iter().enumerate() {
            let inside = (offset..offset + length).contains(&(position as u64));
            assert_eq!(
                byte,
                if inside { 0 } else { 7 },
                "byte {position} after discard of {offset}+{length}"
            );
        }
    }
}

#[test]
fn memory_is_taken_only_for_what_is_written() {
    let store = MemoryStore::new(1 << 40).expect("addresses for a terabyte");
    store.write(1 << 39, &[9]);
    assert_eq!(*store.read((1 << 39) - 1, 3), [0, 9, 0]);
}

#[test]
#[should_panic(expected = "within the store")]
fn a_range_past_the_end_is_refused() {
    MemoryStore::new(SIZE)
        .expect("memory")
        .write(SIZE - 1, &[1, 2]);
}
