package insync.kafka;

import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.FailedPartitions;
import kafka.server.KafkaConfig;
import kafka.server.RemoteLeaderEndPoint;
import kafka.server.ReplicaFetcherManager;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.server.DelayedActionQueue;
import org.apache.kafka.server.LeaderEndPoint;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.partition.AlterPartitionManager;
import org.apache.kafka.server.partition.DefaultAlterPartitionManager;
import org.apache.kafka.server.partition.PartitionState;
import org.apache.kafka.server.partition.PendingPartitionChange;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.quota.ReplicaQuota;
import org.apache.kafka.server.quota.ReplicationQuotaManager;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** How Kafka 4.1 puts its parts together. */
final class Release {
  private Release() {}

  /** LogManager of one folder. */
  static final class Logs {
    final LogManager manager;

    Logs(Broker broker, Parts parts, File folder, Scheduler scheduler, LogDirFailureChannel channel)
        throws IOException {
      manager =
          new LogManager(
              seq(List.of(folder.getAbsoluteFile())),
              seq(List.<File>of()),
              parts.cache,
              new LogConfig(parts.config.extractLogConfigMap()),
              new CleanerConfig(false),
              1,
              1000,
              10000,
              10000,
              1000,
              5 * 60 * 1000,
              new ProducerStateManagerConfig(86400000, false),
              600000,
              scheduler,
              Parts.STATS,
              channel,
              broker.clock,
              false,
              1000000L);
      for (FileLock lock : CollectionConverters.asJava(manager.dirLocks())) {
        lock.destroy(); // the next process of this broker uses the folder again
      }
      Fields.set(manager, "dirLocks", seq(List.<FileLock>of()));
    }

    UnifiedLog of(TopicPartition partition) {
      Option<UnifiedLog> found = manager.getLog(partition, false);
      return found.isEmpty() ? null : found.get();
    }

    void start(Set<String> topics) throws Exception {
      manager.startup(CollectionConverters.asScala(topics).toSet(), log -> false);
    }

    void stop(long epoch) throws IOException {
      manager.shutdown(epoch);
    }
  }

  /** A fetcher thread that is never started. */
  static final class Fetcher extends ReplicaFetcherThread {
    Fetcher(
        String name,
        LeaderEndPoint leader,
        KafkaConfig config,
        FailedPartitions failed,
        ReplicaManager manager,
        ReplicaQuota quota) {
      super(name, leader, config, failed, manager, quota, name);
    }

    @Override
    public synchronized void start() {}

    @Override
    public void awaitShutdown() {}
  }

  static final class Fetchers extends ReplicaFetcherManager {
    private final Broker broker;
    private final KafkaConfig config;
    private final ReplicaManager manager;
    private final ReplicationQuotaManager quota;
    private final Parts.Cache cache;

    Fetchers(
        Broker broker,
        ReplicaManager manager,
        Parts.Cache cache,
        Metrics metrics,
        Time time,
        ReplicationQuotaManager quota) {
      super(
          manager.config(),
          manager,
          metrics,
          time,
          Option.empty(),
          quota,
          cache::metadataVersion,
          () -> broker.epoch);
      this.broker = broker;
      this.config = manager.config();
      this.manager = manager;
      this.quota = quota;
      this.cache = cache;
    }

    @Override
    public ReplicaFetcherThread createFetcherThread(int fetcher, BrokerEndPoint source) {
      FetchSessionHandler sessions = new FetchSessionHandler(new LogContext(), source.id());
      Parts.Sender sender = new Parts.Sender(broker, source);
      LeaderEndPoint leader =
          new RemoteLeaderEndPoint(
              "",
              sender,
              sessions,
              config,
              manager,
              quota,
              cache::metadataVersion,
              () -> broker.epoch);
      return new Fetcher(
          "fetcher-" + source.id(), leader, config, failedPartitions(), manager, quota);
    }
  }

  static final class Manager extends ReplicaManager {
    private final Broker broker;
    private final Parts.Cache cache;

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
          purgatory("Produce", broker),
          Option.apply(parts.parked),
          purgatory("DeleteRecords", broker),
          purgatory("RemoteFetch", broker),
          purgatory("RemoteListOffsets", broker),
          purgatory("ShareFetch", broker),
          Option.empty(),
          () -> broker.epoch,
          Option.empty(),
          DirectoryEventHandler.NOOP,
          new DelayedActionQueue());
      this.broker = broker;
      this.cache = parts.cache;
      Fields.set(this, "replicaFetcherManager", fetchers(parts.quotas.follower()));
    }

    @Override
    public ReplicaFetcherManager createReplicaFetcherManager(
        Metrics metrics, Time time, Option<String> prefix, ReplicationQuotaManager quota) {
      return null; // called by the constructor of ReplicaManager, before the broker is known
    }

    private ReplicaFetcherManager fetchers(ReplicationQuotaManager quota) {
      return new Fetchers(broker, this, cache, Parts.METRICS, broker.clock, quota);
    }
  }

  private static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  private static <T extends DelayedOperation> Option<DelayedOperationPurgatory<T>> purgatory(
      String name, Broker broker) {
    return Option.apply(Parts.purgatory(name, broker.id));
  }

  private static Set<Integer> ids(scala.collection.immutable.Set<Object> scala) {
    Set<Integer> all = new TreeSet<>();
    CollectionConverters.asJava(scala).forEach(id -> all.add((Integer) id));
    return all;
  }

  /** The in-sync set that a leader takes to be committed. */
  static Set<Integer> isr(Partition partition) {
    return ids(partition.partitionState().isr());
  }

  /** The in-sync set that it has proposed; empty if it has not. */
  static Set<Integer> pending(Partition partition) {
    PartitionState known = partition.partitionState();
    return known instanceof PendingPartitionChange pending
        ? new TreeSet<>(pending.sentLeaderAndIsr().isr())
        : Set.of();
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

  static AlterPartitionManager alterPartitions(
      NodeToControllerChannelManager channel, Scheduler scheduler, Broker broker) {
    return new DefaultAlterPartitionManager(
        channel, scheduler, broker.clock, broker.id, () -> broker.epoch);
  }
}
