package binwright.assignor;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The rates that one record of the metrics topic has, as far as they can be trusted. */
final class Measurement {
    /** Partitions of a topic at most, as {@link MeasuredRates} remembers no more. */
    static final int MOST_PARTITIONS = 1_000_000;
    private static final String KIND = "measurement/2";
    private static final int RATE = 1; // places of values in a row, as in protocol/metrics.py
    private static final int QUALITY = 8;
    private static final int AGE_S = 9;
    /** A rate over less than half of the monitor's window, or without a new sample, is not trusted. */
    private static final Set<String> TRUSTED = Set.of("measured", "estimated");

    final String topic;
    final int count; // partitions that the topic has
    final int[] numbers; // of the partitions that follow
    final double[] rates; // bytes/s
    final long[] atMs; // wall clock, ms since 1970, not after it was read

    private Measurement(String topic, int count, List<?> rows, long measuredMs, long nowMs) {
        this.topic = topic;
        this.count = count;
        int[] places = new int[rows.size()];
        double[] values = new double[rows.size()];
        long[] times = new long[rows.size()];
        int known = 0;
        for (Object each : rows) {
            List<?> row = (List<?>) each;
            long number = (Long) row.get(0);
            if (number < 0 || number >= count) {
                throw new IllegalArgumentException(topic + " has no partition " + number);
            }
            Object rate = row.get(RATE);
            if (rate == null || (row.size() > QUALITY && !TRUSTED.contains(row.get(QUALITY)))) {
                continue; // what was known of it grows old
            }
            double value = ((Number) rate).doubleValue();
            if (!(value >= 0 && value < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("not a rate: " + rate);
            }
            double ageS = row.size() > AGE_S ? ((Number) row.get(AGE_S)).doubleValue() : 0;
            places[known] = (int) number;
            values[known] = value;
            // Of a monitor whose clock is ahead, or of a forger: it must grow old like any other.
            times[known++] = Math.min(nowMs, measuredMs - (long) (1000 * ageS));
        }
        numbers = Arrays.copyOf(places, known);
        rates = Arrays.copyOf(values, known);
        atMs = Arrays.copyOf(times, known);
    }

    /**
     * Reads a record that is met now.
     *
     * @throws IllegalArgumentException if it is no measurement, or of too many partitions
     */
    static Measurement parse(String text, long nowMs) {
        try {
            Map<?, ?> fields = (Map<?, ?>) Json.parse(text);
            if (!KIND.equals(fields.get("kind"))) {
                throw new IllegalArgumentException("kind is " + fields.get("kind") + ", not " + KIND);
            }
            String topic = (String) fields.get("topic");
            long count = (Long) fields.get("count");
            long measuredMs = (Long) fields.get("at_ms");
            if (topic.isEmpty() || measuredMs < 0 || count < 0 || count > MOST_PARTITIONS) {
                throw new IllegalArgumentException(count + " partitions at " + measuredMs + ": out of range");
            }
            return new Measurement(topic, (int) count, (List<?>) fields.get("partitions"), measuredMs, nowMs);
        } catch (ClassCastException | NullPointerException | IndexOutOfBoundsException wrong) {
            throw new IllegalArgumentException("a field is missing or has the wrong type", wrong);
        }
    }
}
