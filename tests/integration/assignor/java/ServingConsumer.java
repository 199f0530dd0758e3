import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;

/**
 * An ordinary consumer that takes a fixed time for each record, and commits after each poll.
 *
 * <p>What it gives up it commits before. Arguments: a file of consumer settings, the topic, the time for a record in microseconds, and
 * the SLA in ms. It prints what it is assigned, and after each poll how many records it served and
 * how many of them too late.
 */
public final class ServingConsumer implements ConsumerRebalanceListener {
    private final KafkaConsumer<byte[], byte[]> consumer;

    private ServingConsumer(KafkaConsumer<byte[], byte[]> consumer) {
        this.consumer = consumer;
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Properties settings = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(file);
        }
        long serviceNs = 1000 * Long.parseLong(arguments[2]);
        long slaMs = Long.parseLong(arguments[3]);
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                closed.await();
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }));
        consumer.subscribe(List.of(arguments[1]), new ServingConsumer(consumer));
        try {
            while (true) {
                serve(consumer, serviceNs, slaMs);
            }
        } catch (WakeupException end) {
            say("end");
        } finally {
            consumer.close();
            closed.countDown();
        }
    }

    private static void serve(KafkaConsumer<byte[], byte[]> consumer, long serviceNs, long slaMs) {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
        int late = 0;
        long free = System.nanoTime(); // when the last record is done: a late wake-up is made up for
        for (ConsumerRecord<byte[], byte[]> record : records) {
            free += serviceNs;
            for (long left = free - System.nanoTime(); left > 0; left = free - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            late += System.currentTimeMillis() - record.timestamp() > slaMs ? 1 : 0;
        }
        if (!records.isEmpty()) {
            say("served " + records.count() + " late " + late);
            try {
                consumer.commitSync();
            } catch (RebalanceInProgressException next) {
                say("uncommitted"); // the next poll ends the rebalance, and the next commit has these too
            }
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        say("assigned " + names(partitions));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        consumer.commitSync(); // of what the last poll could not commit, as a rebalance had begun
        say("revoked " + names(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        say("lost " + names(partitions));
    }

    private static String names(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).sorted().collect(Collectors.joining(","));
    }

    private static void say(String line) {
        System.out.println(System.currentTimeMillis() + " " + line);
    }
}
