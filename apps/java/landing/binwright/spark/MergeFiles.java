package binwright.spark;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The procedure {@code merge_files}: makes one file of several small ones of a Delta table, whose row groups it copies.
 *
 * <p>Its one row says how many files are replaced by how many, or why none could be. What it throws is of the commit,
 * as of {@link AddFiles}.
 */
final class MergeFiles extends LocalProcedure {
    static final String NAME = "merge_files";

    private static final StructType REPLY =
            new StructType()
                    .add("removed", DataTypes.LongType, false)
                    .add("added", DataTypes.LongType, false)
                    .add("removed_bytes", DataTypes.LongType, false)
                    .add("added_bytes", DataTypes.LongType, false)
                    .add("what", DataTypes.StringType);

    MergeFiles() {
        super(
                NAME,
                "Makes large files of a Delta table's small ones, whose row groups are copied as they are.",
                REPLY,
                ProcedureParameter.in("table", DataTypes.StringType).comment("path of the table").build(),
                ProcedureParameter.in("below", DataTypes.LongType).comment("bytes: smaller files are merged").build(),
                ProcedureParameter.in("target", DataTypes.LongType).comment("bytes of a file, at most").build(),
                ProcedureParameter.in("row_groups", DataTypes.LongType).comment("of a file, at most").build());
    }

    @Override
    InternalRow[] rows(InternalRow arguments) {
        String reason = Versions.reasonAgainst();
        if (reason != null) {
            return none(reason);
        }
        Merge merge;
        try {
            merge = Merge.prepare(
                    arguments.getString(0), arguments.getLong(1), arguments.getLong(2), arguments.getLong(3));
        } catch (Refusal refusal) {
            return none(refusal.getMessage());
        } catch (LinkageError error) { // a Delta that somebody changed, under the same number
            return none(Versions.reasonFor(error));
        } catch (IOException | RuntimeException exc) { // Spark may still be able to write their rows again
            return none(exc.toString());
        }
        if (merge.removed() == 0) {
            return none(merge.reason());
        }
        merge.commit();
        return row(merge.removed(), merge.added(), merge.removedBytes(), merge.addedBytes(), null);
    }

    private static InternalRow[] none(String reason) {
        return row(0L, 0L, 0L, 0L, UTF8String.fromString(reason));
    }

    private static InternalRow[] row(Object... values) {
        return new InternalRow[] {new GenericInternalRow(values)};
    }
}
