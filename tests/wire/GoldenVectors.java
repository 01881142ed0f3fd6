// Encodes messages with Apache Kafka's own generated classes; driven by make_golden.py.
//
// Standard input: one message a line, "<class> <version> <JSON in Kafka's names>".
// Standard output: the bytes of each in hexadecimal, or "! <error>".

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class GoldenVectors {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split(" ", 3);
            System.out.println(encode(parts[0], Short.parseShort(parts[1]), mapper.readTree(parts[2])));
        }
    }

    private static String encode(String name, short version, JsonNode document) {
        try {
            Class<?> converter = Class.forName(name + "JsonConverter");
            Method read = converter.getMethod("read", JsonNode.class, short.class);
            Message message = (Message) read.invoke(null, document, version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            byte[] bytes = new byte[message.size(cache, version)];
            message.write(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), cache, version);
            return HexFormat.of().formatHex(bytes);
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return "! " + cause.toString().replace('\n', ' ');
        }
    }
}
