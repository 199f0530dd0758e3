package binwright.spark;

import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog without tables: it has the procedure {@code add_files}.
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
        if (procedure.namespace().length > 0 || !procedure.name().equals(AddFiles.NAME)) {
            throw new IllegalArgumentException(
                    "the catalog " + name + " has no procedure " + procedure + ", only " + AddFiles.NAME);
        }
        return new AddFiles();
    }

    @Override
    public Identifier[] listProcedures(String[] namespace) {
        return new Identifier[] {Identifier.of(new String[0], AddFiles.NAME)};
    }
}
