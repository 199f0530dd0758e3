package binwright.assignor;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Prints for each line of a file whether it is a plan. */
public final class PlanTexts {
    private PlanTexts() {
    }

    public static void main(String[] arguments) throws IOException {
        for (String line : Files.readAllLines(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
            System.out.println(isPlan(line));
        }
    }

    private static boolean isPlan(String text) {
        try {
            GroupPlan.parse(text);
            return true;
        } catch (IllegalArgumentException malformed) {
            return false;
        }
    }
}
