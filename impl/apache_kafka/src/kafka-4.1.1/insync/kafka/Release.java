package insync.kafka;

import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import kafka.server.FetchManager;
import kafka.server.FetchSessionCacheShard;
import kafka.server.ReplicaFetcherManager;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.DelayedActionQueue;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.partition.AlterPartitionManager;
import org.apache.kafka.server.quota.ReplicationQuotaManager;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** How Kafka 4.1 puts its parts together. */
final class Release {
  private Release() {}

  /** ReplicaFetcherManager, whose threads {@link Fetchers} makes. */
  abstract static class FetcherManager extends ReplicaFetcherManager {
    FetcherManager(
        Broker broker, ReplicaManager manager, Parts.Cache cache, ReplicationQuotaManager quota) {
      super(
          manager.config(),
          manager,
          Parts.METRICS,
          broker.clock,
          Option.empty(),
          quota,
          cache::metadataVersion,
          () -> broker.epoch);
    }
  }

  static final class Manager extends ReplicaManager {
    Manager(
        Broker broker,
        Parts parts,
        Scheduler scheduler,
        AlterPartitionManager alter,
        LogDirFailureChannel channel) {
      super(
          parts.config,
          Parts.METRICS,
          broker.clock,
          scheduler,
          parts.logs.manager,
          Option.empty(),
          parts.quotas,
          parts.cache,
          channel,
          alter,
          Parts.STATS,
          new AtomicBoolean(),
          Parts.purgatory("Produce", broker.id),
          Option.apply(parts.parked),
          Parts.purgatory("DeleteRecords", broker.id),
          Parts.purgatory("RemoteFetch", broker.id),
          Parts.purgatory("RemoteListOffsets", broker.id),
          Parts.purgatory("ShareFetch", broker.id),
          Option.empty(),
          () -> broker.epoch,
          Option.empty(),
          DirectoryEventHandler.NOOP,
          new DelayedActionQueue());
      Fields.set(
          this,
          "replicaFetcherManager",
          new Fetchers(broker, this, parts.cache, parts.quotas.follower()));
    }

    @Override
    public ReplicaFetcherManager createReplicaFetcherManager(
        Metrics metrics, Time time, Option<String> prefix, ReplicationQuotaManager quota) {
      return null; // called by the constructor of ReplicaManager, before the broker is known
    }
  }

  /** ReplicaManager.appendRecords. */
  static void append(
      ReplicaManager manager,
      short acks,
      AppendOrigin origin,
      Map<TopicIdPartition, MemoryRecords> entries,
      Consumer<Errors> told) {
    manager.appendRecords(
        1_000_000_000L,
        acks,
        false,
        origin,
        CollectionConverters.asScala(entries),
        answers -> {
          CollectionConverters.asJava(answers).forEach((k, answer) -> told.accept(answer.error));
          return BoxedUnit.UNIT;
        },
        manager.appendRecords$default$7(),
        manager.appendRecords$default$8(),
        manager.appendRecords$default$9());
  }

  static FetchManager fetches(Time time, FetchSessionCacheShard sessions) {
    return new FetchManager(time, sessions);
  }
}
