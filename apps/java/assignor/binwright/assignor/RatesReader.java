package binwright.assignor;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Follows the metrics topic on a thread of its own, as an ordinary client of the cluster.
 *
 * <p>A broker makes its assignors anew with each change of its settings and never closes one, so
 * equal settings share a reader.
 */
final class RatesReader implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(RatesReader.class);
    private static final Map<Map<String, Object>, RatesReader> READERS = new ConcurrentHashMap<>();
    private static final Duration POLL = Duration.ofSeconds(1);
    private static final Duration REQUEST = Duration.ofSeconds(10);
    private static final int LARGEST_RECORD = 1 << 20; // a monitor's are smaller
    /** Of a fetch, as compressed, and of what is read at once; a few bytes may inflate to gigabytes. */
    private static final int MOST_BYTES = 8 << 20;
    private static final int MOST_RECORDS = 16; // that the client inflates at once
    private static final int OVERHEAD_BYTES = 256; // of a record, however small
    private static final int BATCH_MS = 3_000; // a monitor measures each second, and the last pass counts

    private final Map<String, Object> client;
    private final String topic;
    private final long maxAgeMs;
    private final Retries retries;
    private final MeasuredRates rates = new MeasuredRates();
    private final KnownTopics known = new KnownTopics();
    private boolean hasRead;
    private volatile Map<Uuid, String> names = Map.of(); // of all topics

    RatesReader(Map<String, Object> client, String topic, long maxAgeMs, Retries.Pause pause) {
        this.client = client;
        this.topic = topic;
        this.maxAgeMs = maxAgeMs;
        retries = new Retries(pause);
    }

    /** Returns the reader of a broker with these settings; starts its thread the first time. */
    static RatesReader of(Map<String, ?> broker) {
        Map<String, Object> own = new HashMap<>();
        broker.forEach((name, value) -> {
            if (name.startsWith("binwright.")) {
                own.put(name, value);
            }
        });
        return READERS.computeIfAbsent(own, RatesReader::started);
    }

    private static RatesReader started(Map<String, Object> settings) {
        Map<String, Object> client = new HashMap<>();
        settings.forEach((name, value) -> {
            if (name.startsWith(LoadAssignor.CLIENT)) {
                client.put(name.substring(LoadAssignor.CLIENT.length()), value);
            }
        });
        if (!client.containsKey(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG)) {
            String missing = LoadAssignor.CLIENT + ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG;
            throw new ConfigException("Set " + missing + ": where binwright's metrics topic is read");
        }
        client.putIfAbsent(ConsumerConfig.CLIENT_ID_CONFIG, "binwright-assignor");
        client.putIfAbsent(ConsumerConfig.RECONNECT_BACKOFF_MS_CONFIG, "1000"); // the broker itself is starting
        Object topic = settings.getOrDefault(LoadAssignor.TOPIC, "binwright.metrics");
        Object age = settings.getOrDefault(LoadAssignor.MAX_AGE_MS, "600000");
        RatesReader reader;
        try {
            reader = new RatesReader(client, topic.toString(), Long.parseLong(age.toString()), Thread::sleep);
        } catch (NumberFormatException wrong) {
            throw new ConfigException(LoadAssignor.MAX_AGE_MS, age, "must be a number of milliseconds");
        }
        Thread thread = new Thread(reader, "binwright-rates");
        thread.setDaemon(true);
        thread.start();
        return reader;
    }

    /** Returns the bytes/s of the first `count` partitions of a topic, by number, as far as they are known and not stale. */
    Map<Integer, Double> of(Uuid id, int count) {
        String name = names.get(id);
        return name == null ? Map.of() : rates.since(name, count, System.currentTimeMillis() - maxAgeMs);
    }

    @Override
    public void run() {
        try {
            retries.forEver(this::follow, failed -> LOG.warn(
                    "topic {} cannot be read, rates become stale: {}", topic, failed.toString()));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Reads until something fails. */
    private void follow() throws ExecutionException, InterruptedException, TimeoutException {
        Map<String, Object> settings = new HashMap<>(client);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        settings.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "latest");
        settings.put(ConsumerConfig.FETCH_MIN_BYTES_CONFIG, MOST_BYTES);
        settings.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, BATCH_MS);
        settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, MOST_RECORDS);
        settings.put(ConsumerConfig.FETCH_MAX_BYTES_CONFIG, MOST_BYTES);
        settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, MOST_BYTES);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
                Admin admin = Admin.create(new HashMap<>(client))) {
            begin(consumer);
            while (true) {
                List<Measurement> measured = measurements(lastPasses(polled(consumer)), System.currentTimeMillis());
                measured.forEach(one -> known.note(one.topic));
                if (known.isDue(System.currentTimeMillis())) {
                    learn(topicNames(admin));
                    if (!known.has(topic)) { // it was deleted
                        hasRead = false;
                        consumer.unsubscribe();
                        begin(consumer);
                    }
                }
                take(measured);
                retries.succeeded();
            }
        }
    }

    /** Has a consumer read from the oldest rates that are not stale, once there is the topic. */
    private void begin(Consumer<byte[], byte[]> consumer) throws InterruptedException {
        List<TopicPartition> partitions = partitions(consumer);
        consumer.assign(partitions);
        if (hasRead) {
            return; // at the end: the rates are still known, and it is past a record that cannot be read
        }
        Map<TopicPartition, Long> since = new HashMap<>();
        partitions.forEach(each -> since.put(each, System.currentTimeMillis() - maxAgeMs));
        for (Map.Entry<TopicPartition, OffsetAndTimestamp> found : consumer.offsetsForTimes(since, REQUEST).entrySet()) {
            if (found.getValue() != null) { // nothing is that new: it is read from its end
                consumer.seek(found.getKey(), found.getValue().offset());
            }
        }
        hasRead = true;
    }

    /** Returns the partitions of the topic once it is there. */
    List<TopicPartition> partitions(Consumer<byte[], byte[]> consumer) throws InterruptedException {
        boolean isMissing = false;
        while (true) {
            List<PartitionInfo> found = consumer.partitionsFor(topic, REQUEST);
            if (!found.isEmpty()) {
                return found.stream()
                        .map(info -> new TopicPartition(info.topic(), info.partition()))
                        .collect(Collectors.toList());
            }
            if (!isMissing) {
                LOG.info("there is no topic {} yet: groups are assigned by numbers of partitions", topic);
            }
            isMissing = true;
            retries.pause();
        }
    }

    /** Returns the records that are there, newest first, up to about {@link #MOST_BYTES} of memory. */
    static Deque<ConsumerRecord<byte[], byte[]>> polled(Consumer<byte[], byte[]> consumer) {
        Deque<ConsumerRecord<byte[], byte[]>> newestFirst = new ArrayDeque<>();
        int bytes = 0;
        ConsumerRecords<byte[], byte[]> some = consumer.poll(POLL);
        while (!some.isEmpty()) {
            for (ConsumerRecord<byte[], byte[]> record : some) {
                long size = (record.key() == null ? 0L : record.key().length)
                        + (record.value() == null ? LARGEST_RECORD : record.value().length);
                bytes += OVERHEAD_BYTES;
                if (size < LARGEST_RECORD) {
                    newestFirst.addFirst(record);
                    bytes += (int) size;
                }
            }
            some = bytes < MOST_BYTES ? consumer.poll(Duration.ZERO) : ConsumerRecords.empty();
        }
        return newestFirst;
    }

    /** Returns the values of each key that are of its last pass: the others would be read for nothing. */
    private static Collection<String> lastPasses(Iterable<ConsumerRecord<byte[], byte[]>> newestFirst) {
        Map<String, String> passes = new HashMap<>();
        Deque<String> texts = new ArrayDeque<>();
        for (ConsumerRecord<byte[], byte[]> record : newestFirst) {
            String key = record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
            String text = new String(record.value(), StandardCharsets.UTF_8);
            int begin = text.indexOf("\"number\":"); // of the pass: a large topic takes several records
            String pass = begin < 0 ? "" : text.substring(begin, Math.max(begin, text.indexOf(',', begin)));
            if (passes.computeIfAbsent(key, none -> pass).equals(pass)) {
                texts.addFirst(text);
            }
        }
        return texts;
    }

    /** Returns what these texts measure; those that are no measurements are passed over. */
    List<Measurement> measurements(Collection<String> texts, long nowMs) {
        List<Measurement> found = new ArrayList<>();
        for (String text : texts) {
            try {
                found.add(Measurement.parse(text, nowMs));
            } catch (RuntimeException malformed) {
                LOG.debug("a record of {} is no measurement: {}", topic, malformed.getMessage());
            }
        }
        return found;
    }

    /** Remembers what was measured of topics that are known. */
    void take(List<Measurement> measured) {
        Map<String, List<Measurement>> byTopic = measured.stream()
                .filter(one -> known.has(one.topic))
                .collect(Collectors.groupingBy(one -> one.topic));
        byTopic.forEach((name, ofTopic) -> {
            try {
                rates.take(name, ofTopic);
            } catch (IllegalArgumentException tooMany) {
                LOG.debug("measurements in {} are not remembered: {}", topic, tooMany.getMessage());
            }
        });
    }

    private static Map<Uuid, String> topicNames(Admin admin)
            throws ExecutionException, InterruptedException, TimeoutException {
        return admin.listTopics().listings()
                .get(REQUEST.toMillis(), TimeUnit.MILLISECONDS).stream()
                .collect(Collectors.toMap(TopicListing::topicId, TopicListing::name));
    }

    /** Takes the ids and names of all topics. */
    void learn(Map<Uuid, String> found) {
        Set<String> all = Set.copyOf(found.values());
        known.learn(all, System.currentTimeMillis());
        rates.retain(all);
        names = found;
    }
}
