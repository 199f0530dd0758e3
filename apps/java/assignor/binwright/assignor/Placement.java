package binwright.assignor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * Places the partitions of a group on its members: even loads by few moves.
 *
 * <p>docs/design/assignor.md describes the rule. Members, topics and partitions are numbers from 0,
 * and equal input gives equal output. Nothing here is Kafka's.
 */
final class Placement {
    static final int NOBODY = -1;
    /** Loads of two members that differ by no more than this share of the mean are even. */
    private static final double TOLERANCE = 0.1;
    /** A step lowers the larger of two loads by more than this share of the load that it moves. */
    private static final double YIELD = 0.1;
    /** A partition costs its reader this share of the mean even if nothing is written to it. */
    private static final double IDLE = 0.01;
    /** Partitions looked at, after which it stops with what it has: a huge group takes 100 ms, and other groups wait. */
    private static final long MOST_WORK = 500_000;
    /** What two members that are compared cost beside, in partitions looked at. */
    private static final long PAIR_WORK = 10;

    private static final double ROUNDING = 1e-9;

    private final int[] topics;
    private final boolean[][] subscribed;
    private final double[] loads;
    private final double tolerance; // share of the mean
    private final double grain; // loads that differ by no more are even, too
    private final int[] owner;
    private final double[] total; // of each member
    private final List<TreeSet<Integer>> owned = new ArrayList<>(); // of each member, the smallest load first
    private final Comparator<Integer> byLoad;
    private final Comparator<Integer> byTotal; // of members
    private long steps;
    private long work; // so far

    private Placement(int[] topics, double[] rates, boolean[][] subscribed) {
        this.topics = topics;
        this.subscribed = subscribed;
        double sum = Arrays.stream(rates).filter(rate -> !Double.isNaN(rate)).sum();
        boolean hasLoads = sum > 0;
        double mean = hasLoads ? sum / Arrays.stream(rates).filter(rate -> !Double.isNaN(rate)).count() : 1;
        loads = Arrays.stream(rates)
                .map(rate -> hasLoads ? (Double.isNaN(rate) ? mean : rate) + IDLE * mean : 1)
                .toArray();
        tolerance = hasLoads ? TOLERANCE : 0;
        grain = hasLoads ? 0 : 1; // by number of partitions, members may differ by one
        byLoad = Comparator.<Integer>comparingDouble(one -> loads[one]).thenComparing(Comparator.naturalOrder());
        owner = new int[rates.length];
        Arrays.fill(owner, NOBODY);
        total = new double[subscribed.length];
        byTotal = Comparator.<Integer>comparingDouble(member -> total[member])
                .thenComparingInt(member -> owned.get(member).size())
                .thenComparing(Comparator.naturalOrder());
        for (int member = 0; member < subscribed.length; member++) {
            owned.add(new TreeSet<>(byLoad));
        }
    }

    /**
     * Returns the member that is to read each partition; {@link #NOBODY} if none subscribes to it.
     *
     * @param topics the topic of each partition
     * @param rates of each partition, in any unit, 0 or more; NaN: not known, and it counts as the mean.
     *     If none is known, or all are 0, members get equal numbers of partitions
     * @param subscribed of each member, whether it subscribes to each topic
     * @param current the member that reads each partition; {@link #NOBODY} if none does
     */
    static int[] place(int[] topics, double[] rates, boolean[][] subscribed, int[] current) {
        Placement placement = new Placement(topics, rates, subscribed);
        TreeSet<Integer> free = new TreeSet<>(placement.byLoad.reversed());
        for (int partition = 0; partition < current.length; partition++) {
            int member = current[partition];
            if (member != NOBODY && subscribed[member][topics[partition]]) {
                placement.give(partition, member);
            } else {
                free.add(partition);
            }
        }
        TreeSet<Integer> members = placement.members();
        free.forEach(partition -> placement.giveToLeastLoaded(partition, members));
        placement.evenOut();
        return placement.owner;
    }

    private void give(int partition, int member) {
        if (owner[partition] != NOBODY) {
            owned.get(owner[partition]).remove(partition);
            total[owner[partition]] -= loads[partition];
        }
        owner[partition] = member;
        owned.get(member).add(partition);
        total[member] += loads[partition];
    }

