package ottla;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's files of this machine; asks Java for what the original starts a process for, `chmod` or `readlink`. */
public class RawFiles extends RawLocalFileSystem {
    /** Sets permissions; those with a sticky bit, which Java does not know, as the original does. */
    public void setPermission(Path path, FsPermission permission) throws IOException {
        if (permission.getStickyBit()) {
            super.setPermission(path, permission);
            return;
        }
        java.nio.file.Path file = this.pathToFile(path).toPath();
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permission.toString()));
    }

    /** Returns the status of a path; the original asks of each whether it is a link. */
    public FileStatus getFileLinkStatus(Path path) throws IOException {
        boolean isLink = Files.isSymbolicLink(this.pathToFile(path).toPath());
        return isLink ? super.getFileLinkStatus(path) : this.getFileStatus(path);
    }
}
