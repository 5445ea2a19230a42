package insync.kafka;

import insync.objects.Fields;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import kafka.network.RequestChannel;
import kafka.server.AbstractFetcherThread;
import kafka.server.FailedPartitions;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.network.metrics.RequestChannelMetrics;
import org.apache.kafka.server.LeaderEndPoint;
import org.apache.kafka.server.PartitionFetchState;
import org.apache.kafka.server.ReplicaFetch;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.quota.QuotaFactory;
import org.apache.kafka.server.quota.ReplicaQuota;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Calls whose shapes differ between releases, as Kafka 4.0 has them. */
final class Shapes {
  /** A flag of LogManager. */
  static final Object KEEPS_PARTITION_METADATA = true;

  private static final Method PROCESS =
      Fields.method(
          AbstractFetcherThread.class,
          "processFetchRequest",
          Map.class,
          FetchRequest.Builder.class);

  private Shapes() {}

  /** KRaftMetadataCache, in which one broker can be told to have an epoch. */
  abstract static class AliveCache extends KRaftMetadataCache {
    int eligible = -1;
    long eligibleEpoch;

    AliveCache(int broker) {
      super(broker, () -> KRaftVersion.LATEST_PRODUCTION);
    }

    @Override
    public Option<Object> getAliveBrokerEpoch(int broker) {
      return broker == eligible ? Option.apply(eligibleEpoch) : super.getAliveBrokerEpoch(broker);
    }
  }

  /** ReplicaFetcherThread, made. */
  abstract static class FetcherThread extends ReplicaFetcherThread {
    FetcherThread(
        String name,
        LeaderEndPoint leader,
        FailedPartitions failed,
        ReplicaManager manager,
        ReplicaQuota quota,
        KRaftMetadataCache cache) {
      super(name, leader, manager.config(), failed, manager, quota, name, cache::metadataVersion);
    }
  }

  /** RequestChannel, made. */
  abstract static class Channel extends RequestChannel {
    Channel(Time time, RequestChannelMetrics metrics) {
      super(1, "", time, metrics);
    }
  }

  static QuotaFactory.QuotaManagers quotas(KafkaConfig config, Metrics metrics, String name) {
    return QuotaFactory.instantiate(config, metrics, Time.SYSTEM, name);
  }

  static FetchParams fetch(
      int replica,
      long epoch,
      long wait,
      int least,
      FetchIsolation isolation,
      Optional<ClientMetadata> client) {
    return new FetchParams((short) 17, replica, epoch, wait, least, 1, isolation, client);
  }

  /** The broker epoch in the follower's last fetch. */
  static long brokerEpoch(Replica replica, long none) {
    Option<Object> epoch = replica.stateSnapshot().brokerEpoch();
    return epoch.isEmpty() ? none : (Long) epoch.get();
  }

  static Uuid topic(UnifiedLog log) {
    return log.topicId().isEmpty() ? null : log.topicId().get();
  }

  /** LeaderEndPoint.buildFetch for the partition; null if it asks nobody. */
  static Broker.Ask buildFetch(ReplicaFetcherThread thread) {
    PartitionFetchState state = thread.fetchState(Broker.PARTITION).get();
    Map<TopicPartition, PartitionFetchState> asked = new HashMap<>();
    asked.put(Broker.PARTITION, state);
    Option<ReplicaFetch> found =
        thread.leader().buildFetch(CollectionConverters.asScala(asked)).result();
    if (found.isEmpty()) {
      return null;
    }
    ReplicaFetch fetch = found.get();
    int to = thread.leader().brokerEndPoint().id();
    return new Broker.Ask(thread, fetch.partitionData(), fetch.fetchRequest(), to);
  }

  /** AbstractFetcherThread.processFetchRequest, which is private in 4.0.0. */
  static void process(Broker.Ask ask) {
    Fields.call(PROCESS, ask.thread(), ask.partitions(), ask.request());
  }
}
