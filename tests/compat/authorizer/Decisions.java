import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Reads access control lists and questions from standard input; prints a line for each question. */
public class Decisions {
    record Client(String type, String name, String host) implements AuthorizableRequestContext {
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public KafkaPrincipal principal() { return new KafkaPrincipal(type, name); }
        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException error) {
                throw new IllegalStateException(error);
            }
        }
        public int requestType() { return 3; }
        public int requestVersion() { return 0; }
        public String clientId() { return "client"; }
        public int correlationId() { return 0; }
    }

    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var results = new StringBuilder();
        StandardAuthorizer authorizer = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t", -1);
            if (words[0].equals("rules")) {
                authorizer = new StandardAuthorizer();
                authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                authorizer.configure(Map.of(
                    "allow.everyone.if.no.acl.found", words[1], "super.users", words[2]));
                authorizer.completeInitialLoad();
            } else if (words[0].equals("entry")) {
                authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.fromString(words[1]), words[2], PatternType.fromString(words[3]),
                    words[4], words[5], AclOperation.fromString(words[6]),
                    AclPermissionType.fromString(words[7])));
            } else {
                var resource = new ResourcePattern(
                    ResourceType.fromString(words[5]), words[6], PatternType.LITERAL);
                var action = new Action(
                    AclOperation.fromString(words[4]), resource, 1, false, false);
                var client = new Client(words[1], words[2], words[3]);
                results.append(authorizer.authorize(client, List.of(action)).get(0)
                    == AuthorizationResult.ALLOWED ? '1' : '0');
            }
        }
        System.out.println(results);
    }
}
