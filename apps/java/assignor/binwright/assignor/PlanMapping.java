package binwright.assignor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/**
 * The rule by which an assignor gives the bins of a plan to the members of a group.
 *
 * <p>docs/design/assignor.md describes it and decide/mapping.py does the same; the cases of
 * tests/scaler/decide/vectors.json hold for both.
 */
final class PlanMapping {
    static final Comparator<TopicPartition> ORDER =
            Comparator.comparing(TopicPartition::topic).thenComparingInt(TopicPartition::partition);

    private final List<Map<TopicPartition, Long>> bins;
    private final List<Member> members;
    private final Set<TopicPartition> present = new TreeSet<>(ORDER);
    private final Map<String, List<Integer>> readers = new HashMap<>();
    private final Map<TopicPartition, Integer> current;
    private final Map<TopicPartition, Integer> target = new TreeMap<>(ORDER);
    private final List<Integer> stay = new ArrayList<>(); // places of members that may read

    private PlanMapping(
            List<Map<TopicPartition, Long>> plan,
            Collection<Member> group,
            Collection<TopicPartition> partitions,
            Set<String> leaving) {
        members = group.stream().sorted(Member::compare).collect(Collectors.toList());
        for (int place = 0; place < members.size(); place++) {
            if (!leaving.contains(members.get(place).id)) {
                stay.add(place);
            }
            for (String topic : members.get(place).topics) {
                readers.computeIfAbsent(topic, name -> new ArrayList<>()).add(place);
            }
        }
        if (stay.isEmpty()) {
            for (int place = 0; place < members.size(); place++) {
                stay.add(place);
            }
        }
        for (TopicPartition partition : partitions) {
            if (readers.containsKey(partition.topic())) {
                present.add(partition);
            }
        }
        current = owners(members);
        bins = new ArrayList<>();
        for (Map<TopicPartition, Long> bin : plan) {
            Map<TopicPartition, Long> left = new TreeMap<>(ORDER);
            left.putAll(bin);
            left.keySet().retainAll(present);
            if (!left.isEmpty()) {
                bins.add(left);
            }
        }
    }

    /** Returns the id of the member that is to read each partition. */
    static Map<TopicPartition, String> target(
            List<Map<TopicPartition, Long>> bins,
            Collection<Member> members,
            Collection<TopicPartition> partitions,
            Set<String> leaving) {
        PlanMapping mapping = new PlanMapping(bins, members, partitions, leaving);
        mapping.solve();
        Map<TopicPartition, String> result = new TreeMap<>(ORDER);
        mapping.target.forEach((partition, place) -> result.put(partition, mapping.members.get(place).id));
        return result;
    }

    /**
     * Returns what may be assigned in this rebalance by the cooperative protocol.
     *
     * <p>A partition that another member says it reads waits: that one gives it up, and joins again.
     */
    static Map<TopicPartition, String> handedOver(Map<TopicPartition, String> target, Collection<Member> members) {
        Map<TopicPartition, String> result = new TreeMap<>(ORDER);
        result.putAll(target);
        for (Member member : members) {
            for (TopicPartition partition : member.owned) {
                String owner = result.get(partition);
                if (owner != null && !owner.equals(member.id)) {
                    result.remove(partition);
                }
            }
        }
        return result;
    }

    /** Returns who reads each partition: the claim of the latest generation, of equal ones none. */
    private static Map<TopicPartition, Integer> owners(List<Member> members) {
        Map<TopicPartition, Integer> found = new HashMap<>();
        Map<TopicPartition, Integer> generations = new HashMap<>();
        for (int place = 0; place < members.size(); place++) {
            Member member = members.get(place);
            for (TopicPartition partition : member.owned) {
                Integer known = generations.get(partition);
                if (known == null || member.generation > known) {
                    found.put(partition, place);
                    generations.put(partition, member.generation);
                } else if (member.generation == known) {
                    found.remove(partition);
                }
            }
        }
        found.entrySet().removeIf(each -> !members.get(each.getValue()).topics.contains(each.getKey().topic()));
        return found;
    }

