package binwright.spark;

import io.delta.storage.HDFSLogStore;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Iterator;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Writes the logs of tables on a local disk: a version gets its name by a hard link, which can be made once (†).
 *
 * <p>Delta's own way, a rename by Hadoop, looks for the name first. Without its native library Hadoop starts a process
 * for each look at a link and each right that it sets: ten for a version, a third of the CPU of a small commit.
 */
public final class LocalLogStore extends HDFSLogStore {
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
            link(version, part, fileRights(conf));
        } catch (UnsupportedOperationException exc) {
            try (Stream<String> lines = Files.lines(part)) {
                super.write(path, lines.iterator(), false, conf);
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

    /** Returns the rights that Hadoop gives to files, whatever the process' own mask is. */
    private static String fileRights(Configuration conf) {
        return FsPermission.getFileDefault().applyUMask(FsPermission.getUMask(conf)).toString();
    }

    private static void link(java.nio.file.Path version, java.nio.file.Path part, String rights) throws IOException {
        try {
            Files.setPosixFilePermissions(part, PosixFilePermissions.fromString(rights));
            Files.createLink(version, part);
        } catch (FileAlreadyExistsException exc) {
            throw exc; // another commit is this version
        } catch (FileSystemException exc) {
            throw new UnsupportedOperationException("no hard links, or no rights, here", exc);
        }
    }
}
