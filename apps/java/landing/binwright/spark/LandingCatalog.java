package binwright.spark;

import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog without tables: it has the procedures {@code add_files}, {@code small_files} and {@code merge_files}.
 *
 * <p>{@code spark.sql.catalog.binwright} = this class makes it {@code CALL binwright.add_files(…)}.
 */
public final class LandingCatalog implements ProcedureCatalog {
    private String name;

    /** Spark makes its catalogs by a constructor without arguments. */
    public LandingCatalog() {}

    @Override
    public void initialize(String catalog, CaseInsensitiveStringMap options) {
        name = catalog;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public UnboundProcedure loadProcedure(Identifier procedure) {
        if (procedure.namespace().length == 0) {
            switch (procedure.name()) {
                case AddFiles.NAME:
                    return new AddFiles();
                case SmallFiles.NAME:
                    return new SmallFiles();
                case MergeFiles.NAME:
                    return new MergeFiles();
                default:
                    break;
            }
        }
        throw new IllegalArgumentException(
                "the catalog " + name + " has no procedure " + procedure + ", only " + AddFiles.NAME + ", "
                        + SmallFiles.NAME + " and " + MergeFiles.NAME);
    }

    // Spark 4.0 has no such method, so this overrides nothing there.
    public Identifier[] listProcedures(String[] namespace) {
        String[] none = {};
        return new Identifier[] {
            Identifier.of(none, AddFiles.NAME), Identifier.of(none, SmallFiles.NAME),
            Identifier.of(none, MergeFiles.NAME)
        };
    }
}
