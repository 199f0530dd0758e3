package binwright.assignor;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Prints, for each line of a file, what is known of topic "a" since 1000 ms once it is taken; or "false". */
public final class RateTexts {
    private RateTexts() {
    }

    public static void main(String[] arguments) throws IOException {
        MeasuredRates rates = new MeasuredRates();
        for (String line : Files.readAllLines(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
            try {
                rates.take(line);
                System.out.println(rates.since("a", 1000));
            } catch (IllegalArgumentException malformed) {
                System.out.println(false);
            }
        }
    }
}
