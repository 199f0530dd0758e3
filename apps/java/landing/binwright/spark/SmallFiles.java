package binwright.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The procedure {@code small_files}: the sizes of a Delta table's files that are below a size, by its partitions.
 *
 * <p>It has one row for each partition that has such files, and one whose {@code sizes} is NULL where this server's
 * versions do not fit: then nothing is known.
 */
final class SmallFiles extends LocalProcedure {
    static final String NAME = "small_files";

    private static final StructType REPLY =
            new StructType()
                    .add("day", DataTypes.StringType)
                    .add("sizes", DataTypes.createArrayType(DataTypes.LongType, false));

    SmallFiles() {
        super(
                NAME,
                "Lists the sizes of a Delta table's small files, from its log.",
                REPLY,
                ProcedureParameter.in("table", DataTypes.StringType).comment("path of the table").build(),
                ProcedureParameter.in("below", DataTypes.LongType).comment("bytes: smaller files are listed").build());
    }

    @Override
    InternalRow[] rows(InternalRow arguments) {
        if (Versions.reasonAgainst() != null) {
            return new InternalRow[] {row(null, null)};
        }
        try {
            return FileSizes.below(arguments.getString(0), arguments.getLong(1)).stream()
                    .map(each -> row(each.day(), each.sizes()))
                    .toArray(InternalRow[]::new);
        } catch (LinkageError error) { // a Delta that somebody changed, under the same number
            return new InternalRow[] {row(null, null)};
        }
    }

    private static InternalRow row(String day, List<Long> sizes) {
        Object[] values = {UTF8String.fromString(day), sizes == null ? null : new GenericArrayData(sizes.toArray())};
        return new GenericInternalRow(values);
    }
}
