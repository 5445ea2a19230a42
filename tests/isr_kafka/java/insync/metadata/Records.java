package insync.metadata;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Kafka's own serializer of metadata records: its schemas, and for each line of hexadecimal the record and its bytes. */
public final class Records {
    private Records() {}

    public static void main(String[] arguments) throws Exception {
        for (MetadataRecordType type : MetadataRecordType.values()) {
            Schema[] schemas = (Schema[]) type.newMetadataRecord().getClass().getField("SCHEMAS").get(null);
            for (short version = type.lowestSupportedVersion(); version <= type.highestSupportedVersion(); version++) {
                String name = type.newMetadataRecord().getClass().getSimpleName();
                System.out.println("schema " + type.id() + " " + name + " " + version + " " + text(schemas[version]));
            }
        }
        System.out.println("end");
        MetadataRecordSerde serde = new MetadataRecordSerde();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] bytes = HexFormat.of().parseHex(line.strip());
            ApiMessageAndVersion record = serde.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), bytes.length);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer again = ByteBuffer.allocate(serde.recordSize(record, cache));
            serde.write(record, cache, new ByteBufferAccessor(again));
            System.out.println(
                    HexFormat.of().formatHex(again.array())
                            + " "
                            + MetadataJsonConverters.writeJson(record.message(), record.version()));
        }
    }

    private static String text(Schema schema) {
        StringBuilder out = new StringBuilder("(");
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Map.Entry<Integer, Field> each : new TreeMap<>(tagged.fields()).entrySet()) {
                    out.append(each.getKey()).append(" ").append(text(each.getValue()));
                }
            } else {
                out.append(text(bound.def));
            }
        }
        return out.append(")").toString();
    }

    private static String text(Field field) {
        Type type = field.type;
        String of = type.isArray() ? "[]" + text(type.arrayElementType().orElseThrow()) : text(type);
        return field.name + " " + of + (type.isNullable() ? "?" : "") + ",";
    }

    private static String text(Type type) {
        return type instanceof Schema schema ? text(schema) : type.toString().replaceAll("COMPACT_|NULLABLE_", "");
    }
}
