package binwright.assignor;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/** Prints what the rule makes of each case of a file: a line of partitions for target and assigned. */
public final class RuleCases {
    private RuleCases() {
    }

    public static void main(String[] arguments) throws IOException {
        String text = new String(Files.readAllBytes(Path.of(arguments[0])), StandardCharsets.UTF_8);
        for (Object each : (List<?>) Json.parse(text)) {
            Map<?, ?> one = (Map<?, ?>) each;
            List<Member> members = members((Map<?, ?>) one.get("members"));
            List<Map<TopicPartition, Long>> bins = new ArrayList<>();
            for (Object bin : (List<?>) one.get("bins")) {
                Map<TopicPartition, Long> loads = new HashMap<>();
                ((Map<?, ?>) bin).forEach((name, load) -> loads.put(GroupPlan.partition((String) name), (Long) load));
                bins.add(loads);
            }
            List<TopicPartition> partitions = new ArrayList<>();
            ((Map<?, ?>) one.get("partitions")).forEach((topic, count) -> {
                for (int number = 0; number < (Long) count; number++) {
                    partitions.add(new TopicPartition((String) topic, number));
                }
            });
            Map<TopicPartition, String> target = PlanMapping.target(
                    bins, members, partitions, new HashSet<>(strings(one.get("leaving"))));
            System.out.println(line(target) + "|" + line(PlanMapping.handedOver(target, members)));
        }
    }

    private static List<Member> members(Map<?, ?> found) {
        List<Member> members = new ArrayList<>();
        found.forEach((id, value) -> {
            Map<?, ?> fields = (Map<?, ?>) value;
            Object generation = fields.get("generation");
            members.add(new Member(
                    (String) id,
                    (String) fields.get("instance"),
                    strings(fields.get("topics")),
                    strings(fields.get("owned")).stream().map(GroupPlan::partition).collect(Collectors.toList()),
                    generation == null ? -1 : ((Long) generation).intValue()));
        });
        return members;
    }

    private static List<String> strings(Object found) {
        List<String> result = new ArrayList<>();
        if (found != null) {
            ((List<?>) found).forEach(each -> result.add((String) each));
        }
        return result;
    }

    private static String line(Map<TopicPartition, String> owners) {
        return owners.entrySet().stream()
                .map(each -> each.getKey() + "=" + each.getValue())
                .collect(Collectors.joining(" "));
    }
}
