// What a monitor asks, once a second, by Kafka's own AdminClient.

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

public final class AdminCalls {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        String topic = arguments[1];
        try (Admin admin = Admin.create(settings)) {
            while (true) {
                long begin = System.nanoTime();
                Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
                Map<TopicPartition, OffsetSpec> starts = new HashMap<>();
                admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().forEach(
                        found -> {
                            TopicPartition partition = new TopicPartition(topic, found.partition());
                            ends.put(partition, OffsetSpec.latest());
                            starts.put(partition, OffsetSpec.earliest());
                        });
                List<Integer> brokers =
                        admin.describeCluster().nodes().get().stream().map(node -> node.id()).toList();
                var told = admin.listOffsets(ends).all();
                var sizes = admin.describeLogDirs(brokers).allDescriptions();
                var first = admin.listOffsets(starts).all();
                System.out.println("measured " + told.get().size() + " " + sizes.get().size() + " " + first.get().size());
                long rest = 1_000 - (System.nanoTime() - begin) / 1_000_000;
                Thread.sleep(Math.max(0, rest));
            }
        }
    }
}
