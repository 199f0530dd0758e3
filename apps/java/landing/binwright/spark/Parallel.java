package binwright.spark;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Requests of a storage at the same time. */
final class Parallel {
    private static final int THREADS = 8; // an object store takes 20 to 100 ms for each request

    private Parallel() {}

    interface Work<A, B> {
        B of(A item) throws Refusal, IOException;
    }

    /** Returns the results in order; throws what the first item that failed has thrown. */
    static <A, B> List<B> map(List<A> items, Work<A, B> work) throws Refusal, IOException {
        ExecutorService threads = Executors.newFixedThreadPool(Math.max(1, Math.min(THREADS, items.size())));
        try {
            List<Callable<B>> tasks = new ArrayList<>();
            items.forEach(item -> tasks.add(() -> work.of(item)));
            List<B> results = new ArrayList<>();
            for (Future<B> result : threads.invokeAll(tasks)) {
                results.add(result.get());
            }
            return results;
        } catch (InterruptedException exc) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted");
        } catch (ExecutionException exc) {
            return rethrown(exc.getCause());
        } finally {
            threads.shutdownNow();
        }
    }

    private static <B> List<B> rethrown(Throwable thrown) throws Refusal, IOException {
        if (thrown instanceof Refusal refusal) {
            throw refusal;
        }
        if (thrown instanceof Error error) {
            throw error;
        }
        if (thrown instanceof RuntimeException exc) {
            throw exc;
        }
        throw thrown instanceof IOException exc ? exc : new IOException(thrown);
    }
}
