package binwright.spark;

/** Nothing is committed, and why: a verdict, and what it is about. */
final class Refusal extends Exception {
    private static final long serialVersionUID = 1L;

    private final String verdict;

    private Refusal(String verdict, String what) {
        super(what, null, false, false); // a reply, not a fault: nobody reads where it was made
        this.verdict = verdict;
    }

    /** The lease is gone: another writer has claimed the table. */
    static Refusal noLease(String lease) {
        return new Refusal("no_lease", lease);
    }

    /** There is no such staged file. */
    static Refusal missing(String file) {
        return new Refusal("missing", file);
    }

    /** A staged file is not one of Parquet, or its footer cannot be read. */
    static Refusal damaged(String file, String why) {
        return new Refusal("damaged", file + ": " + why);
    }

    /** A table, or this server, does not take files as they are. */
    static Refusal table(String reason) {
        return new Refusal("table_not_in_place", reason);
    }

    /** A table does not take this file as it is. */
    static Refusal file(String file, String reason) {
        return new Refusal("file_not_in_place", file + ": " + reason);
    }

    String verdict() {
        return verdict;
    }
}
