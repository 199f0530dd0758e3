package binwright.spark;

import java.io.ByteArrayInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;

/**
 * A Parquet file, staged or of a table, as far as a commit needs it: where it is, and what its footer says. No rows
 * are read.
 *
 * @param status where it is, its length and time.
 * @param tail the bytes of its footer.
 * @param footer the same, parsed; of a part, with the row groups of this alone.
 * @param isWhole whether it is all of a file, not a part.
 */
record DataFile(FileStatus status, byte[] tail, ParquetMetadata footer, boolean isWhole) {
    private static final int TAIL = 64 << 10; // bytes; holds most footers, so that one read gets them
    private static final byte[] MAGIC = "PAR1".getBytes(StandardCharsets.US_ASCII);
    private static final int ENDING = Integer.BYTES + MAGIC.length; // a footer's length, and the magic
    // Given, since the converter without any refuses every footer.
    private static final ParquetReadOptions OPTIONS = ParquetReadOptions.builder().build();
    // It becomes a path in the table's log, where any other character would have to be encoded.
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]*\\.parquet");

    /** Reads the footer of a staged file. */
    static DataFile read(Path path, Configuration conf) throws Refusal, IOException {
        String name = path.getName();
        if (!NAME.matcher(name).matches()) {
            throw Refusal.file(name, "its name is not that of a staged file");
        }
        try {
            return of(path.getFileSystem(conf).getFileStatus(path), conf);
        } catch (FileNotFoundException exc) {
            throw Refusal.missing(name);
        }
    }

    /** Reads the footer of a file of this status. */
    static DataFile of(FileStatus status, Configuration conf) throws Refusal, IOException {
        String name = status.getPath().getName();
        byte[] tail = tail(status.getPath().getFileSystem(conf), status);
        if (tail == null) {
            throw Refusal.damaged(name, "it does not end as a Parquet file does");
        }
        return new DataFile(status, tail, parsed(name, tail), true);
    }

    /** Returns the bytes of a file's footer; null if the file does not end with one. */
    static byte[] tail(FileSystem storage, FileStatus status) throws IOException {
        long length = status.getLen();
        if (!status.isFile() || length < MAGIC.length + ENDING) {
            return null;
        }
        try (FSDataInputStream in = storage.open(status.getPath())) {
            byte[] end = new byte[(int) Math.min(length, TAIL)];
            in.readFully(length - end.length, end);
            if (!Arrays.equals(end, end.length - MAGIC.length, end.length, MAGIC, 0, MAGIC.length)) {
                return null;
            }
            int size = ByteBuffer.wrap(end).order(ByteOrder.LITTLE_ENDIAN).getInt(end.length - ENDING);
            if (size < 0 || size > length - MAGIC.length - ENDING) {
                return null;
            }
            int within = end.length - ENDING - size;
            if (within >= 0) {
                return Arrays.copyOfRange(end, within, within + size);
            }
            byte[] footer = new byte[size];
            in.readFully(length - ENDING - size, footer);
            return footer;
        }
    }

    // From memory: so whatever is thrown here is the file's fault, not the storage's.
    private static ParquetMetadata parsed(String name, byte[] tail) throws Refusal {
        try {
            return new ParquetMetadataConverter(OPTIONS)
                    .readParquetMetadata(new ByteArrayInputStream(tail), ParquetMetadataConverter.NO_FILTER);
        } catch (IOException | RuntimeException exc) {
            throw Refusal.damaged(name, "its footer cannot be read (" + exc.getMessage() + ")");
        }
    }

    /** Returns the part that has these row groups. */
    DataFile part(List<BlockMetaData> groups) {
        return new DataFile(status, tail, new ParquetMetadata(footer.getFileMetaData(), groups), false);
    }

    Path path() {
        return status.getPath();
    }

    String name() {
        return status.getPath().getName();
    }

    long rows() {
        return footer.getBlocks().stream().mapToLong(BlockMetaData::getRowCount).sum();
    }
}
