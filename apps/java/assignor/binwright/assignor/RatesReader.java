package binwright.assignor;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.InterruptException;
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
    private static final long RETRY_MS = 5_000; // after a failure
    private static final long NAMES_MS = 60_000; // topics may be deleted, and made anew
    private static final long NEW_NAMES_MS = 5_000; // a topic was measured whose id is not known
    private static final int MOST_BYTES = 8 << 20;
    private static final int BATCH_MS = 3_000; // a monitor measures each second, and the last pass counts

    private final Map<String, Object> client;
    private final String topic;
    private final long maxAgeMs;
    private final MeasuredRates rates = new MeasuredRates();
    private volatile Map<Uuid, String> names = Map.of(); // of all topics

    private RatesReader(Map<String, Object> client, String topic, long maxAgeMs) {
        this.client = client;
        this.topic = topic;
        this.maxAgeMs = maxAgeMs;
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
        Object age = settings.getOrDefault(LoadAssignor.MAX_AGE_MS, "60000");
        RatesReader reader;
        try {
            reader = new RatesReader(client, topic.toString(), Long.parseLong(age.toString()));
        } catch (NumberFormatException wrong) {
            throw new ConfigException(LoadAssignor.MAX_AGE_MS, age, "must be a number of milliseconds");
        }
        Thread thread = new Thread(reader, "binwright-rates");
        thread.setDaemon(true);
        thread.start();
        return reader;
    }

    /** Returns the bytes/s of the partitions of a topic, by number, as far as they are known and not stale. */
    Map<Integer, Double> of(Uuid id) {
        String name = names.get(id);
        return name == null ? Map.of() : rates.since(name, System.currentTimeMillis() - maxAgeMs);
    }

    @Override
    public void run() {
        CountDownLatch stopped = new CountDownLatch(1);
        try {
            do {
                try {
                    follow();
                } catch (InterruptException interrupted) {
                    return;
                } catch (RuntimeException | ExecutionException | TimeoutException failed) {
                    LOG.warn("topic {} cannot be read, rates become stale: {}", topic, failed.toString());
                }
            } while (!stopped.await(RETRY_MS, TimeUnit.MILLISECONDS));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Reads until something fails, or the topic is not there. */
    private void follow() throws ExecutionException, InterruptedException, TimeoutException {
        Map<String, Object> settings = new HashMap<>(client);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        settings.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "latest");
        settings.put(ConsumerConfig.FETCH_MIN_BYTES_CONFIG, MOST_BYTES);
        settings.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, BATCH_MS);
        settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, Integer.MAX_VALUE); // the bytes are bounded
        settings.put(ConsumerConfig.FETCH_MAX_BYTES_CONFIG, MOST_BYTES);
        settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, MOST_BYTES);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
                Admin admin = Admin.create(new HashMap<>(client))) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic, REQUEST).stream()
                    .map(info -> new TopicPartition(info.topic(), info.partition()))
                    .collect(Collectors.toList());
            if (partitions.isEmpty()) {
                LOG.info("there is no topic {} yet: groups are assigned by numbers of partitions", topic);
                return;
            }
            consumer.assign(partitions);
            Map<TopicPartition, Long> since = new HashMap<>();
            partitions.forEach(each -> since.put(each, System.currentTimeMillis() - maxAgeMs));
            for (Map.Entry<TopicPartition, OffsetAndTimestamp> found :
                    consumer.offsetsForTimes(since, REQUEST).entrySet()) {
                if (found.getValue() != null) { // nothing is that new: it is read from its end
                    consumer.seek(found.getKey(), found.getValue().offset());
                }
            }
            Set<String> known = new HashSet<>();
            long namesNs = System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(NAMES_MS);
            while (true) {
                Set<String> measured = new HashSet<>();
                lastPasses(consumer.poll(POLL)).forEach(text -> take(text, measured));
                long passedMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - namesNs);
                if (passedMs >= (known.containsAll(measured) ? NAMES_MS : NEW_NAMES_MS)) {
                    known = learnNames(admin);
                    namesNs = System.nanoTime();
                }
            }
        }
    }

    /** Returns the values of each key that are of its last pass: the others would be read for nothing. */
    private static List<String> lastPasses(Iterable<ConsumerRecord<byte[], byte[]>> records) {
        Deque<ConsumerRecord<byte[], byte[]>> newestFirst = new ArrayDeque<>();
        records.forEach(newestFirst::addFirst);
        Map<String, String> passes = new HashMap<>();
        Deque<String> texts = new ArrayDeque<>();
        for (ConsumerRecord<byte[], byte[]> record : newestFirst) {
            if (record.value() == null) {
                continue;
            }
            String key = record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
            String text = new String(record.value(), StandardCharsets.UTF_8);
            int begin = text.indexOf("\"number\":"); // of the pass: a large topic takes several records
            String pass = begin < 0 ? "" : text.substring(begin, Math.max(begin, text.indexOf(',', begin)));
            if (passes.computeIfAbsent(key, none -> pass).equals(pass)) {
                texts.addFirst(text);
            }
        }
        return List.copyOf(texts);
    }

    private void take(String text, Set<String> measured) {
        try {
            measured.add(rates.take(text));
        } catch (IllegalArgumentException malformed) {
            LOG.debug("a record of {} is no measurement: {}", topic, malformed.getMessage());
        }
    }

    /** Looks up the ids of all topics, and returns their names. */
    private Set<String> learnNames(Admin admin) throws ExecutionException, InterruptedException, TimeoutException {
        Map<Uuid, String> found = admin.listTopics().listings()
                .get(REQUEST.toMillis(), TimeUnit.MILLISECONDS).stream()
                .collect(Collectors.toMap(TopicListing::topicId, TopicListing::name));
        Set<String> all = new HashSet<>(found.values());
        rates.retain(all);
        names = found;
        return all;
    }
}
