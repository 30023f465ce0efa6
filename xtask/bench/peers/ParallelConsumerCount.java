package peers;

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.util.List;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** Reads a topic with Confluent's Parallel Consumer, counts its records, and drops them. */
public final class ParallelConsumerCount {
    public static void main(String[] words) {
        var consumer = new KafkaConsumer<byte[], byte[]>(Counting.properties(words[0], "peer-pc"));
        var counting = new Counting(Long.parseLong(words[2]));
        var options = ParallelConsumerOptions.<byte[], byte[]>builder()
                .consumer(consumer)
                .ordering(ProcessingOrder.UNORDERED)
                .maxConcurrency(Runtime.getRuntime().availableProcessors())
                .batchSize(1000)
                .build();
        var processor = ParallelStreamProcessor.createEosStreamProcessor(options);
        processor.subscribe(List.of(words[1]));
        processor.poll(batch -> batch.forEach(record -> counting.one()));
    }
}
