package ottla;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;

/** The same as Hadoop's FileContext asks for it: `fs.AbstractFileSystem.file.impl`. */
public class LocalContext extends ChecksumFs {
    LocalContext(URI uri, Configuration configuration) throws IOException, URISyntaxException {
        super(new Raw(uri, configuration));
    }

    static class Raw extends DelegateToFileSystem {
        Raw(URI uri, Configuration configuration) throws IOException, URISyntaxException {
            super(uri, new RawFiles(), configuration, "file", false);
        }

        public int getUriDefaultPort() {
            return -1;
        }

        public boolean isValidName(String name) {
            return true;
        }
    }
}
