package binwright.assignor;

import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.TopicPartition;

/** One member of the group, as its leader sees it. */
final class Member {
    private static final Pattern NUMBERED = Pattern.compile("(.*?)([0-9]{1,9})", Pattern.DOTALL);

    final String id;
    final String instance; // its group.instance.id; null: it has none
    final Set<String> topics;
    final Set<TopicPartition> owned;
    final int generation; // of the group, in which it got what it owns; -1: it does not say
    private final String prefix;
    private final long number;

    Member(String id, String instance, Collection<String> topics, Collection<TopicPartition> owned, int generation) {
        this.id = id;
        this.instance = instance;
        this.topics = Collections.unmodifiableSet(new HashSet<>(topics));
        this.owned = Collections.unmodifiableSet(new HashSet<>(owned));
        this.generation = generation;
        String name = instance == null ? id : instance;
        Matcher numbered = NUMBERED.matcher(name);
        boolean matches = numbered.matches();
        this.prefix = matches ? numbered.group(1) : name;
        this.number = matches ? Long.parseLong(numbered.group(2)) : -1;
    }

    /** The group's order: by name, `pod-2` before `pod-10`. */
    static int compare(Member one, Member other) {
        int result = one.prefix.compareTo(other.prefix);
        if (result == 0) {
            result = Long.compare(one.number, other.number);
        }
        return result == 0 ? one.id.compareTo(other.id) : result;
    }
}
