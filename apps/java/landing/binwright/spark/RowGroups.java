package binwright.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.parquet.schema.MessageType;

/** Copies row groups from file to file as they are: nothing is decoded, and little of them is in memory. */
final class RowGroups {
    private RowGroups() {}

    /**
     * Writes a new file of the row groups of these, which have one schema, in order.
     *
     * <p>Page indexes and Bloom filters are left out: what points into a file would point to other places.
     */
    static void copy(List<DataFile> files, Map<String, String> keyValues, Path to, Configuration conf)
            throws Refusal, IOException {
        OutputFile file = HadoopOutputFile.fromPath(to, conf);
        MessageType schema = files.get(0).footer().getFileMetaData().getSchema();
        ParquetProperties usual = ParquetProperties.builder().build();
        try (ParquetFileWriter out =
                new ParquetFileWriter(
                        file, schema, ParquetFileWriter.Mode.CREATE, ParquetWriter.DEFAULT_BLOCK_SIZE, 0, null,
                        usual)) {
            out.start();
            for (DataFile each : files) {
                try (SeekableInputStream in = HadoopInputFile.fromStatus(each.status(), conf).newStream()) {
                    out.appendRowGroups(in, each.footer().getBlocks(), false);
                } catch (FileNotFoundException exc) {
                    throw Refusal.missing(each.name());
                }
            }
            out.end(keyValues);
        }
    }
}
