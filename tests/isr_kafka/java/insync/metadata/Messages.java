package insync.metadata;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * Kafka's own messages: for each line "KEY VERSION request|answer HEX", a frame, the bytes that Kafka writes of what it
 * has read in the body, how many bytes it has left over, and the message as text.
 */
public final class Messages {
    private Messages() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            ApiKeys key = ApiKeys.forId(Integer.parseInt(words[0]));
            short version = Short.parseShort(words[1]);
            ByteBuffer frame = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
            boolean isRequest = words[2].equals("request");
            if (isRequest) {
                RequestHeader.parse(frame);
            } else {
                ResponseHeader.parse(frame, key.responseHeaderVersion(version));
            }
            ApiMessageType type = ApiMessageType.fromApiKey(key.id);
            ApiMessage message = isRequest ? type.newRequest() : type.newResponse();
            message.read(new ByteBufferAccessor(frame), version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer body = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(body), cache, version);
            System.out.println(HexFormat.of().formatHex(body.array()) + " " + frame.remaining() + " " + message);
        }
    }
}
