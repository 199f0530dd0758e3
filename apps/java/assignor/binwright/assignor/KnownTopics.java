package binwright.assignor;

import java.util.HashSet;
import java.util.Set;

/** The topics that there are by the last look-up, and when the next one is due. */
final class KnownTopics {
    private static final long PERIOD_MS = 60_000; // topics may be deleted, and made anew
    private static final long NEW_MS = 5_000; // one was measured that the last look-up was too early for
    private static final int MOST_UNKNOWN = 10_000;

    private Set<String> known = Set.of();
    private Set<String> missed = Set.of(); // measured, and the last look-up did not find them
    private Set<String> unknown = new HashSet<>(); // measured since
    private boolean isNew; // one of them is not among those that were missed
    private long learntMs; // wall clock, ms since 1970; 0: never

    boolean has(String name) {
        return known.contains(name);
    }

    /** Takes a name that was measured: one that is not known is looked up. */
    void note(String name) {
        if (!has(name) && unknown.size() < MOST_UNKNOWN && unknown.add(name)) {
            isNew |= !missed.contains(name); // else the look-ups would never end
        }
    }

    boolean isDue(long nowMs) {
        return learntMs == 0 || nowMs - learntMs >= (isNew ? NEW_MS : PERIOD_MS);
    }

    /** Takes the names that a look-up found. */
    void learn(Set<String> names, long nowMs) {
        known = names;
        unknown.removeAll(names);
        missed = unknown;
        unknown = new HashSet<>();
        isNew = false;
        learntMs = nowMs;
    }
}
