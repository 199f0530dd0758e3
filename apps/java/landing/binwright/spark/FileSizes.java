package binwright.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import scala.Option;

/** The sizes of a partition's files, as a table's log has them: a query of Delta's state, which opens none. */
record FileSizes(String day, List<Long> sizes) {
    /** Returns those of the newest version that are below a size, bytes; a day is null where none is in the path. */
    static List<FileSizes> below(String table, long bytes) {
        DeltaLog log = DeltaLog.forTable(SparkSession.active(), new Path(table));
        Snapshot snapshot = log.startTransaction(Option.empty(), Option.empty()).snapshot();
        if (snapshot.version() < 0) {
            throw new IllegalArgumentException("there is no Delta table at " + log.dataPath());
        }
        Map<Map<String, String>, List<Long>> sizes = new LinkedHashMap<>();
        Dataset<Row> small = snapshot.allFiles().toDF().where("size < " + bytes);
        for (Row file : small.select("partitionValues", "size").collectAsList()) {
            sizes.computeIfAbsent(file.getJavaMap(0), partition -> new ArrayList<>()).add(file.getLong(1));
        }
        List<FileSizes> partitions = new ArrayList<>();
        sizes.forEach((partition, all) -> partitions.add(new FileSizes(partition.get(FileRules.DAY), all)));
        return partitions;
    }
}
