package insync.kafka;

import java.util.Map;
import java.util.function.Consumer;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/**
 * Calls that differ between releases. {@code src/main} has {@link ThisRelease} as Kafka is since
 * 4.2; a folder beside it has it as Kafka was until an older release.
 */
abstract class Release {
  /** The release that is on the class path. */
  static final Release THIS = new ThisRelease();

  /** A producer's patience, in ms: longer than anything here. */
  static final long PATIENCE = 1_000_000_000L;

  /** ReplicaManager.appendRecords; the listener hears the error of each answer. */
  abstract void append(
      ReplicaManager manager,
      short acks,
      AppendOrigin origin,
      Map<TopicIdPartition, MemoryRecords> entries,
      Consumer<Errors> listener);

  /** A call for answers, which come as a map of Java or of Scala. */
  static <T> Function1<T, BoxedUnit> each(Consumer<Errors> listener) {
    return answers -> {
      Map<?, ?> all =
          answers instanceof Map<?, ?> java
              ? java
              : CollectionConverters.asJava((scala.collection.Map<?, ?>) answers);
      all.values().forEach(answer -> listener.accept(((PartitionResponse) answer).error));
      return BoxedUnit.UNIT;
    };
  }
}
