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
    private final Map<String, Topic> topics = new ConcurrentHashMap<>();
    private long size; // partitions, of all topics: 16 bytes each

    /**
     * Takes what was read of one topic, in order.
     *
     * <p>All at once: its arrays are copied each time, and a record may name a large topic without a row.
     *
     * @param measured at least one, all of this topic; the last one tells how many partitions it has
     * @throws IllegalArgumentException if these were too many partitions, of all topics
     */
    void take(String name, List<Measurement> measured) {
        int count = measured.get(measured.size() - 1).count;
        Topic before = topics.get(name);
        int old = before == null ? 0 : before.rates.length;
        if (size - old + count > Measurement.MOST_PARTITIONS) {
            throw new IllegalArgumentException(name + " has " + count + " partitions: too many");
        }
        topics.put(name, new Topic(before, count, measured));
        size += count - old;
    }

    /** Forgets all topics but these. */
    void retain(Set<String> names) {
        topics.keySet().retainAll(names);
        size = topics.values().stream().mapToLong(topic -> topic.rates.length).sum();
    }

    /** Returns the bytes/s of the first `count` partitions of a topic that were measured since then, by number. */
    Map<Integer, Double> since(String name, int count, long sinceMs) {
        Topic topic = topics.get(name);
        Map<Integer, Double> found = new HashMap<>();
        for (int number = 0; topic != null && number < Math.min(count, topic.rates.length); number++) {
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

        Topic(Topic before, int count, List<Measurement> measured) {
            rates = before == null ? new double[count] : Arrays.copyOf(before.rates, count);
            atMs = before == null ? new long[count] : Arrays.copyOf(before.atMs, count);
            for (Measurement one : measured) {
                for (int row = 0; row < one.numbers.length; row++) {
                    if (one.numbers[row] < count) { // else the topic has fewer since
                        rates[one.numbers[row]] = one.rates[row];
                        atMs[one.numbers[row]] = one.atMs[row];
                    }
                }
            }
        }
    }
}
