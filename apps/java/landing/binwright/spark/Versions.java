package binwright.spark;

import java.util.regex.Pattern;

/**
 * The versions that this was tested with: one of Delta, on each Spark that Delta is built for.
 *
 * <p>Delta's transactions are classes of its own, which change from version to version. What runs with
 * others must not be tried out on people's tables.
 */
final class Versions {
    static final String DELTA = "4.4.0";
    static final String SPARK = "4.0, 4.1 or 4.2";
    private static final Pattern SPARKS = Pattern.compile("4\\.[0-2]\\.[0-9]+");

    private Versions() {}

    /** Returns why this server's versions do not fit, as a sentence; null if they do. */
    static String reasonAgainst() {
        String delta = version("io.delta.package", "VERSION");
        return reasonAgainst(delta, version("org.apache.spark.package", "SPARK_VERSION"));
    }

    static String reasonAgainst(String delta, String spark) {
        if (delta.equals(DELTA) && SPARKS.matcher(spark).matches()) {
            return null;
        }
        return "this server has Delta " + delta + " on Spark " + spark + ", and its binwright-landing.jar is for Delta "
                + DELTA + " on Spark " + SPARK;
    }

    /** Returns why classes that the same versions should have are not there. */
    static String reasonFor(LinkageError error) {
        return "this server has no unchanged Delta " + DELTA + " on Spark " + SPARK + ": " + error;
    }

    // By name: a class that is not there, or is another, must not keep this one from loading.
    private static String version(String holder, String method) {
        try {
            return String.valueOf(Class.forName(holder).getMethod(method).invoke(null));
        } catch (ReflectiveOperationException | LinkageError exc) {
            return "of an unknown version";
        }
    }
}
