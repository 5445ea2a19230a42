package insync.kafka;

import kafka.server.ReplicaFetcherManager;
import kafka.server.ReplicaManager;
import org.apache.kafka.server.quota.ReplicationQuotaManager;

/** ReplicaFetcherManager, whose threads {@link Fetchers} makes; since 4.3. */
abstract class FetcherManager extends ReplicaFetcherManager {
  FetcherManager(
      Broker broker, ReplicaManager manager, Parts.Cache cache, ReplicationQuotaManager quota) {
    super(
        manager.config(),
        manager,
        Parts.METRICS,
        broker.clock,
        quota,
        cache::metadataVersion,
        () -> broker.epoch);
  }
}
