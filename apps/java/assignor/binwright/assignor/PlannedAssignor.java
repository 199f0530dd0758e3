package binwright.assignor;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Assigns partitions by the plan of binwright's controller, with few moves and cooperatively.
 *
 * <p>Without a plan, or with one that is too old, it assigns like {@link CooperativeStickyAssignor}.
 * Settings, among the consumer's own: {@value #TOPIC}, {@value #DEADLINE_MS}.
 */
public final class PlannedAssignor implements ConsumerPartitionAssignor, Configurable {
    /** The topic with the plans; "binwright.plans" by default. */
    public static final String TOPIC = "binwright.plans.topic";
    /** For how long the leader of the group reads plans in a rebalance at most, ms; 2000 by default. */
    public static final String DEADLINE_MS = "binwright.plans.deadline.ms";
    /** The name of the protocol in the group. */
    public static final String NAME = "binwright";

    private static final Logger LOG = LoggerFactory.getLogger(PlannedAssignor.class);

    private final CooperativeStickyAssignor fallback = new CooperativeStickyAssignor();
    private PlansTopic plans;

    @Override
    public void configure(Map<String, ?> consumer) {
        Object topic = consumer.get(TOPIC);
        Object deadline = consumer.get(DEADLINE_MS);
        plans = new PlansTopic(
                consumer,
                topic == null ? "binwright.plans" : topic.toString(),
                String.valueOf(consumer.get(ConsumerConfig.GROUP_ID_CONFIG)),
                deadline == null ? 2000 : Long.parseLong(deadline.toString()));
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public short version() {
        return fallback.version();
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return fallback.supportedProtocols();
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        return fallback.subscriptionUserData(topics);
    }

    @Override
    public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
        fallback.onAssignment(assignment, metadata);
    }

    @Override
    public GroupAssignment assign(Cluster cluster, GroupSubscription group) {
        Optional<GroupPlan> plan = plans.last().filter(one -> one.isValid(System.currentTimeMillis()));
        List<Member> members = members(group);
        Map<TopicPartition, String> target;
        if (plan.isPresent()) {
            LOG.info("follows plan {} of group {}", plan.get().generation, plan.get().group);
            target = PlanMapping.target(
                    plan.get().bins, members, partitions(cluster, members), plan.get().leaving);
        } else {
            LOG.info("there is no plan, or it is too old: assigns like {}", fallback.name());
            target = byFallback(cluster, group);
        }
        Map<String, List<TopicPartition>> assigned = new HashMap<>();
        members.forEach(member -> assigned.put(member.id, new ArrayList<>()));
        PlanMapping.handedOver(target, members).forEach((partition, id) -> assigned.get(id).add(partition));
        Map<String, Assignment> result = new HashMap<>();
        assigned.forEach((id, partitions) -> result.put(id, new Assignment(partitions)));
        return new GroupAssignment(result);
    }

    private static List<Member> members(GroupSubscription group) {
        List<Member> found = new ArrayList<>();
        group.groupSubscription().forEach((id, subscription) -> found.add(new Member(
                id,
                subscription.groupInstanceId().orElse(null),
                subscription.topics(),
                subscription.ownedPartitions(),
                subscription.generationId().orElse(-1))));
        return found;
    }

    private static Set<TopicPartition> partitions(Cluster cluster, Collection<Member> members) {
        Set<TopicPartition> found = new HashSet<>();
        for (Member member : members) {
            for (String topic : member.topics) {
                cluster.partitionsForTopic(topic)
                        .forEach(info -> found.add(new TopicPartition(info.topic(), info.partition())));
            }
        }
        return found;
    }

    private Map<TopicPartition, String> byFallback(Cluster cluster, GroupSubscription group) {
        Map<TopicPartition, String> found = new HashMap<>();
        fallback.assign(cluster, group).groupAssignment().forEach((id, assignment) ->
                assignment.partitions().forEach(partition -> found.put(partition, id)));
        return found;
    }
}
