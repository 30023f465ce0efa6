//! The leader epoch of a place, which the safe crate can neither give to the library nor take from it.

use std::ffi::CString;

use rdkafka::TopicPartitionList;
use rdkafka::bindings as sys;

/// Says which leader wrote what comes before the offset of a partition in the list. Whether the list names the
/// partition.
pub(in crate::input) fn set_epoch(
    list: &mut TopicPartitionList,
    topic: &str,
    partition: u32,
    epoch: i32,
) -> bool {
    let (Ok(topic), Ok(partition)) = (CString::new(topic), i32::try_from(partition)) else {
        return false;
    };
    // SAFETY: the list is ours alone during the calls, and the name outlives them. What comes back is null or an
    // element of the list, which nothing moves meanwhile.
    unsafe {
        let found = sys::rd_kafka_topic_partition_list_find(list.ptr(), topic.as_ptr(), partition);
        if found.is_null() {
            return false;
        }
        sys::rd_kafka_topic_partition_set_leader_epoch(found, epoch);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::Offset;

    #[test]
    fn only_what_is_in_the_list_gets_an_epoch() {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset("orders", 3, Offset::Offset(7)).unwrap();
        assert!(set_epoch(&mut list, "orders", 3, 5));
        assert!(!set_epoch(&mut list, "orders", 4, 5));
        assert!(!set_epoch(&mut list, "or\0ders", 3, 5));
        // SAFETY: the list has one element.
        let epoch = unsafe { sys::rd_kafka_topic_partition_get_leader_epoch((*list.ptr()).elems) };
        assert_eq!(epoch, 5);
    }
}
