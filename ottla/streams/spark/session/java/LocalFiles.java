package ottla;

import org.apache.hadoop.fs.LocalFileSystem;

/** The files of this machine with their checksums, as Hadoop's FileSystem: `fs.file.impl`. */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawFiles());
    }
}
