package binwright.assignor;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

/** A plan of the scaler: which partitions one member of a group is to read. */
final class GroupPlan {
    private static final String KIND = "group-plan/1";

    final String group;
    final long generation;
    final long atMs; // wall clock, ms since 1970
    final long validMs;
    final List<Map<TopicPartition, Long>> bins; // loads, in thousandths of a member's capacity
    final Set<String> leaving; // ids of members that are to read nothing

    private GroupPlan(
            String group, long generation, long atMs, long validMs,
            List<Map<TopicPartition, Long>> bins, Set<String> leaving) {
        this.group = group;
        this.generation = generation;
        this.atMs = atMs;
        this.validMs = validMs;
        this.bins = Collections.unmodifiableList(bins);
        this.leaving = Collections.unmodifiableSet(leaving);
    }

    /** Returns whether the plan is in force at this time, ms since 1970; clocks may differ. */
    boolean isValid(long nowMs) {
        return Math.abs(nowMs - atMs) <= validMs;
    }

    /** Reads a record of the plans topic; throws IllegalArgumentException if it is no plan. */
    static GroupPlan parse(String text) {
        try {
            Map<?, ?> fields = (Map<?, ?>) Json.parse(text);
            if (!KIND.equals(fields.get("kind"))) {
                throw new IllegalArgumentException("kind is " + fields.get("kind") + ", not " + KIND);
            }
            List<Map<TopicPartition, Long>> bins = new ArrayList<>();
            for (Object bin : (List<?>) fields.get("bins")) {
                Map<TopicPartition, Long> loads = new HashMap<>();
                ((Map<?, ?>) bin).forEach((name, load) -> loads.put(
                        partition((String) name), Objects.requireNonNull((Long) load)));
                bins.add(loads);
            }
            Set<String> leaving = new HashSet<>();
            if (fields.containsKey("leaving")) { // controllers before 0.1 know no such field
                ((List<?>) fields.get("leaving")).forEach(id -> leaving.add(Objects.requireNonNull((String) id)));
            }
            return new GroupPlan(
                    Objects.requireNonNull((String) fields.get("group")),
                    (Long) fields.get("generation"),
                    (Long) fields.get("at_ms"),
                    (Long) fields.get("valid_ms"),
                    bins,
                    leaving);
        } catch (ClassCastException | NullPointerException wrong) {
            throw new IllegalArgumentException("a field is missing or has the wrong type", wrong);
        }
    }

    /** Reads `orders-3`. */
    static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        if (dash <= 0) {
            throw new IllegalArgumentException("not a partition: " + name);
        }
        return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }
}
