package binwright.assignor;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the last plan of one group, within a deadline.
 *
 * <p>A consumer of its own, without a group, is opened for each rebalance and closed again: Kafka
 * never closes an assignor. What was read is remembered, so the next time only new records are.
 */
final class PlansTopic {
    private static final Logger LOG = LoggerFactory.getLogger(PlansTopic.class);
    private static final Duration POLL = Duration.ofMillis(200);
    /** What belongs to the application's consumer alone. */
    private static final List<String> LEFT_OUT = List.of(
            "group.id", "group.instance.id", "group.protocol", "partition.assignment.strategy", "interceptor.classes",
            "metric.reporters", "isolation.level", "fetch.min.bytes", "fetch.max.bytes", "max.partition.fetch.bytes",
            "max.poll.records", "client.rack", "auto.offset.reset");

    private final Map<String, Object> settings = new HashMap<>();
    private final String topic;
    private final String group;
    private final long deadlineMs;
    private TopicPartition partition;
    private long next;
    private volatile GroupPlan last;

    PlansTopic(Map<String, ?> consumer, String topic, String group, long deadlineMs) {
        this.topic = topic;
        this.group = group;
        this.deadlineMs = deadlineMs;
        settings.putAll(consumer);
        LEFT_OUT.forEach(settings::remove);
        settings.put(ConsumerConfig.CLIENT_ID_CONFIG, consumer.get(ConsumerConfig.CLIENT_ID_CONFIG) + "-plans");
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        settings.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    }

    /** Returns the last plan, whatever its age; reads for the deadline at most, and never throws. */
    Optional<GroupPlan> last() {
        FutureTask<Void> reading = new FutureTask<>(this::read, null);
        // Not on the caller's thread: opening a consumer may wait for a name server.
        Thread thread = new Thread(reading, "binwright-plans-" + group);
        thread.setDaemon(true);
        thread.start();
        try {
            reading.get(deadlineMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException late) {
            reading.cancel(true);
            LOG.warn("group {}: topic {} was not read within {} ms", group, topic, deadlineMs);
        } catch (ExecutionException failed) {
            LOG.warn("group {}: topic {} cannot be read: {}", group, topic, failed.getCause().toString());
        } catch (InterruptedException stopped) {
            reading.cancel(true);
            Thread.currentThread().interrupt();
        }
        return Optional.ofNullable(last);
    }

    private synchronized void read() {
        long endNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(deadlineMs);
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        try {
            List<PartitionInfo> found = consumer.partitionsFor(topic, Duration.ofMillis(deadlineMs));
            if (found == null || found.isEmpty()) {
                LOG.info("group {}: there is no topic {}", group, topic);
                return;
            }
            byte[] key = group.getBytes(StandardCharsets.UTF_8);
            TopicPartition own = new TopicPartition(topic, Utils.toPositive(Utils.murmur2(key)) % found.size());
            if (!own.equals(partition)) {
                partition = own;
                next = 0;
            }
            consumer.assign(List.of(own));
            long end = consumer.endOffsets(List.of(own), Duration.ofMillis(deadlineMs)).get(own);
            next = next > end ? 0 : next; // the topic was made anew
            consumer.seek(own, next);
            while (consumer.position(own, POLL) < end && System.nanoTime() < endNs) {
                consumer.poll(POLL).records(own).forEach(this::take);
                next = consumer.position(own, POLL);
            }
        } finally {
            consumer.close();
        }
    }

    private void take(ConsumerRecord<byte[], byte[]> record) {
        if (record.key() == null || !group.equals(new String(record.key(), StandardCharsets.UTF_8))) {
            return;
        }
        if (record.value() == null) {
            last = null; // the scaler assigns this group no more
            return;
        }
        try {
            last = GroupPlan.parse(new String(record.value(), StandardCharsets.UTF_8));
        } catch (IllegalArgumentException malformed) {
            LOG.warn("group {}: offset {} of {} is no plan: {}", group, record.offset(), topic, malformed.getMessage());
        }
    }
}
