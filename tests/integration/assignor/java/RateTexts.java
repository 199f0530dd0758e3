package binwright.assignor;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Prints, for each line of a file, what is known of topic "a" since 1000 ms once it is taken at 3000 ms; or "false". */
public final class RateTexts {
    private static final int COUNT = 2;
    private static final long NOW_MS = 3000;

    private RateTexts() {
    }

    public static void main(String[] arguments) throws IOException {
        MeasuredRates rates = new MeasuredRates();
        for (String line : Files.readAllLines(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
            try {
                Measurement measured = Measurement.parse(line, NOW_MS);
                rates.take(measured.topic, List.of(measured));
                boolean isYoung = rates.since("a", COUNT, NOW_MS + 1).isEmpty();
                System.out.println(isYoung ? rates.since("a", COUNT, 1000) : "from the future");
            } catch (IllegalArgumentException malformed) {
                System.out.println(false);
            }
        }
    }
}
