package binwright.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.DeltaOperations;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.stats.StatsCollectionUtils;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * One commit of staged files, by Delta's own transaction: its snapshot, conflicts, row ids, checkpoints and hooks.
 *
 * <p>The order is what fences the writers of a table (†): the transaction takes its snapshot, then the lease is
 * opened, then follows the commit. A writer that claims the table deletes the other leases, then commits metadata.
 * A snapshot from before that commit conflicts with it; whoever takes a later one finds no lease.
 */
final class Landing {
    private final SparkSession spark;
    private final OptimisticTransaction transaction;
    private final List<Action> added = new ArrayList<>();
    private long rows;
    private long bytes;

    private Landing(SparkSession spark, OptimisticTransaction transaction) {
        this.spark = spark;
        this.transaction = transaction;
    }

    /**
     * Does all but the commit: files are in the table's directory afterwards, and part of no version.
     *
     * @throws Refusal nothing may be committed.
     * @throws IOException a storage does not answer.
     */
    static Landing prepare(String table, String lease, List<String> files) throws Refusal, IOException {
        SparkSession spark = SparkSession.active();
        DeltaLog log = DeltaLog.forTable(spark, new Path(table));
        // †: it takes its snapshot
        OptimisticTransaction transaction = log.startTransaction(Option.empty(), Option.empty());
        Configuration conf = log.newDeltaHadoopConf();
        openLease(new Path(lease), conf); // †: after the snapshot
        TableRules.check(spark, transaction);

        Landing landing = new Landing(spark, transaction);
        // All are looked at before the first is put: a batch that is refused leaves nothing behind.
        List<DataFile> staged = Parallel.map(files, file -> DataFile.read(new Path(file), conf));
        FileRules rules = new FileRules(transaction.metadata());
        for (DataFile file : staged) {
            rules.check(file);
        }
        List<DataFile> parts = new ArrayList<>();
        for (DataFile file : staged) {
            if (file.rows() > 0) {
                parts.addAll(rules.byPartition(file)); // all of a file in this commit, or nothing (†)
            }
        }
        landing.add(parts, rules, log, conf);
        return landing;
    }

    /** Commits the files and returns the version. Delta's conflicts, and only they, say that it has not. */
    long commit(String stamp) {
        Map<String, Long> metrics =
                Map.of("numFiles", (long) added.size(), "numOutputRows", rows, "numOutputBytes", bytes);
        transaction.registerSQLMetrics(spark, metrics(spark, metrics));
        DeltaOperations.Operation append =
                new DeltaOperations.Write(
                        SaveMode.Append, Option.empty(), Option.empty(), Option.apply(stamp), Option.empty(),
                        Option.empty(), Option.empty(), Option.empty(), Option.empty());
        return transaction.commit(CollectionConverters.asScala(added).toSeq(), append);
    }

    /** Returns how many rows the files have. */
    long rows() {
        return rows;
    }

    /** Reads a byte of the lease: what a client knows of its status may be older than the snapshot (†). */
    private static void openLease(Path lease, Configuration conf) throws Refusal, IOException {
        try (FSDataInputStream in = lease.getFileSystem(conf).open(lease)) {
            in.read();
        } catch (FileNotFoundException exc) {
            throw Refusal.noLease(lease.getName());
        }
    }

    private void add(List<DataFile> staged, FileRules rules, DeltaLog log, Configuration conf)
            throws Refusal, IOException {
        TableDirectory directory = new TableDirectory(log, transaction.metadata(), conf);
        FileStatistics statistics =
                new FileStatistics(
                        transaction.snapshot().statsSchema(),
                        StatsCollectionUtils.getDataSkippingStringPrefixLength(spark, transaction.metadata()));
        List<FileStatus> put = Parallel.map(staged, file -> directory.put(file, rules.path(file)));
        for (int at = 0; at < staged.size(); at++) {
            DataFile file = staged.get(at);
            FileStatus status = put.get(at);
            added.add(
                    new AddFile(
                            rules.path(file), asScala(rules.partition(file)), status.getLen(),
                            status.getModificationTime(), true, statistics.json(file), null, null, Option.empty(),
                            Option.empty(), Option.empty(), Option.empty(), Option.empty()));
            rows += file.rows();
            bytes += status.getLen();
        }
    }

    /** Returns what DESCRIBE HISTORY shows of a commit. */
    static scala.collection.immutable.Map<String, SQLMetric> metrics(SparkSession spark, Map<String, Long> values) {
        Map<String, SQLMetric> metrics = new HashMap<>();
        values.forEach(
                (name, value) -> {
                    SQLMetric metric = SQLMetrics.createMetric(spark.sparkContext(), name);
                    metric.set(value);
                    metrics.put(name, metric);
                });
        return asScala(metrics);
    }

    static <K, V> scala.collection.immutable.Map<K, V> asScala(Map<K, V> map) {
        return scala.collection.immutable.Map.from(CollectionConverters.asScala(map));
    }
}
