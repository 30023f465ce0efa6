//! The leader epoch of a place, which the safe crate can neither give to the library nor take from it.

use rdkafka::TopicPartitionList;
use rdkafka::bindings as sys;

/// Says which leader wrote what comes before the offset of the last partition in the list. Whether there is one.
pub(in crate::input) fn set_last_epoch(list: &mut TopicPartitionList, epoch: i32) -> bool {
    let Some(last) = list.count().checked_sub(1) else { return false };
    // SAFETY: the list is ours alone, and has so many elements one after the other, which nothing moves during the call.
    unsafe {
        let last = (*list.ptr()).elems.add(last);
        sys::rd_kafka_topic_partition_set_leader_epoch(last, epoch);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::Offset;

    #[test]
    fn the_last_one_in_the_list_gets_the_epoch() {
        let mut list = TopicPartitionList::new();
        assert!(!set_last_epoch(&mut list, 5));
        list.add_partition_offset("orders", 3, Offset::Offset(7)).unwrap();
        list.add_partition_offset("orders", 4, Offset::Offset(7)).unwrap();
        assert!(set_last_epoch(&mut list, 5));
        // SAFETY: the list has two elements.
        let epochs = [0, 1].map(|index| unsafe {
            sys::rd_kafka_topic_partition_get_leader_epoch((*list.ptr()).elems.add(index))
        });
        assert_eq!(epochs, [-1, 5]);
    }
}
