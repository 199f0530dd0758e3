package binwright.spark;

import io.delta.storage.HDFSLogStore;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Writes the logs of tables on a local disk: a version gets its name by a hard link, which can be made once (†).
 *
 * <p>Delta's own way, a rename by Hadoop, looks for the name first, and of two processes that look at once both go
 * on: rows of the first are lost. Without its native library Hadoop starts a process for each look at a link and each
 * right that it sets: ten for a version, a third of the CPU of a small commit. A file system without hard links (FAT,
 * exFAT, some network disks) has renames under a lock instead.
 */
public final class LocalLogStore extends HDFSLogStore {
    /** Of a log's directory, and only of a file system without hard links. */
    private static final String LOCK = ".binwright.lock";

    /** Called by Delta, by the setting {@code spark.delta.logStore.file.impl}. */
    public LocalLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf) throws IOException {
        if (overwrite) {
            super.write(path, actions, true, conf); // no version: a pointer to the newest checkpoint
            return;
        }
        java.nio.file.Path version = TableDirectory.local(path);
        java.nio.file.Path part = version.resolveSibling("." + version.getFileName() + "." + UUID.randomUUID() + ".tmp");
        try {
            writeLines(part, actions);
            setRights(part, conf);
            if (!links(version, part)) {
                rename(version, part);
            }
        } finally {
            Files.deleteIfExists(part);
        }
    }

    private static void writeLines(java.nio.file.Path file, Iterator<String> lines) throws IOException {
        try (BufferedWriter out = Files.newBufferedWriter(file)) { // UTF-8
            while (lines.hasNext()) {
                out.write(lines.next());
                out.write('\n');
            }
        }
    }

    /** Sets the rights that Hadoop gives to files, whatever the process' own mask is. */
    private static void setRights(java.nio.file.Path file, Configuration conf) throws IOException {
        String rights = FsPermission.getFileDefault().applyUMask(FsPermission.getUMask(conf)).toString();
        try {
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(rights));
        } catch (FileSystemException | UnsupportedOperationException exc) {
            // Of our own new file: its file system keeps no rights, as FAT, and all files have those of its mount.
            return;
        }
    }

    /** Gives a file its other name, and returns whether it did: a file system may have no links. */
    private static boolean links(java.nio.file.Path version, java.nio.file.Path part) throws IOException {
        try {
            Files.createLink(version, part);
            return true;
        } catch (FileAlreadyExistsException exc) {
            throw exc; // another commit is this version
        } catch (FileSystemException | UnsupportedOperationException exc) {
            return false;
        }
    }

    /** Gives a file its name, unless there is one of it: one at a time, since a rename writes over what is there (†). */
    @SuppressWarnings("try") // the lock is held, and nothing is asked of it
    private static synchronized void rename(java.nio.file.Path version, java.nio.file.Path part) throws IOException {
        java.nio.file.Path lock = version.resolveSibling(LOCK);
        try (FileChannel channel = FileChannel.open(lock, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock held = channel.lock()) { // of a process that is killed it is given back
            if (Files.exists(version, LinkOption.NOFOLLOW_LINKS)) {
                throw new FileAlreadyExistsException(version.toString());
            }
            Files.move(part, version, StandardCopyOption.ATOMIC_MOVE);
        }
    }
}
