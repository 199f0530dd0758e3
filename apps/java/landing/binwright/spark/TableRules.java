package binwright.spark;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.delta.ColumnWithDefaultExprUtils;
import org.apache.spark.sql.delta.NoMapping$;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.Metadata;
import org.apache.spark.sql.delta.constraints.Constraints;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import scala.jdk.javaapi.CollectionConverters;

/** Which tables take files as they are: those that ask nothing of a writer but to write rows down. */
final class TableRules {
    /**
     * Features that ask nothing of rows, or only what Delta's commit itself does, or what is looked for below. A
     * feature that is not here may ask anything.
     */
    private static final Set<String> FEATURES =
            Set.of(
                    "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "checkpointProtection",
                    "clustering", "columnMapping", "deletionVectors", "domainMetadata", "generatedColumns",
                    "identityColumns", "inCommitTimestamp", "invariants", "rowTracking", "timestampNtz", "typeWidening",
                    "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck", "variantType",
                    "variantType-preview");

    /** Features by which rows have an order within files, or ids by their place there. */
    private static final Set<String> ORDERED = Set.of("clustering", "rowTracking");

    private TableRules() {}

    /** Throws the first rule of a table that stands against files as they are. */
    static void check(SparkSession spark, OptimisticTransaction transaction) throws Refusal {
        checkCommon(transaction, FEATURES);
        Metadata metadata = transaction.metadata();
        for (StructField column : metadata.schema().fields()) {
            check(column);
        }
        if (!Constraints.getAll(metadata, spark).isEmpty()) {
            throw Refusal.table("it has constraints, which Spark checks as it writes rows");
        }
        if (ColumnWithDefaultExprUtils.tableHasDefaultExpr(transaction.protocol(), metadata, false)) {
            throw Refusal.table("it has generated, identity or default columns, which Spark computes");
        }
        FileRules.checkPartitions(metadata);
    }

    /** Throws the first rule of a table that stands against copies of its row groups in other files. */
    static void checkMerge(OptimisticTransaction transaction) throws Refusal {
        Set<String> features = new HashSet<>(FEATURES);
        features.removeAll(ORDERED);
        checkCommon(transaction, features);
    }

    private static void checkCommon(OptimisticTransaction transaction, Set<String> known) throws Refusal {
        if (transaction.readVersion() < 0) {
            throw Refusal.table("there is no Delta table at " + transaction.dataPath());
        }
        Set<String> unknown =
                new TreeSet<>(CollectionConverters.asJava(transaction.protocol().readerAndWriterFeatureNames()));
        unknown.removeAll(known);
        if (!unknown.isEmpty()) {
            throw Refusal.table("it has features of which only Spark's own writes know: " + unknown);
        }
        if (transaction.metadata().columnMappingMode() != NoMapping$.MODULE$) {
            throw Refusal.table("its columns have other names in files (delta.columnMapping.mode)");
        }
        for (StructField column : transaction.metadata().schema().fields()) {
            if (anyIn(column.dataType(), type -> type instanceof VariantType)) {
                throw Refusal.table("its column " + column.name() + " is VARIANT, whose parts Spark chooses");
            }
        }
    }

    private static void check(StructField column) throws Refusal {
        if (CharVarcharUtils.getRawTypeString(column.metadata()).isDefined()) {
            throw Refusal.table("its column " + column.name() + " has a length (CHAR, VARCHAR), which Spark checks");
        }
        if (!column.nullable() || anyIn(column.dataType(), TableRules::forbidsNull)) {
            throw Refusal.table("its column " + column.name() + " is NOT NULL, or has such parts, which Spark checks");
        }
    }

    private static boolean forbidsNull(DataType type) {
        if (type instanceof StructType struct) {
            return Arrays.stream(struct.fields()).anyMatch(field -> !field.nullable());
        }
        return type instanceof ArrayType array && !array.containsNull()
                || type instanceof MapType map && !map.valueContainsNull();
    }

    private static boolean anyIn(DataType type, Predicate<DataType> condition) {
        if (condition.test(type)) {
            return true;
        }
        if (type instanceof StructType struct) {
            return Arrays.stream(struct.fields()).anyMatch(field -> anyIn(field.dataType(), condition));
        }
        if (type instanceof MapType map) {
            return anyIn(map.keyType(), condition) || anyIn(map.valueType(), condition);
        }
        return type instanceof ArrayType array && anyIn(array.elementType(), condition);
    }
}
