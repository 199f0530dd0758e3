package binwright.spark;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * A procedure whose arguments are not NULL, and whose reply are rows that it has at hand.
 *
 * <p>Classes of this kind have nothing of Delta in them, so that they load, and say why, where Delta is another.
 */
abstract class LocalProcedure implements UnboundProcedure, BoundProcedure {
    private final String name;
    private final String description;
    private final StructType reply;
    private final ProcedureParameter[] parameters;

    LocalProcedure(String name, String description, StructType reply, ProcedureParameter... parameters) {
        this.name = name;
        this.description = description;
        this.reply = reply;
        this.parameters = parameters;
    }

    /** Returns the rows of the reply; none of the arguments is NULL. */
    abstract InternalRow[] rows(InternalRow arguments);

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final String description() {
        return description;
    }

    @Override
    public final BoundProcedure bind(StructType inputType) {
        return this;
    }

    @Override
    public final boolean isDeterministic() {
        return false;
    }

    @Override
    public final ProcedureParameter[] parameters() {
        return parameters.clone();
    }

    @Override
    public final Iterator<Scan> call(InternalRow arguments) {
        for (int at = 0; at < parameters.length; at++) {
            if (arguments.isNullAt(at)) {
                throw new IllegalArgumentException(name + ": " + parameters[at].name() + " is NULL");
            }
        }
        return List.<Scan>of(new Reply(reply, rows(arguments))).iterator();
    }

    private record Reply(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
