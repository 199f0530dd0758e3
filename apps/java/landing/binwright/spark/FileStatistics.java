package binwright.spark;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.DecimalNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.io.api.Binary;
import org.apache.spark.sql.delta.stats.StatisticsCollection;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * The statistics of a file in Delta's log, from the file's footer: what Spark writes for the same rows.
 *
 * <p>A bound that the footer does not have is left out, and so are those of FLOAT and DOUBLE (Arrow leaves NaN out of
 * them, which Spark takes for the greatest number) and the NULLs of arrays and maps (a footer counts elements).
 * Delta's own collector knows neither timestamps nor decimals, and takes a row group without bounds for one of NULLs.
 */
final class FileStatistics {
    private static final ObjectMapper JSON =
            JsonMapper.builder().enable(JsonGenerator.Feature.WRITE_BIGDECIMAL_AS_PLAIN).build();
    // Spark cuts both bounds to milliseconds; who reads them adds one to the greatest.
    private static final DateTimeFormatter MILLISECONDS = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS");
    private static final LocalDate FIRST = LocalDate.of(1, 1, 1);
    private static final LocalDate LAST = LocalDate.of(9999, 12, 31); // of those that any reader can parse

    private final StructType wanted;
    private final int prefix;

    /**
     * Takes the schema of a table's statistics.
     *
     * @param wanted as Delta's snapshot has it.
     * @param prefix how many characters of texts are kept.
     */
    FileStatistics(StructType wanted, int prefix) {
        this.wanted = wanted;
        this.prefix = prefix;
    }

    private interface Value {
        JsonNode of(Leaf leaf, DataType type);
    }

    String json(DataFile file) {
        ParquetMetadata footer = file.footer();
        ObjectNode all = JSON.createObjectNode();
        for (StructField kind : wanted.fields()) {
            switch (kind.name()) {
                case "numRecords" -> all.put("numRecords", file.rows());
                case "tightBounds" -> all.put("tightBounds", true);
                case "minValues" -> all.set("minValues", values(kind, footer, this::least));
                case "maxValues" -> all.set("maxValues", values(kind, footer, this::greatest));
                case "nullCount" -> all.set("nullCount", nulls((StructType) kind.dataType(), file, List.of()));
                default -> { } // of a kind that this does not know: it may be left out
            }
        }
        try {
            return JSON.writeValueAsString(all);
        } catch (JsonProcessingException exc) {
            throw new IllegalStateException(exc);
        }
    }

    private static ObjectNode values(StructField kind, ParquetMetadata footer, Value value) {
        return values((StructType) kind.dataType(), footer, value, List.of());
    }

    private static ObjectNode values(StructType of, ParquetMetadata footer, Value value, List<String> above) {
        ObjectNode found = JSON.createObjectNode();
        for (StructField field : of.fields()) {
            List<String> path = below(above, field.name());
            if (field.dataType() instanceof StructType struct) {
                ObjectNode inner = values(struct, footer, value, path);
                if (!inner.isEmpty()) {
                    found.set(field.name(), inner);
                }
                continue;
            }
            Leaf leaf = Leaf.of(footer, path);
            JsonNode node = leaf == null ? null : value.of(leaf, field.dataType());
            if (node != null) {
                found.set(field.name(), node);
            }
        }
        return found;
    }

    private static ObjectNode nulls(StructType of, DataFile file, List<String> above) {
        ObjectNode found = JSON.createObjectNode();
        for (StructField field : of.fields()) {
            List<String> path = below(above, field.name());
            if (field.dataType() instanceof StructType struct) {
                ObjectNode inner = nulls(struct, file, path);
                if (!inner.isEmpty()) {
                    found.set(field.name(), inner);
                }
                continue;
            }
            Leaf leaf = Leaf.of(file.footer(), path);
            if (leaf != null && leaf.nulls() != null) {
                found.put(field.name(), leaf.nulls());
            } else if (!isIn(file.footer(), path)) {
                found.put(field.name(), file.rows());
            }
        }
        return found;
    }

    /** Returns whether a file has anything of this column: of an array it has the elements. */
    private static boolean isIn(ParquetMetadata footer, List<String> path) {
        for (BlockMetaData block : footer.getBlocks()) {
            for (ColumnChunkMetaData chunk : block.getColumns()) {
                List<String> leaf = List.of(chunk.getPath().toArray());
                if (leaf.size() >= path.size() && leaf.subList(0, path.size()).equals(path)) {
                    return true;
                }
            }
        }
        return false;
    }

    private JsonNode least(Leaf leaf, DataType type) {
        return bound(leaf, type, false);
    }

    private JsonNode greatest(Leaf leaf, DataType type) {
        return bound(leaf, type, true);
    }

    private JsonNode bound(Leaf leaf, DataType type, boolean isGreatest) {
        if (leaf.bounds() == null) {
            return null;
        }
        Object value = isGreatest ? leaf.bounds().greatest() : leaf.bounds().least();
        JsonNodeFactory nodes = JSON.getNodeFactory();
        if (type instanceof IntegralType) {
            return nodes.numberNode(((Number) value).longValue());
        }
        if (type instanceof DecimalType decimal) {
            return DecimalNode.valueOf(new BigDecimal(unscaled(value), decimal.scale())); // with its last zeros
        }
        if (type instanceof StringType) {
            String text = ((Binary) value).toStringUsingUTF8();
            String cut =
                    isGreatest
                            ? StatisticsCollection.truncateMaxStringAgg(prefix, text)
                            : StatisticsCollection.truncateMinStringAgg(prefix, text);
            return cut == null ? null : nodes.textNode(cut);
        }
        if (type instanceof DateType) {
            LocalDate day = LocalDate.ofEpochDay(((Number) value).longValue());
            return isCommon(day) ? nodes.textNode(day.toString()) : null;
        }
        if (type instanceof TimestampType || type instanceof TimestampNTZType) {
            var time = Instant.ofEpochMilli(Math.floorDiv((Long) value, 1000L)).atOffset(ZoneOffset.UTC);
            String zone = type instanceof TimestampType ? "Z" : "";
            return isCommon(time.toLocalDate()) ? nodes.textNode(MILLISECONDS.format(time) + zone) : null;
        }
        return null;
    }

    private static BigInteger unscaled(Object value) {
        return value instanceof Binary bytes
                ? new BigInteger(bytes.getBytes())
                : BigInteger.valueOf(((Number) value).longValue());
    }

    private static boolean isCommon(LocalDate day) {
        return !day.isBefore(FIRST) && !day.isAfter(LAST);
    }

    private static List<String> below(List<String> path, String name) {
        List<String> longer = new ArrayList<>(path);
        longer.add(name);
        return longer;
    }
}
