package binwright.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The procedure {@code add_files}: commits staged Parquet files to a Delta table as they are.
 *
 * <p>Its one row says {@code landed}, or why nothing was committed. What it throws says neither: a conflict of
 * Delta's is known to have committed nothing, of anything else the caller has to look.
 */
final class AddFiles extends LocalProcedure {
    static final String NAME = "add_files";

    private static final StructType REPLY =
            new StructType()
                    .add("verdict", DataTypes.StringType, false)
                    .add("version", DataTypes.LongType)
                    .add("rows", DataTypes.LongType)
                    .add("what", DataTypes.StringType);

    AddFiles() {
        super(
                NAME,
                "Commits staged Parquet files to a Delta table as they are, under a writer's lease.",
                REPLY,
                ProcedureParameter.in("table", DataTypes.StringType).comment("path of the table").build(),
                ProcedureParameter.in("lease", DataTypes.StringType).comment("path of the writer's lease").build(),
                ProcedureParameter.in("stamp", DataTypes.StringType).comment("the commit's userMetadata").build(),
                ProcedureParameter.in("files", DataTypes.createArrayType(DataTypes.StringType))
                        .comment("full paths of staged files")
                        .build());
    }

    @Override
    InternalRow[] rows(InternalRow arguments) {
        Set<String> files = new LinkedHashSet<>(); // a file that is named twice is one file
        for (Object file : arguments.getArray(3).toObjectArray(DataTypes.StringType)) {
            if (file == null) {
                throw new IllegalArgumentException(NAME + ": one of the files is NULL");
            }
            files.add(file.toString());
        }
        String table = arguments.getString(0);
        return new InternalRow[] {row(table, arguments.getString(1), arguments.getString(2), List.copyOf(files))};
    }

    private static InternalRow row(String table, String lease, String stamp, List<String> files) {
        String reason = Versions.reasonAgainst();
        if (reason != null) {
            return refused(Refusal.table(reason));
        }
        Landing landing;
        try {
            landing = Landing.prepare(table, lease, files);
        } catch (Refusal refusal) {
            return refused(refusal);
        } catch (LinkageError error) { // a Delta that somebody changed, under the same number
            return refused(Refusal.table(Versions.reasonFor(error)));
        } catch (IOException exc) {
            throw new UncheckedIOException(exc);
        }
        return row("landed", landing.commit(stamp), landing.rows(), null);
    }

    private static InternalRow refused(Refusal refusal) {
        return row(refusal.verdict(), null, null, refusal.getMessage());
    }

    private static InternalRow row(String verdict, Long version, Long rows, String what) {
        Object[] values = {UTF8String.fromString(verdict), version, rows, UTF8String.fromString(what)};
        return new GenericInternalRow(values);
    }
}
