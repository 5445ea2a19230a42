package insync.kafka;

import kafka.server.FailedPartitions;
import kafka.server.RemoteLeaderEndPoint;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.server.LeaderEndPoint;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.quota.ReplicaQuota;
import org.apache.kafka.server.quota.ReplicationQuotaManager;

/** ReplicaFetcherManager, whose threads are never started: the adapter goes their steps. */
final class Fetchers extends FetcherManager {
  /** A fetcher thread that is never started. */
  private static final class Fetcher extends Shapes.FetcherThread {
    Fetcher(
        String name,
        LeaderEndPoint leader,
        FailedPartitions failed,
        ReplicaManager manager,
        ReplicaQuota quota,
        Parts.Cache cache) {
      super(name, leader, failed, manager, quota, cache);
    }

    @Override
    public synchronized void start() {}

    @Override
    public void awaitShutdown() {}
  }

  private final Broker broker;
  private final ReplicaManager manager;
  private final ReplicationQuotaManager quota;
  private final Parts.Cache cache;

  Fetchers(
      Broker broker, ReplicaManager manager, Parts.Cache cache, ReplicationQuotaManager quota) {
    super(broker, manager, cache, quota);
    this.broker = broker;
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
            manager.config(),
            manager,
            quota,
            cache::metadataVersion,
            () -> broker.epoch);
    return new Fetcher("fetcher-" + source.id(), leader, failedPartitions(), manager, quota, cache);
  }
}
