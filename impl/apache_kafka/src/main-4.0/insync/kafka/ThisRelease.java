package insync.kafka;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import scala.jdk.javaapi.CollectionConverters;

/** Kafka 4.0, where partitions go by their names. */
final class ThisRelease extends Release {
  @Override
  void append(
      ReplicaManager manager,
      short acks,
      AppendOrigin origin,
      Map<TopicIdPartition, MemoryRecords> entries,
      Consumer<Errors> listener) {
    Map<TopicPartition, MemoryRecords> byName = new HashMap<>();
    entries.forEach((partition, records) -> byName.put(partition.topicPartition(), records));
    manager.appendRecords(
        PATIENCE,
        acks,
        false,
        origin,
        CollectionConverters.asScala(byName),
        each(listener),
        manager.appendRecords$default$7(),
        manager.appendRecords$default$8(),
        manager.appendRecords$default$9(),
        manager.appendRecords$default$10(),
        manager.appendRecords$default$11());
  }
}
