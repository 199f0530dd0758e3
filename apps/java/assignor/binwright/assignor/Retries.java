package binwright.assignor;

import java.util.function.Consumer;
import org.apache.kafka.common.errors.InterruptException;

/** Pauses between tries, which double until something succeeds: from 5 s to a minute. */
final class Retries {
    private static final long FIRST_MS = 5_000;
    private static final long LAST_MS = 60_000;

    private final Pause clock;
    private long nextMs = FIRST_MS;

    Retries(Pause clock) {
        this.clock = clock;
    }

    /** Runs a task that is to go on for ever, and again whatever ends it, until the thread is interrupted. */
    void forEver(Task task, Consumer<Throwable> failed) throws InterruptedException {
        while (true) {
            try {
                task.run();
            } catch (InterruptedException | InterruptException interrupted) {
                return;
            } catch (Throwable any) { // an Error, too: a record that takes all memory must not end it
                failed.accept(any);
            }
            pause();
        }
    }

    void pause() throws InterruptedException {
        long pauseMs = nextMs;
        nextMs = Math.min(LAST_MS, 2 * nextMs);
        clock.await(pauseMs);
    }

    void succeeded() {
        nextMs = FIRST_MS;
    }

    /** Something that may fail in any way. */
    interface Task {
        void run() throws Exception;
    }

    /** Waits. */
    interface Pause {
        void await(long ms) throws InterruptedException;
    }
}
