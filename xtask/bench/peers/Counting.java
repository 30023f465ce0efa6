package peers;

import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;

/** Counts records and ends the process, with how long it took, when all have been seen. */
final class Counting {
    private final long records;
    private final long begun = System.nanoTime();
    private final AtomicLong seen = new AtomicLong();

    Counting(long records) {
        this.records = records;
    }

    void one() {
        if (seen.incrementAndGet() == records) {
            System.out.println((System.nanoTime() - begun) / 1e9);
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }
    }

    /** Properties of a consumer, with larger fetches than by default. */
    static Properties properties(String servers, String group) {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", servers);
        properties.setProperty("group.id", group + "-" + ProcessHandle.current().pid());
        properties.setProperty("client.id", group);
        properties.setProperty("auto.offset.reset", "earliest");
        properties.setProperty("enable.auto.commit", "false");
        properties.setProperty("max.poll.records", "10000");
        properties.setProperty("fetch.min.bytes", "100000");
        properties.setProperty("max.partition.fetch.bytes", "4194304");
        properties.setProperty(
                "key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        properties.setProperty(
                "value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        return properties;
    }
}
