package binwright.spark;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.DeltaOperations;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.stats.StatsCollectionUtils;
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter;
import org.apache.spark.sql.expressions.Window;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * One commit that replaces small files by larger ones with the same rows, by Delta's own transaction.
 *
 * <p>Row groups are copied, not decoded: of files in one partition whose schemas and key-values are the same, and whose
 * columns are the table's own by the rules of staged files (†: the statistics of others, such as of a column that has
 * become wider, would be wrong, and hide rows).
 *
 * <p>The transaction takes its snapshot before it is looked at which files there are, and reads these alone (†): if
 * another commit removes one of them, or rows of it, that is a conflict and nothing is committed; what lands meanwhile
 * is none.
 */
final class Merge {
    /** How many row groups a merged file has: one that has many is not opened for a few more. */
    private static final String ROW_GROUPS = "binwright.row_groups";

    // Not of a clone: those are in another table's directory (†).
    private static final String OWN = "path NOT RLIKE '^(/|[A-Za-z][A-Za-z0-9+.-]*:)'";
    private static final int LEAVES = 20; // of a table of usual width
    private static final long FEWEST_GROUPS = 64; // of a full file, however wide it is
    private static final String STAGED = "binwright.staged"; // prefix of what footers of staged files say of them
    private static final int FILES = 400; // at a time
    private static final int FULL = 10; // of so many full files are the row groups, whose footers are in memory
    private static final long BYTES = 256L << 20; // at a time, of which there are copies before the commit

    /** What files have in common that become one. */
    private record Kind(Map<String, String> partition, MessageType schema, Map<String, String> keyValues) {}

    private record Source(AddFile action, DataFile file) {
        long groups() {
            return file.footer().getBlocks().size();
        }
    }

    /** Files that become one. */
    private static final class Bin {
        private final List<Source> files = new ArrayList<>();
        private long size;
        private long groups;

        boolean hasRoom(Source file, long target, long rowGroups) {
            return size + file.action().size() <= target && groups + file.groups() <= rowGroups;
        }

        void add(Source file) {
            files.add(file);
            size += file.action().size();
            groups += file.groups();
        }
    }

    private final SparkSession spark;
    private final OptimisticTransaction transaction;
    private final DeltaLog log;
    private final Configuration conf;
    private final FileStatistics statistics;
    private final Queue<String> refusals = new ConcurrentLinkedQueue<>(); // of files that are not copied
    private final List<Path> written = new ArrayList<>();
    private final List<AddFile> removed = new ArrayList<>();
    private final List<AddFile> added = new ArrayList<>();

    private Merge(SparkSession spark, DeltaLog log) {
        this.spark = spark;
        this.log = log;
        this.conf = log.newDeltaHadoopConf();
        this.transaction = log.startTransaction(Option.empty(), Option.empty()); // †: it takes its snapshot
        this.statistics =
                new FileStatistics(
                        transaction.snapshot().statsSchema(),
                        StatsCollectionUtils.getDataSkippingStringPrefixLength(spark, transaction.metadata()));
    }

    /**
     * Does all but the commit: new files are in the table's directory afterwards, and part of no version. Where it
     * fails there are none.
     *
     * @param below bytes: smaller files are merged.
     * @param target bytes of a new file, at most.
     * @param rowGroups of a new file, at most; fewer where the table has many columns, for the footer.
     * @throws Refusal the table's files cannot be merged so.
     * @throws IOException a storage does not answer, or not with what was written.
     */
    static Merge prepare(String table, long below, long target, long rowGroups) throws Refusal, IOException {
        SparkSession spark = SparkSession.active();
        Merge merge = new Merge(spark, DeltaLog.forTable(spark, new Path(table)));
        TableRules.checkMerge(merge.transaction);
        long most = merge.most(rowGroups);
        try {
            for (List<Source> sources : bins(merge.small(below, most), target, most)) {
                merge.write(sources);
            }
        } catch (Refusal | IOException | RuntimeException exc) {
            merge.delete(exc);
            throw exc;
        }
        return merge;
    }

    private long most(long rowGroups) {
        StructType columns = transaction.metadata().schema();
        int leaves = new SparkToParquetSchemaConverter(new SQLConf()).convert(columns).getColumns().size();
        return Math.max(Math.min(rowGroups, FEWEST_GROUPS), Math.min(rowGroups, rowGroups * LEAVES / leaves));
    }

    private void delete(Exception cause) {
        for (Path path : written) {
            try {
                path.getFileSystem(conf).delete(path, false);
            } catch (IOException exc) { // a VACUUM will find it
                cause.addSuppressed(exc);
            }
        }
    }

    void commit() {
        transaction.trackFilesRead(CollectionConverters.asScala(removed).toSeq());
        Map<String, Long> metrics =
                Map.of(
                        "numRemovedFiles", removed(), "numAddedFiles", added(), "numRemovedBytes", removedBytes(),
                        "numAddedBytes", addedBytes());
        transaction.registerSQLMetrics(spark, Landing.metrics(spark, metrics));
        List<Action> actions = new ArrayList<>(added);
        long now = System.currentTimeMillis();
        removed.forEach(file -> actions.add(file.removeWithTimestamp(now, false)));
        DeltaOperations.Operation optimize =
                new DeltaOperations.Optimize(
                        CollectionConverters.asScala(List.<Expression>of()).toSeq(),
                        CollectionConverters.asScala(List.<String>of()).toSeq(), false, Option.empty(), false);
        transaction.commit(CollectionConverters.asScala(actions).toSeq(), optimize);
    }

