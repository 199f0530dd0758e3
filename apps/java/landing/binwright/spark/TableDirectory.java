package binwright.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.io.IOUtils;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.actions.Metadata;

/**
 * Puts staged files into a table's directory, by links or copies. The staged ones stay.
 *
 * <p>On a local file system that is a hard link, elsewhere a copy, which has its name only when it is complete; of a
 * part the row groups are copied. What no commit takes is part of no version; a VACUUM deletes it, as it does what is
 * left of an append that failed.
 */
final class TableDirectory {
    private static final int BUFFER = 1 << 20; // bytes
    // Never written over: it may be part of a version.
    private static final String OTHER = "the table's directory has another file of this name";

    private final DeltaLog log;
    private final Configuration conf;
    private final FileSystem storage;
    private final long oldest;

    TableDirectory(DeltaLog log, Metadata metadata, Configuration conf) throws IOException {
        this.log = log;
        this.conf = conf;
        this.storage = log.dataPath().getFileSystem(conf);
        // A VACUUM deletes what no version has and is older than this retention. It may run now, and for a while.
        this.oldest = System.currentTimeMillis() - DeltaLog.tombstoneRetentionMillis(metadata) / 2;
    }

    /** Returns the file at a path in the table's directory with the rows of a staged one, young enough for a commit. */
    FileStatus put(DataFile file, String path) throws Refusal, IOException {
        if (isWithin(file.path())) {
            // The writer deletes what it has staged (†): there that would be what has landed.
            throw Refusal.table("files are staged in its own directory, or below it");
        }
        Path target = new Path(log.dataPath(), path);
        if (!file.isWhole()) {
            return cut(file, target);
        }
        FileStatus there = there(target);
        if (there != null && !isSame(there, file.status(), file.tail())) {
            throw Refusal.file(file.name(), OTHER);
        }
        if (there != null && there.getModificationTime() >= oldest) {
            return there; // an earlier try put it
        }
        if (there != null || !links(file, target)) {
            copy(file, target);
        }
        return storage.getFileStatus(target);
    }

    /** Tells whether a file is in the table's directory, by whatever name a local disk has it. */
    private boolean isWithin(Path staged) throws IOException {
        FileSystem other = staged.getFileSystem(conf);
        if (isLocal(storage) && isLocal(other)) {
            return local(staged.getParent()).toRealPath().startsWith(local(log.dataPath()).toRealPath());
        }
        return other.makeQualified(staged).toString().startsWith(storage.makeQualified(log.dataPath()) + "/");
    }

    private FileStatus there(Path target) throws IOException {
        try {
            return storage.getFileStatus(target);
        } catch (FileNotFoundException exc) {
            return null;
        }
    }

    private boolean isSame(FileStatus there, FileStatus file, byte[] tail) throws IOException {
        return there.getLen() == file.getLen() && Arrays.equals(DataFile.tail(storage, there), tail);
    }

    /** Links a young file of the table's owner, and returns whether it did; others are copied. */
    private boolean links(DataFile file, Path target) throws Refusal, IOException {
        Path from = file.path();
        boolean areLocal = isLocal(storage) && isLocal(from.getFileSystem(conf));
        if (!areLocal || file.status().getModificationTime() < oldest) {
            return false;
        }
        try {
            // A link has the owner of its file. Who staged it as another user could change what has landed.
            if (!Files.getOwner(local(from)).equals(Files.getOwner(local(log.logPath())))) {
                return false;
            }
            Files.createDirectories(local(target.getParent()));
            Files.createLink(local(target), local(from));
            return true;
        } catch (NoSuchFileException exc) {
            throw Refusal.missing(file.name());
        } catch (FileSystemException | UnsupportedOperationException exc) {
            return false; // another disk, a file system without links, or a right that is not given
        }
    }

    private static boolean isLocal(FileSystem storage) {
        return "file".equals(storage.getUri().getScheme());
    }

    /** Returns a path of a local disk as Java has it. */
    static java.nio.file.Path local(Path path) {
        return java.nio.file.Path.of(path.toUri().getPath());
    }

    private void copy(DataFile file, Path target) throws Refusal, IOException {
        if (!log.store().isPartialWriteVisible(target, conf)) {
            write(file, target);
            return;
        }
        // Not a hidden name: what a process leaves behind that is killed is a VACUUM's.
        Path part = target.suffix("." + UUID.randomUUID() + ".part");
        try {
            write(file, part);
            FileContext.getFileContext(part.toUri(), conf).rename(part, target, Options.Rename.OVERWRITE);
        } finally {
            storage.delete(part, false);
        }
    }

    private void write(DataFile file, Path path) throws Refusal, IOException {
        try (FSDataInputStream in = opened(file)) {
            FSDataOutputStream out = storage.create(path, true);
            try {
                IOUtils.copyBytes(in, out, BUFFER, false);
                if (out.getPos() != file.status().getLen()) { // cut short, its rows would be lost
                    throw new IOException(file.path() + " has other bytes than a moment ago");
                }
            } catch (IOException | RuntimeException exc) {
                if (out.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) {
                    out.abort(); // closed alone, an object store would show the half
                }
                IOUtils.closeStream(out);
                throw exc;
            }
            out.close();
        }
    }

    /** Puts a part as a file of its own. Its row groups are copied, which gives the same bytes at each try. */
    private FileStatus cut(DataFile part, Path target) throws Refusal, IOException {
        Path made = target.suffix("." + UUID.randomUUID() + ".part");
        try {
            RowGroups.copy(List.of(part), part.footer().getFileMetaData().getKeyValueMetaData(), made, conf);
            FileStatus done = storage.getFileStatus(made);
            FileStatus there = there(target);
            if (there == null) {
                if (!storage.rename(made, target)) {
                    throw new IOException(made + " cannot become " + target);
                }
                return storage.getFileStatus(target);
            }
            boolean isSame = isSame(there, done, DataFile.tail(storage, done));
            if (!isSame || there.getModificationTime() < oldest) {
                throw Refusal.file(part.name(), OTHER);
            }
            return there; // an earlier try put it
        } finally {
            storage.delete(made, false);
        }
    }

    private FSDataInputStream opened(DataFile file) throws Refusal, IOException {
        try {
            return file.path().getFileSystem(conf).open(file.path());
        } catch (FileNotFoundException exc) {
            throw Refusal.missing(file.name());
        }
    }
}
