package binwright.assignor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Assigns partitions in the broker, by the bytes/s that binwright's monitor measures.
 *
 * <p>For groups of the protocol "consumer" (KIP-848) whose members name it. Without rates, or with
 * stale ones, members get equal numbers of partitions. Settings, among the broker's own: {@value
 * #CLIENT}*, {@value #TOPIC}, {@value #MAX_AGE_MS}.
 */
public final class LoadAssignor implements ConsumerGroupPartitionAssignor, Configurable {
    /** How the metrics topic is reached: what follows is a setting of Kafka's clients. */
    public static final String CLIENT = "binwright.client.";
    /** The topic with the measurements; "binwright.metrics" by default. */
    public static final String TOPIC = "binwright.metrics.topic";
    /** The age from which a rate is stale, ms; 600000 by default. */
    public static final String MAX_AGE_MS = "binwright.metrics.max.age.ms";
    /** What members set as `group.remote.assignor`. */
    public static final String NAME = "binwright";

    private static final Logger LOG = LoggerFactory.getLogger(LoadAssignor.class);

    private RatesReader rates;

    @Override
    public void configure(Map<String, ?> broker) {
        rates = RatesReader.of(broker);
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        List<String> members = new ArrayList<>(group.memberIds());
        Comparator<String> byInstance = Comparator.comparing(
                id -> group.memberSubscription(id).instanceId().orElse(id));
        members.sort(byInstance.thenComparing(Comparator.naturalOrder()));
        TreeSet<Uuid> every = new TreeSet<>();
        members.forEach(id -> every.addAll(group.memberSubscription(id).subscribedTopicIds()));
        every.removeIf(topic -> topics.numPartitions(topic) <= 0); // deleted meanwhile
        List<Uuid> ids = new ArrayList<>(every);

        int[] first = new int[ids.size() + 1]; // of each topic: the place of its partition 0
        for (int topic = 0; topic < ids.size(); topic++) {
            first[topic + 1] = first[topic] + topics.numPartitions(ids.get(topic));
        }
        int count = first[ids.size()];
        int[] topicOf = new int[count];
        double[] loads = new double[count];
        Arrays.fill(loads, Double.NaN);
        int known = 0;
        for (int topic = 0; topic < ids.size(); topic++) {
            Arrays.fill(topicOf, first[topic], first[topic + 1], topic);
            int size = first[topic + 1] - first[topic];
            for (Map.Entry<Integer, Double> rate : rates.of(ids.get(topic), size).entrySet()) {
                loads[first[topic] + rate.getKey()] = rate.getValue();
                known++;
            }
        }
        boolean[][] subscribed = new boolean[members.size()][ids.size()];
        int[] current = new int[count];
        Arrays.fill(current, Placement.NOBODY);
        for (int member = 0; member < members.size(); member++) {
            String id = members.get(member);
            MemberSubscription subscription = group.memberSubscription(id);
            for (Map.Entry<Uuid, Set<Integer>> reads : group.memberAssignment(id).partitions().entrySet()) {
                int topic = Collections.binarySearch(ids, reads.getKey());
                for (int number : topic < 0 ? Set.<Integer>of() : reads.getValue()) {
                    if (number < first[topic + 1] - first[topic]) {
                        current[first[topic] + number] = member;
                    }
                }
            }
            for (int topic = 0; topic < ids.size(); topic++) {
                subscribed[member][topic] = subscription.subscribedTopicIds().contains(ids.get(topic));
            }
        }
        int[] target = Placement.place(topicOf, loads, subscribed, current);

        List<Map<Uuid, Set<Integer>>> assigned = new ArrayList<>();
        members.forEach(id -> assigned.add(new HashMap<>()));
        int moved = 0;
        for (int place = 0; place < count; place++) {
            if (target[place] != Placement.NOBODY) {
                Uuid topic = ids.get(topicOf[place]);
                assigned.get(target[place]).computeIfAbsent(topic, id -> new HashSet<>()).add(place - first[topicOf[place]]);
            }
            moved += target[place] == current[place] ? 0 : 1;
        }
        LOG.info("assigns {} partitions, {} with a known rate, to {} members: {} move",
                count, known, members.size(), moved);
        Map<String, MemberAssignment> result = new HashMap<>();
        for (int member = 0; member < members.size(); member++) {
            Map<Uuid, Set<Integer>> partitions = assigned.get(member);
            result.put(members.get(member), () -> partitions);
        }
        return new GroupAssignment(result);
    }
}
