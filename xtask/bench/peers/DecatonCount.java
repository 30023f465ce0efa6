package peers;

import com.linecorp.decaton.processor.DecatonProcessor;
import com.linecorp.decaton.processor.TaskMetadata;
import com.linecorp.decaton.processor.runtime.DecatonTask;
import com.linecorp.decaton.processor.runtime.ProcessorProperties;
import com.linecorp.decaton.processor.runtime.ProcessorsBuilder;
import com.linecorp.decaton.processor.runtime.Property;
import com.linecorp.decaton.processor.runtime.SubscriptionBuilder;
import com.linecorp.decaton.processor.runtime.StaticPropertySupplier;
import com.linecorp.decaton.processor.runtime.TaskExtractor;

/** Reads a topic with Decaton, counts its records, and drops them. */
public final class DecatonCount {
    public static void main(String[] words) {
        var counting = new Counting(Long.parseLong(words[2]));
        var metadata = TaskMetadata.builder().build();
        TaskExtractor<byte[]> extractor = record -> new DecatonTask<>(metadata, record.value(), record.value());
        DecatonProcessor<byte[]> processor = (context, task) -> counting.one();
        SubscriptionBuilder.newBuilder("peer-decaton")
                .properties(StaticPropertySupplier.of(
                        Property.ofStatic(ProcessorProperties.CONFIG_MAX_PENDING_RECORDS, 100_000),
                        Property.ofStatic(ProcessorProperties.CONFIG_PARTITION_CONCURRENCY, 1)))
                .processorsBuilder(
                        ProcessorsBuilder.consuming(words[1], extractor).thenProcess(processor))
                .consumerConfig(Counting.properties(words[0], "peer-decaton"))
                .buildAndStart();
    }
}
