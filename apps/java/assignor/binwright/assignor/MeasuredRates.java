package binwright.assignor;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The rates of partitions that monitors measured last.
 *
 * <p>One thread writes, any may read, and no reader waits.
 */
final class MeasuredRates {
    /** Partitions that are remembered at most, of all topics: 16 bytes each. */
    static final long MOST_PARTITIONS = 1_000_000;
    private static final String KIND = "measurement/2";
    private static final int RATE = 1; // places of values in a row, as in protocol/metrics.py
    private static final int QUALITY = 8;
    private static final int AGE_S = 9;
    /** A rate over less than half of the monitor's window, or without a new sample, is not trusted. */
    private static final Set<String> TRUSTED = Set.of("measured", "estimated");

    private final Map<String, Topic> topics = new ConcurrentHashMap<>();
    private long size;

    /**
     * Takes a record of the metrics topic.
     *
     * @return the topic that it is about
     * @throws IllegalArgumentException if it is no measurement, or there are too many partitions
     */
    String take(String text) {
        try {
            Map<?, ?> fields = (Map<?, ?>) Json.parse(text);
            if (!KIND.equals(fields.get("kind"))) {
                throw new IllegalArgumentException("kind is " + fields.get("kind") + ", not " + KIND);
            }
            String topic = (String) fields.get("topic");
            long atMs = (Long) fields.get("at_ms");
            long count = (Long) fields.get("count");
            Topic before = topics.get(topic);
            int old = before == null ? 0 : before.rates.length;
            if (count < 0 || size - old + count > MOST_PARTITIONS) {
                throw new IllegalArgumentException(topic + " has " + count + " partitions: too many");
            }
            Topic after = new Topic(before, (int) count);
            for (Object each : (List<?>) fields.get("partitions")) {
                after.take((List<?>) each, atMs);
            }
            topics.put(topic, after);
            size += count - old;
            return topic;
        } catch (ClassCastException | NullPointerException | IndexOutOfBoundsException wrong) {
            throw new IllegalArgumentException("a field is missing or has the wrong type", wrong);
        }
    }

    /** Forgets all topics but these. */
    void retain(Set<String> names) {
        topics.keySet().retainAll(names);
        size = topics.values().stream().mapToLong(topic -> topic.rates.length).sum();
    }

    /** Returns the bytes/s of the partitions of a topic that were measured since then, by number. */
    Map<Integer, Double> since(String name, long sinceMs) {
        Topic topic = topics.get(name);
        Map<Integer, Double> found = new HashMap<>();
        for (int number = 0; topic != null && number < topic.rates.length; number++) {
            if (topic.atMs[number] >= sinceMs) {
                found.put(number, topic.rates[number]);
            }
        }
        return found;
    }

    /** The rates of one topic; it does not change once it is in the map. */
    private static final class Topic {
        private final double[] rates; // bytes/s
        private final long[] atMs; // wall clock, ms since 1970; 0: never

        Topic(Topic before, int count) {
            rates = before == null ? new double[count] : Arrays.copyOf(before.rates, count);
            atMs = before == null ? new long[count] : Arrays.copyOf(before.atMs, count);
        }

        private void take(List<?> row, long measuredMs) {
            int number = ((Long) row.get(0)).intValue();
            Object rate = row.get(RATE);
            if (rate == null || (row.size() > QUALITY && !TRUSTED.contains(row.get(QUALITY)))) {
                return; // what was known of it grows old
            }
            double value = ((Number) rate).doubleValue();
            if (!(value >= 0 && value < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("not a rate: " + rate);
            }
            double ageS = row.size() > AGE_S ? ((Number) row.get(AGE_S)).doubleValue() : 0;
            rates[number] = value;
            atMs[number] = measuredMs - (long) (1000 * ageS);
        }
    }
}
