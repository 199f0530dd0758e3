package binwright.assignor;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;

/** Prints what the reader of rates does in one case: of the text of a file in the first line, with the lines that follow. */
public final class ReaderCases {
    private static final TopicPartition METRICS = new TopicPartition("metrics", 0);

    private final List<String> lines;
    private final List<Long> pausesMs = new ArrayList<>();

    private ReaderCases(List<String> lines) {
        this.lines = lines;
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        List<String> every = Files.readAllLines(Path.of(arguments[0]), StandardCharsets.UTF_8);
        ReaderCases cases = new ReaderCases(every.subList(1, every.size()));
        switch (every.get(0)) {
            case "take":
                cases.take();
                break;
            case "poll":
                cases.poll();
                break;
            case "names":
                cases.names();
                break;
            case "failures":
                cases.failures();
                break;
            case "missing":
                cases.missing();
                break;
            default:
                throw new IllegalArgumentException(every.get(0));
        }
    }

    /** Prints what is known of topic "a" once these are read, and the MB that took. */
    private void take() {
        RatesReader reader = new RatesReader(Map.of(), "metrics", 60_000, pausesMs::add);
        Uuid id = Uuid.randomUuid();
        reader.learn(Map.of(id, "a"));
        ThreadMXBean memory = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = memory.getThreadAllocatedBytes(Thread.currentThread().getId());
        reader.take(reader.measurements(lines, System.currentTimeMillis()));
        long after = memory.getThreadAllocatedBytes(Thread.currentThread().getId());
        System.out.println(reader.of(id, 2));
        System.out.println((after - before) >> 20);
    }

    /** Prints the numbers of records that are read at once, of so many with values of so many bytes. */
    private void poll() {
        for (String line : lines) {
            String[] numbers = line.split(" ");
            MockConsumer<byte[], byte[]> consumer = new MockConsumer<>("latest");
            consumer.assign(List.of(METRICS));
            consumer.updateBeginningOffsets(Map.of(METRICS, 0L));
            consumer.seek(METRICS, 0);
            consumer.setMaxPollRecords(16);
            byte[] value = new byte[Integer.parseInt(numbers[1])];
            for (int number = 0; number < Integer.parseInt(numbers[0]); number++) {
                consumer.addRecord(new ConsumerRecord<>(METRICS.topic(), METRICS.partition(), number, null, value));
            }
            Collection<Integer> polled = new ArrayList<>();
            while (consumer.position(METRICS) < Integer.parseInt(numbers[0])) {
                polled.add(RatesReader.polled(consumer).size());
            }
            System.out.println(polled);
        }
    }

    /** Prints whether a look-up of topics is due: each line has a time in s, names that were measured, and what it finds. */
    private void names() {
        KnownTopics known = new KnownTopics();
        for (String line : lines) {
            String[] fields = line.split(" ", -1);
            long nowMs = 1000 * Long.parseLong(fields[0]);
            for (String name : fields[1].split(",")) {
                known.note(name);
            }
            boolean isDue = known.isDue(nowMs);
            if (isDue) {
                known.learn(new HashSet<>(Set.of(fields[2].split(","))), nowMs);
            }
            System.out.println(isDue);
        }
    }

    /** Prints the pauses of a task that fails with an Error, with an exception, and then after a success. */
    private void failures() throws InterruptedException {
        Retries retries = new Retries(pausesMs::add);
        List<String> failed = new ArrayList<>();
        retries.forEver(() -> {
            switch (failed.size()) {
                case 0:
                    throw new OutOfMemoryError("a record");
                case 6:
                    retries.succeeded();
                    throw new IllegalStateException("a broker");
                case 7:
                    throw new InterruptedException();
                default:
                    throw new IOException("a broker");
            }
        }, one -> failed.add(one.getClass().getSimpleName()));
        System.out.println(failed);
        System.out.println(pausesMs);
    }

    /** Prints the pauses until a topic is there, and its partitions. */
    private void missing() throws InterruptedException {
        MockConsumer<byte[], byte[]> consumer = new MockConsumer<>("latest");
        Node node = new Node(1, "localhost", 1);
        PartitionInfo partition = new PartitionInfo("metrics", 0, node, new Node[] {node}, new Node[] {node});
        RatesReader reader = new RatesReader(Map.of(), "metrics", 60_000, ms -> {
            pausesMs.add(ms);
            if (pausesMs.size() == 6) {
                consumer.updatePartitions("metrics", List.of(partition));
            }
        });
        System.out.println(reader.partitions(consumer));
        System.out.println(pausesMs);
    }
}