    private void solve() {
        boolean isStatic = members.stream().allMatch(member -> member.instance != null);
        int chosen = isStatic && !bins.isEmpty() ? Math.min(bins.size(), stay.size()) : stay.size();
        int[] memberOf = pairs(stay.subList(0, chosen));
        // A member has left, and the plan is for more: what the others read does not move for that.
        Set<Integer> settled = new HashSet<>();
        if (bins.size() > chosen) {
            present.stream().filter(current::containsKey).map(current::get).forEach(settled::add);
        }
        Set<Integer> filled = new HashSet<>();
        for (int bin = 0; bin < bins.size(); bin++) {
            if (memberOf[bin] >= 0) {
                filled.add(memberOf[bin]);
                for (TopicPartition partition : bins.get(bin).keySet()) {
                    Integer owner = current.get(partition);
                    boolean stays = settled.contains(memberOf[bin]) && owner != null && owner != memberOf[bin];
                    if (!stays && members.get(memberOf[bin]).topics.contains(partition.topic())) {
                        target.put(partition, memberOf[bin]);
                    }
                }
            }
        }
        for (TopicPartition partition : present) {
            Integer owner = current.get(partition);
            if (owner != null && stay.contains(owner)) {
                target.putIfAbsent(partition, owner);
            }
        }
        spread(filled.isEmpty() ? new HashSet<>(stay) : filled);
    }

    /** Returns the member of each bin, -1 for none: first where partitions stay, then in order. */
    private int[] pairs(List<Integer> candidates) {
        int chosen = candidates.size();
        int[] columnOfMember = new int[members.size()];
        Arrays.fill(columnOfMember, -1);
        for (int column = 0; column < chosen; column++) {
            columnOfMember[candidates.get(column)] = column;
        }
        int[][] shared = new int[bins.size()][chosen];
        Set<Integer> rows = new TreeSet<>();
        Set<Integer> columns = new TreeSet<>();
        for (int bin = 0; bin < bins.size(); bin++) {
            for (TopicPartition partition : bins.get(bin).keySet()) {
                Integer owner = current.get(partition);
                int column = owner == null ? -1 : columnOfMember[owner];
                if (column >= 0) {
                    shared[bin][column]++;
                    rows.add(bin);
                    columns.add(column);
                }
            }
        }
        List<Integer> columnList = new ArrayList<>(columns);
        int[][] kept = rows.stream()
                .map(bin -> columnList.stream().mapToInt(member -> shared[bin][member]).toArray())
                .toArray(int[][]::new);
        int[] memberOf = new int[bins.size()];
        Arrays.fill(memberOf, -1);
        boolean[] taken = new boolean[chosen];
        int row = 0;
        int[] columnOf = BinMatching.bestPairs(kept);
        for (int bin : rows) {
            int column = columnOf[row++];
            if (column >= 0) {
                memberOf[bin] = columnList.get(column);
                taken[memberOf[bin]] = true;
            }
        }
        int free = 0;
        for (int bin = 0; bin < bins.size(); bin++) {
            while (free < chosen && taken[free]) {
                free++;
            }
            if (memberOf[bin] < 0 && free < chosen) {
                memberOf[bin] = free++;
            }
            memberOf[bin] = memberOf[bin] < 0 ? -1 : candidates.get(memberOf[bin]);
        }
        return memberOf;
    }

    /** Gives each partition without a reader to the least loaded member, the largest first. */
    private void spread(Set<Integer> filled) {
        Map<TopicPartition, Long> known = new HashMap<>();
        bins.forEach(known::putAll);
        long sum = known.values().stream().mapToLong(Long::longValue).sum();
        long mean = known.isEmpty() ? 1 : Math.max(1, sum / known.size());
        long[] loads = new long[members.size()];
        int[] counts = new int[members.size()];
        target.forEach((partition, place) -> {
            loads[place] += known.getOrDefault(partition, mean);
            counts[place]++;
        });
        List<TopicPartition> left = new ArrayList<>(present);
        left.removeAll(target.keySet());
        left.sort(Comparator.comparingLong((TopicPartition one) -> -known.getOrDefault(one, mean)).thenComparing(ORDER));
        for (TopicPartition partition : left) {
            List<Integer> able = readers.get(partition.topic());
            List<Integer> first = able.stream().filter(filled::contains).collect(Collectors.toList());
            int best = -1;
            for (int place : first.isEmpty() ? able : first) {
                boolean isLess = best < 0
                        || loads[place] < loads[best]
                        || (loads[place] == loads[best] && counts[place] < counts[best]);
                best = isLess ? place : best;
            }
            loads[best] += known.getOrDefault(partition, mean);
            counts[best]++;
            target.put(partition, best);
        }
    }
}