    /** Returns all members, the least loaded first. */
    private TreeSet<Integer> members() {
        TreeSet<Integer> members = new TreeSet<>(byTotal);
        IntStream.range(0, total.length).forEach(members::add);
        return members;
    }

    /** Gives a partition to a member, of members that keep their order. */
    private void give(int partition, int member, TreeSet<Integer> members) {
        int before = owner[partition];
        members.remove(member);
        if (before != NOBODY) {
            members.remove(before);
        }
        give(partition, member);
        members.add(member);
        if (before != NOBODY) {
            members.add(before);
        }
    }

    private void giveToLeastLoaded(int partition, TreeSet<Integer> members) {
        for (int member : members) {
            if (subscribed[member][topics[partition]]) {
                give(partition, member, members);
                return;
            }
        }
    }

    /** Evens the members out, until no step between any two is worth its moves. */
    private void evenOut() {
        long before;
        do {
            before = steps;
            pass();
        } while (steps > before && work < MOST_WORK);
    }

    /**
     * Has the most loaded member hand a partition to a less loaded one, or exchange one with it,
     * until they are even. A member that no step helps, such as one with a hot partition alone, is
     * left aside, and the others are evened out without it.
     */
    private void pass() {
        TreeSet<Integer> members = members();
        double sum = Arrays.stream(total).sum();
        while (members.size() > 1 && work < MOST_WORK) {
            int most = members.last();
            double mean = sum / members.size();
            double even = Math.max(grain, tolerance * mean) + ROUNDING * mean;
            Step best = null;
            for (int other : members) {
                if (best != null || total[most] - total[other] <= even) {
                    break;
                }
                best = bestStep(most, other);
            }
            if (best != null) {
                give(best.away, best.to, members);
                if (best.back != NOBODY) {
                    give(best.back, most, members);
                }
                steps++;
            } else if (total[most] - total[members.first()] <= even) {
                return;
            } else {
                members.remove(most);
                sum -= total[most];
            }
        }
    }

    /** Returns the step between two members that is worth the most; null if none is worth it. */
    private Step bestStep(int most, int other) {
        double gap = total[most] - total[other];
        work += PAIR_WORK;
        if (owned.get(most).isEmpty()) { // its load is what rounding left
            return null;
        }
        if (gap >= 2 * loads[owned.get(most).last()]) {
            // No exchange, and no smaller partition, is worth as much as the largest.
            for (int away : owned.get(most).descendingSet()) {
                work++;
                if (subscribed[other][topics[away]]) {
                    return better(null, new Step(away, NOBODY, other, worth(gap, loads[away], loads[away])));
                }
            }
            return null;
        }
        work += owned.get(most).size() + owned.get(other).size();
        int[] back = owned.get(other).stream()
                .mapToInt(one -> one)
                .filter(one -> subscribed[most][topics[one]])
                .toArray();
        Step best = null;
        for (int away : owned.get(most)) {
            if (!subscribed[other][topics[away]]) {
                continue;
            }
            best = better(best, new Step(away, NOBODY, other, worth(gap, loads[away], loads[away])));
            // The worth falls on both sides of the partition that closes the gap.
            int after = firstFrom(back, loads[away] - gap / 2);
            for (int index = Math.max(0, after - 1); index <= after && index < back.length; index++) {
                double difference = loads[away] - loads[back[index]];
                double moved = loads[away] + loads[back[index]];
                best = better(best, new Step(away, back[index], other, worth(gap, difference, moved)));
            }
        }
        return best;
    }

    /** Returns by how much the larger load falls, less the price of what is moved. */
    private static double worth(double gap, double difference, double moved) {
        return Math.min(difference, gap - difference) - YIELD * moved - ROUNDING * gap;
    }

    private static Step better(Step best, Step step) {
        return step.worth > (best == null ? 0 : best.worth) ? step : best;
    }

    private int firstFrom(int[] sorted, double load) {
        int low = 0;
        int high = sorted.length;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (loads[sorted[middle]] < load) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /** A partition that goes to another member, and one that comes back, or {@link #NOBODY}. */
    private static final class Step {
        final int away;
        final int back;
        final int to;
        final double worth;

        Step(int away, int back, int to, double worth) {
            this.away = away;
            this.back = back;
            this.to = to;
            this.worth = worth;
        }
    }
}
