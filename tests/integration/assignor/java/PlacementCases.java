package binwright.assignor;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Prints the members on which the placement of each case of a file puts its partitions, a line each. */
public final class PlacementCases {
    private PlacementCases() {
    }

    public static void main(String[] arguments) throws IOException {
        String text = new String(Files.readAllBytes(Path.of(arguments[0])), StandardCharsets.UTF_8);
        for (Object each : (List<?>) Json.parse(text)) {
            Map<?, ?> one = (Map<?, ?>) each;
            double[] rates = ((List<?>) one.get("rates")).stream()
                    .mapToDouble(rate -> rate == null ? Double.NaN : ((Number) rate).doubleValue())
                    .toArray();
            List<?> members = (List<?>) one.get("members");
            int[] topics = numbers(one.get("topics"));
            boolean[][] subscribed = new boolean[members.size()][((Long) one.get("count")).intValue()];
            for (int member = 0; member < members.size(); member++) {
                for (int topic : numbers(members.get(member))) {
                    subscribed[member][topic] = true;
                }
            }
            int[] owners = Placement.place(topics, rates, subscribed, numbers(one.get("current")));
            System.out.println(Arrays.stream(owners).mapToObj(String::valueOf).collect(Collectors.joining(" ")));
        }
    }

    private static int[] numbers(Object values) {
        return ((List<?>) values).stream().mapToInt(value -> ((Long) value).intValue()).toArray();
    }
}
