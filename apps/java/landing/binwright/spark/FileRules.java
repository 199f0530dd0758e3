package binwright.spark;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.FileMetaData;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.IntLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimeUnit;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.spark.sql.delta.actions.Metadata;
import org.apache.spark.sql.execution.datasources.DataSourceUtils;
import org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;

/** Which files a table takes as they are: those that have its own columns, and row groups of one partition each. */
final class FileRules {
    static final String DAY = "_kafka_date"; // of the record, UTC
    private static final List<String> TIME = List.of("_kafka", "timestamp"); // of which it is the day
    private static final long MICROS_PER_DAY = 86_400_000_000L;
    private static final String TODAYS_CALENDAR = "CORRECTED"; // as Spark calls it

    private final StructType columns;
    private final boolean byDay;
    private final Map<String, Path> names = new HashMap<>();

    FileRules(Metadata metadata) {
        columns = metadata.dataSchema();
        byDay = !metadata.partitionColumns().isEmpty();
    }

    /** Throws why a table's partitions are not known to files; see {@link #partition}. */
    static void checkPartitions(Metadata metadata) throws Refusal {
        List<String> by = CollectionConverters.asJava(metadata.partitionColumns());
        if (by.isEmpty()) {
            return;
        }
        boolean isDay =
                by.equals(List.of(DAY)) && DataTypes.DateType.equals(type(metadata.partitionSchema(), List.of(DAY)));
        if (!isDay || !DataTypes.TimestampType.equals(type(metadata.dataSchema(), TIME))) {
            throw Refusal.table("it is partitioned by " + String.join(", ", by));
        }
    }

    /** Throws why a staged file is none of the table's. */
    void check(DataFile file) throws Refusal {
        Path other = names.putIfAbsent(file.name(), file.path());
        if (other != null) {
            throw Refusal.file(file.name(), "two files have this name, " + other + " and " + file.path());
        }
        checkColumns(file, columns);
        byPartition(file);
    }

    /** Throws why a file's columns are not these; those, and fields of structs, that it lacks are NULL. */
    static void checkColumns(DataFile file, StructType columns) throws Refusal {
        FileMetaData metadata = file.footer().getFileMetaData();
        MessageType schema = metadata.getSchema();
        for (ColumnDescriptor leaf : schema.getColumns()) {
            String reason = reasonAgainst(leaf);
            if (reason != null) {
                throw Refusal.file(file.name(), String.join(".", leaf.getPath()) + " is stored as " + reason);
            }
        }
        String reason = reasonAgainst(converted(file.name(), schema), columns, "");
        if (reason != null) {
            throw Refusal.file(file.name(), reason);
        }
        Function1<String, String> keyValues = metadata.getKeyValueMetaData()::get;
        // As Spark reads it: where nothing is said, days are of today's calendar.
        Object calendar = DataSourceUtils.datetimeRebaseSpec(keyValues, TODAYS_CALENDAR).mode();
        if (!calendar.toString().equals(TODAYS_CALENDAR)) {
            throw Refusal.file(file.name(), "its dates and times are of the Julian calendar");
        }
    }

    /** Returns the file, or where it has rows of several partitions, the parts that it has of each. */
    List<DataFile> byPartition(DataFile file) throws Refusal {
        if (!byDay) {
            return List.of(file);
        }
        Map<String, List<BlockMetaData>> days = new TreeMap<>();
        for (BlockMetaData group : file.footer().getBlocks()) {
            if (group.getRowCount() > 0) {
                String day = day(file.part(List.of(group)));
                days.computeIfAbsent(day, of -> new ArrayList<>()).add(group);
            }
        }
        return days.size() < 2 ? List.of(file) : days.values().stream().map(file::part).toList();
    }

    /** Returns the values of partition columns that all rows of a file, or of a part of one, have. */
    Map<String, String> partition(DataFile file) throws Refusal {
        return byDay ? Map.of(DAY, day(file)) : Map.of();
    }

    /** Returns where in a table's directory a file belongs: some readers take a partition's value from there. */
    String path(DataFile file) throws Refusal {
        return byDay ? DAY + "=" + day(file) + "/" + file.name() : file.name();
    }

    /** Returns what a leaf is that readers take for the same type, but not all of them alike; null: it is not. */
    private static String reasonAgainst(ColumnDescriptor leaf) {
        PrimitiveTypeName stored = leaf.getPrimitiveType().getPrimitiveTypeName();
        LogicalTypeAnnotation as = leaf.getPrimitiveType().getLogicalTypeAnnotation();
        if (as instanceof TimestampLogicalTypeAnnotation time && time.getUnit() != TimeUnit.MICROS) {
            return "a timestamp in " + time.getUnit() + ", not in MICROS";
        }
        if (as instanceof IntLogicalTypeAnnotation number && !number.isSigned()) {
            return "an integer without sign";
        }
        boolean isFixed =
                stored == PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY && !(as instanceof DecimalLogicalTypeAnnotation);
        return isFixed || stored == PrimitiveTypeName.INT96 ? stored.toString() : null;
    }

    private static StructType converted(String name, MessageType schema) throws Refusal {
        try { // by Spark's defaults: a session's settings are no property of the table
            return new ParquetToSparkSchemaConverter(new SQLConf()).convert(schema);
        } catch (Exception exc) { // Spark's AnalysisException is a checked one that Scala does not declare
            throw Refusal.file(name, "its columns are not of types that Spark has (" + exc.getMessage() + ")");
        }
    }

    /** Returns why a type of a file is not the table's; null if it is. */
    private static String reasonAgainst(DataType file, DataType table, String path) {
        if (file instanceof StructType from && table instanceof StructType to) {
            return reasonAgainst(from, to, path);
        }
        if (file instanceof ArrayType from && table instanceof ArrayType to) {
            return reasonAgainst(from.elementType(), to.elementType(), path + ".element");
        }
        // Fields that are missing within a map's values are NULL for Spark, and an error for delta-rs.
        return DataType.equalsIgnoreNullability(file, table)
                ? null
                : path + " is " + file.simpleString() + ", and " + table.simpleString() + " in the table";
    }

    private static String reasonAgainst(StructType file, StructType table, String path) {
        String prefix = path.isEmpty() ? "" : path + ".";
        Set<String> seen = new HashSet<>();
        for (StructField field : file.fields()) {
            String name = prefix + field.name();
            if (!seen.add(field.name())) {
                return "it has " + name + " twice";
            }
            DataType type = type(table, List.of(field.name()));
            String reason = type == null ? "the table has no " + name : reasonAgainst(field.dataType(), type, name);
            if (reason != null) {
                return reason;
            }
        }
        return null;
    }

    /** Returns the type of a column or of a field in it, by its exact name; null if there is none. */
    private static DataType type(StructType of, List<String> path) {
        DataType type = of;
        for (String name : path) {
            if (!(type instanceof StructType struct) || struct.getFieldIndex(name).isEmpty()) {
                return null;
            }
            type = struct.apply(name).dataType();
        }
        return type;
    }

    private static String day(DataFile file) throws Refusal {
        Leaf time = Leaf.of(file.footer(), TIME);
        if (time == null || !Long.valueOf(0).equals(time.nulls()) || time.bounds() == null) {
            throw Refusal.file(file.name(), "its footer does not say that each row has a timestamp, and which");
        }
        long first = Math.floorDiv((Long) time.bounds().least(), MICROS_PER_DAY);
        if (first != Math.floorDiv((Long) time.bounds().greatest(), MICROS_PER_DAY)) {
            throw Refusal.file(file.name(), "it has rows of several days in one row group");
        }
        return LocalDate.ofEpochDay(first).toString();
    }
}
