package binwright.assignor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
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
    /** Partitions looked at, after which it stops with what it has: a huge group takes a second. */
    private static final long MOST_WORK = 5_000_000;

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
    private long steps;

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
        free.forEach(placement::giveToLeastLoaded);
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

    private void giveToLeastLoaded(int partition) {
        int least = NOBODY;
        for (int member = 0; member < total.length; member++) {
            if (subscribed[member][topics[partition]] && (least == NOBODY || isLess(member, least))) {
                least = member;
            }
        }
        if (least != NOBODY) {
            give(partition, least);
        }
    }

    private boolean isLess(int member, int other) {
        int byTotal = Double.compare(total[member], total[other]);
        return byTotal < 0 || (byTotal == 0 && owned.get(member).size() < owned.get(other).size());
    }

    /** Evens the members out, until no step between any two is worth its moves. */
    private void evenOut() {
        long work = 0;
        long before;
        do {
            before = steps;
            work += pass(MOST_WORK - work);
        } while (steps > before && work < MOST_WORK);
    }

    /**
     * Has the most loaded member hand a partition to a less loaded one, or exchange one with it,
     * until they are even. A member that no step helps, such as one with a hot partition alone, is
     * left aside, and the others are evened out without it.
     *
     * @return how many partitions were looked at
     */
    private long pass(long mostWork) {
        Comparator<Integer> byTotal = Comparator.comparingDouble(member -> total[member]);
        Comparator<Integer> order = byTotal.thenComparing(Comparator.naturalOrder());
        List<Integer> members = IntStream.range(0, total.length).boxed().sorted(order).collect(Collectors.toList());
        long work = 0;
        while (members.size() > 1 && work < mostWork) {
            int most = members.get(members.size() - 1);
            double mean = members.stream().mapToDouble(member -> total[member]).sum() / members.size();
            double even = Math.max(grain, tolerance * mean) + ROUNDING * mean;
            if (total[most] - total[members.get(0)] <= even) {
                break;
            }
            work += members.size();
            Step best = null;
            for (int index = 0; best == null && total[most] - total[members.get(index)] > even; index++) {
                best = bestStep(most, members.get(index));
                work += owned.get(most).size() + owned.get(members.get(index)).size();
            }
            if (best == null) {
                members.remove(members.size() - 1);
                continue;
            }
            int other = best.to;
            give(best.away, other);
            if (best.back != NOBODY) {
                give(best.back, most);
            }
            steps++;
            members.sort(order);
        }
        return work;
    }

    /** Returns the step between two members that is worth the most; null if none is worth it. */
    private Step bestStep(int most, int other) {
        double gap = total[most] - total[other];
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
