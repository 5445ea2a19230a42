package insync.kafka;

import kafka.server.ReplicaFetcherManager;
import kafka.server.ReplicaManager;
import org.apache.kafka.server.quota.ReplicationQuotaManager;
import scala.Option;

/** ReplicaFetcherManager, whose threads {@link Fetchers} makes; until 4.1. */
abstract class FetcherManager extends ReplicaFetcherManager {
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