    /** Returns why a file is not copied, as one example; null if nothing is against any. */
    String reason() {
        return refusals.peek();
    }

    long removed() {
        return removed.size();
    }

    long added() {
        return added.size();
    }

    long removedBytes() {
        return bytes(removed);
    }

    long addedBytes() {
        return bytes(added);
    }

    private static long bytes(List<AddFile> files) {
        return files.stream().mapToLong(AddFile::size).sum();
    }

    /** Returns the smallest files, all of whose rows are the table's, and which have room for more row groups. */
    private List<Source> small(long below, long rowGroups) throws Refusal, IOException {
        long bytes = 0;
        long groups = 0;
        List<AddFile> smallest = new ArrayList<>();
        for (AddFile file : candidates(below, rowGroups).limit(FILES).collectAsList()) {
            bytes += file.size();
            groups += Long.parseLong(file.getTag(ROW_GROUPS).getOrElse(() -> "1"));
            if (bytes > BYTES || groups > FULL * rowGroups) {
                break;
            }
            smallest.add(file);
        }
        return Parallel.map(smallest, this::opened).stream().flatMap(Optional::stream).toList();
    }

    /** Returns files that have others in their partition, those first that have most, and then the smallest. */
    private Dataset<AddFile> candidates(long below, long rowGroups) {
        Dataset<AddFile> all = transaction.snapshot().allFiles();
        String few = "coalesce(cast(tags['" + ROW_GROUPS + "'] AS BIGINT), 0) <= " + (rowGroups - rowGroups / 8);
        Dataset<AddFile> small = all.where("deletionVector IS NULL AND size < " + below).where(few).where(OWN);
        List<String> by = CollectionConverters.asJava(transaction.metadata().partitionColumns());
        if (by.isEmpty()) {
            return small.sort("size", "path");
        }
        Column[] partition =
                by.stream().map(name -> functions.col("partitionValues").getItem(name)).toArray(Column[]::new);
        Column mates = functions.count(functions.lit(1)).over(Window.partitionBy(partition));
        return small.withColumn("mates", mates)
                .where("mates > 1")
                .sort(functions.col("mates").desc(), functions.col("size"), functions.col("path"))
                .drop("mates")
                .as(all.encoder());
    }

    private Optional<Source> opened(AddFile file) throws IOException {
        // As the log has it: to ask for it would be one more request of an object store.
        FileStatus status =
                new FileStatus(file.size(), false, 1, 0, file.modificationTime(), file.absolutePath(log));
        try {
            DataFile opened = DataFile.of(status, conf);
            // Delta writes those that the table is partitioned by, too.
            FileRules.checkColumns(opened, transaction.metadata().schema());
            return Optional.of(new Source(file, opened));
        } catch (Refusal refusal) { // Spark can write its rows again; the others are merged
            refusals.add(refusal.getMessage());
        } catch (FileNotFoundException | EOFException exc) {
            refusals.add(Refusal.damaged(status.getPath().getName(), "it is gone, or its end is").getMessage());
        }
        return Optional.empty();
    }

    /** Returns the files that become one each: the largest come first, and each into the first that has room. */
    private static List<List<Source>> bins(List<Source> smallest, long target, long rowGroups) {
        Map<Kind, List<Bin>> kinds = new LinkedHashMap<>();
        List<Source> largestFirst = new ArrayList<>(smallest);
        largestFirst.sort(Comparator.comparingLong((Source file) -> file.action().size()).reversed());
        for (Source file : largestFirst) {
            List<Bin> bins = kinds.computeIfAbsent(kind(file), kind -> new ArrayList<>());
            Optional<Bin> room = bins.stream().filter(bin -> bin.hasRoom(file, target, rowGroups)).findFirst();
            if (room.isEmpty()) {
                bins.add(new Bin());
            }
            room.orElseGet(() -> bins.get(bins.size() - 1)).add(file);
        }
        return kinds.values().stream()
                .flatMap(List::stream)
                .map(bin -> bin.files)
                .filter(files -> files.size() > 1)
                .toList();
    }

    private static Kind kind(Source file) {
        var metadata = file.file().footer().getFileMetaData();
        Map<String, String> keyValues = new HashMap<>(metadata.getKeyValueMetaData());
        keyValues.keySet().removeIf(key -> key.startsWith(STAGED));
        Map<String, String> partition = CollectionConverters.asJava(file.action().partitionValues());
        return new Kind(new HashMap<>(partition), metadata.getSchema(), keyValues);
    }

    private void write(List<Source> sources) throws Refusal, IOException {
        Source first = sources.get(0);
        List<DataFile> files = sources.stream().map(Source::file).toList();
        List<BlockMetaData> groups = files.stream().flatMap(file -> file.footer().getBlocks().stream()).toList();
        String name = "merged-" + UUID.randomUUID() + ".parquet";
        Path path = new Path(first.file().path().getParent(), name);
        String known = statistics.json(files.get(0).part(groups));
        written.add(path);
        RowGroups.copy(files, kind(first).keyValues(), path, conf);
        FileStatus status = path.getFileSystem(conf).getFileStatus(path);
        String beside = first.action().path(); // of the same partition; encoded, as the log has it
        added.add(
                new AddFile(
                        beside.substring(0, beside.lastIndexOf('/') + 1) + name, first.action().partitionValues(),
                        status.getLen(), status.getModificationTime(), false, known,
                        Landing.asScala(Map.of(ROW_GROUPS, String.valueOf(groups.size()))), null, Option.empty(),
                        Option.empty(), Option.empty(), Option.empty(), Option.empty()));
        sources.forEach(source -> removed.add(source.action()));
    }
}
