package binwright.spark;

import java.util.List;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.schema.PrimitiveType;

/**
 * What a footer says of a column without parts, in all row groups.
 *
 * @param type how it is stored.
 * @param nulls how many rows are NULL; null: not said.
 * @param bounds its values' bounds; null: not said of all row groups, or there is no value.
 */
record Leaf(PrimitiveType type, Long nulls, Bounds bounds) {
    /** Both are values of the column, or lie beyond them; of the class that Parquet's statistics have for it. */
    record Bounds(Object least, Object greatest) {}

    /** Returns the leaf of this path; null if a file has none, or has no rows. */
    static Leaf of(ParquetMetadata footer, List<String> path) {
        PrimitiveType type = null;
        Long nulls = 0L;
        Bounds bounds = null;
        boolean isBounded = true;
        for (BlockMetaData block : footer.getBlocks()) {
            ColumnChunkMetaData chunk = chunk(block, path);
            if (chunk == null) {
                return null;
            }
            type = chunk.getPrimitiveType();
            Statistics<?> known = chunk.getStatistics();
            boolean isCounted = known != null && known.isNumNullsSet();
            nulls = nulls == null || !isCounted ? null : Long.valueOf(nulls + known.getNumNulls());
            if (known != null && known.hasNonNullValue()) {
                bounds = widened(bounds, known);
            } else if (!isCounted || known.getNumNulls() < chunk.getValueCount()) {
                isBounded = false; // it has values, of which nothing is said: such as very long ones
            }
        }
        return type == null ? null : new Leaf(type, nulls, isBounded ? bounds : null);
    }

    private static ColumnChunkMetaData chunk(BlockMetaData block, List<String> path) {
        for (ColumnChunkMetaData chunk : block.getColumns()) {
            if (path.equals(List.of(chunk.getPath().toArray()))) {
                return chunk;
            }
        }
        return null;
    }

    private static <T extends Comparable<T>> Bounds widened(Bounds bounds, Statistics<T> by) {
        T least = by.genericGetMin();
        T greatest = by.genericGetMax();
        if (bounds == null) {
            return new Bounds(least, greatest);
        }
        @SuppressWarnings("unchecked") // chunks of one leaf have values of one class
        T before = (T) bounds.least();
        @SuppressWarnings("unchecked")
        T after = (T) bounds.greatest();
        return new Bounds(
                by.comparator().compare(before, least) <= 0 ? before : least,
                by.comparator().compare(after, greatest) >= 0 ? after : greatest);
    }
}
