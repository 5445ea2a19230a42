package insync.kafka;

import insync.objects.Fields;
import java.io.File;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import kafka.server.BlockingSend;
import kafka.server.DelayedFetch;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.OperationNotAttemptedException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.server.DelayedActionQueue;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.partition.AlterPartitionManager;
import org.apache.kafka.server.partition.DefaultAlterPartitionManager;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationKey;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.quota.QuotaFactory;
import org.apache.kafka.server.quota.ReplicaQuota;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.replica.ReplicaState;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.storage.internals.log.LazyIndex;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Function0;
import scala.Option;

/**
 * What a broker's ReplicaManager needs, held where it would wait: timers, schedulers, and the ways
 * to others.
 */
final class Parts {
  static final String VERSION = AppInfoParser.getVersion();
  static final ReplicaQuota UNBOUNDED = QuotaFactory.UNBOUNDED_QUOTA;
  static final Metrics METRICS = new Metrics();
  static final BrokerTopicStats STATS = new BrokerTopicStats();
  private static final Map<Integer, KafkaConfig> CONFIGS = new HashMap<>();
  private static final Map<Integer, QuotaFactory.QuotaManagers> QUOTAS = new HashMap<>();

  /** A timer in which nothing runs out: whose clock runs out is a step of the model. */
  private static final class NoTimer implements Timer {
    @Override
    public void add(TimerTask task) {}

    @Override
    public boolean advanceClock(long ms) {
      return false;
    }

    @Override
    public int size() {
      return 0;
    }

    @Override
    public void close() {}
  }

  /** A scheduler that runs nothing but the flush of partition.metadata, at once. */
  private static final class NoScheduler implements Scheduler {
    private static final ScheduledFuture<?> NEVER =
        (ScheduledFuture<?>) Wiring.idle(ScheduledFuture.class);

    @Override
    public void startup() {}

    @Override
    public void shutdown() {}

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) {
      if (name.equals("flush-metadata-file")) {
        task.run();
      }
      return NEVER; // a log that closes cancels what it had scheduled
    }

    @Override
    public void resizeThreadPool(int threads) {}
  }

  /** Where fetches wait; the adapter ends the waiting. */
  static final class FetchPurgatory extends DelayedOperationPurgatory<DelayedFetch> {
    DelayedFetch last;

    FetchPurgatory(int broker) {
      super("Fetch", new NoTimer(), broker, 1000, false, false);
      oneShard(this);
    }

    @Override
    public <K extends DelayedOperationKey> boolean tryCompleteElseWatch(
        DelayedFetch fetch, List<K> keys) {
      last = fetch;
      return super.tryCompleteElseWatch(fetch, keys);
    }
  }

  /**
   * Kafka's metadata cache, whose view of other brokers can be set for one question (see
   * docs/kafka-classes.md).
   */
  static final class Cache extends Shapes.AliveCache {
    Cache(int broker) {
      super(broker);
    }

    @Override
    public boolean isBrokerFenced(int broker) {
      return broker != eligible && super.isBrokerFenced(broker);
    }

    @Override
    public boolean isBrokerShuttingDown(int broker) {
      return broker != eligible && super.isBrokerShuttingDown(broker);
    }
  }

  /**
   * DefaultAlterPartitionManager behind a door: closed, it says what Kafka's says while a request
   * is in flight.
   */
  private static final class Door implements AlterPartitionManager {
    private final Broker broker;
    private final AlterPartitionManager behind;

    Door(Broker broker, AlterPartitionManager behind) {
      this.broker = broker;
      this.behind = behind;
    }

    @Override
    public void start() {}

    @Override
    public void shutdown() {}

    @Override
    public CompletableFuture<LeaderAndIsr> submit(
        org.apache.kafka.server.common.TopicIdPartition partition, LeaderAndIsr proposed) {
      return broker.busy
          ? CompletableFuture.failedFuture(new OperationNotAttemptedException("held"))
          : behind.submit(partition, proposed);
    }
  }

  /** In AssignmentsManager's place: what it would send is held, and is a step of its own. */
  private static final class Assignments implements DirectoryEventHandler {
    private final Broker broker;

    Assignments(Broker broker) {
      this.broker = broker;
    }

    @Override
    public void handleAssignment(
        org.apache.kafka.server.common.TopicIdPartition partition,
        Uuid directory,
        String reason,
        Runnable callback) {
      broker.assignment = directory;
    }

    @Override
    public void handleFailure(Uuid directory) {
      throw new IllegalStateException("directory " + directory + " has failed");
    }

    /** Of releases from 4.3 on. */
    public void handleCordoned(Set<Uuid> directories) {
      throw new IllegalStateException("directories " + directories + " are cordoned");
    }
  }

  /** The way to another broker: the answer is the one that the adapter delivers. */
  static final class Sender implements BlockingSend {
    private final Broker broker;
    private final BrokerEndPoint to;

    Sender(Broker broker, BrokerEndPoint to) {
      this.broker = broker;
      this.to = to;
    }

    @Override
    public BrokerEndPoint brokerEndPoint() {
      return to;
    }

    @Override
    public ClientResponse sendRequest(AbstractRequest.Builder<? extends AbstractRequest> request) {
      FetchResponse answer = broker.fetchAnswer;
      if (answer == null) {
        throw new IllegalStateException("asked " + request + " with no answer at hand");
      }
      broker.fetchAnswer = null;
      RequestHeader header =
          new RequestHeader(ApiKeys.FETCH, request.latestAllowedVersion(), "", 0);
      return new ClientResponse(header, null, "", 0, 0, false, null, null, answer);
    }

    @Override
    public void initiateClose() {}

    @Override
    public void close() {}
  }

  final KafkaConfig config;
  final QuotaFactory.QuotaManagers quotas;
  final Logs logs;
  final Cache cache;
  final FetchPurgatory purgatory;
  final ControllerChannel controller;
  final ReplicaManager manager;

  Parts(Broker broker, File folder) throws IOException {
    config = CONFIGS.computeIfAbsent(broker.id, Parts::config);
    quotas = QUOTAS.computeIfAbsent(broker.id, i -> Shapes.quotas(config, METRICS, "insync" + i));
    cache = new Cache(broker.id);
    purgatory = new FetchPurgatory(broker.id);
    NoScheduler scheduler = new NoScheduler();
    LogDirFailureChannel channel = new LogDirFailureChannel(1);
    logs = new Logs(broker, this, folder, scheduler, channel);
    controller = new ControllerChannel(broker, this);
    AlterPartitionManager alter = new Door(broker, alterPartitions(broker, scheduler));
    manager = replicas(broker, scheduler, alter, channel);
    Fields.set(
        manager, "replicaFetcherManager", new Fetchers(broker, manager, cache, quotas.follower()));
  }

  private ReplicaManager replicas(
      Broker broker,
      Scheduler scheduler,
      AlterPartitionManager alter,
      LogDirFailureChannel channel) {
    Function0<Object> epoch = () -> broker.epoch;
    return Wiring.make(
        ReplicaManager.class,
        config,
        METRICS,
        broker.clock,
        scheduler,
        logs.manager,
        Option.empty(), // remote storage
        quotas,
        cache,
        channel,
        alter,
        STATS,
        purgatory("Produce", broker.id),
        Option.apply(purgatory),
        purgatory("DeleteRecords", broker.id),
        purgatory("RemoteFetch", broker.id),
        purgatory("RemoteListOffsets", broker.id),
        purgatory("ShareFetch", broker.id),
        Option.empty(), // a prefix of threads' names until 4.1, then transactions
        Option.empty(), // transactions until 4.1
        epoch,
        new Assignments(broker),
        new DelayedActionQueue());
  }

  private AlterPartitionManager alterPartitions(Broker broker, Scheduler scheduler) {
    Supplier<Long> java = () -> broker.epoch;
    Function0<Object> scala = () -> broker.epoch;
    return Wiring.make(
        DefaultAlterPartitionManager.class,
        controller,
        scheduler,
        broker.clock,
        broker.id,
        java,
        scala);
  }

  private static KafkaConfig config(int broker) {
    Properties given = new Properties();
    given.put("process.roles", "broker");
    given.put("node.id", Integer.toString(broker));
    given.put("controller.quorum.voters", "3000@localhost:9093");
    given.put("controller.listener.names", "CONTROLLER");
    given.put("listeners", "PLAINTEXT://localhost:" + (9092 + broker));
    given.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
    given.put("log.dirs", "none");
    given.put("replica.fetch.max.bytes", "1"); // one record an answer, as in the model
    given.put("replica.fetch.min.bytes", Steering.AT_ONCE ? "1" : "1000000000");
    given.put("log.index.size.max.bytes", "4096");
    given.put("log.preallocate", "false");
    given.put("min.insync.replicas", "1");
    given.put("log.initial.task.delay.ms", "1000000");
    return new KafkaConfig(given, false);
  }

  /** A purgatory in which nothing runs out. */
  static <T extends DelayedOperation> Option<DelayedOperationPurgatory<T>> purgatory(
      String name, int broker) {
    DelayedOperationPurgatory<T> made =
        new DelayedOperationPurgatory<>(name, new NoTimer(), broker, 1000, false, false);
    oneShard(made);
    return Option.apply(made);
  }

  /** One list of watchers in place of 512, which a copy would have to copy. */
  private static void oneShard(DelayedOperationPurgatory<?> purgatory) {
    List<?> all = (List<?>) Fields.get(purgatory, "watcherLists");
    Fields.set(purgatory, "watcherLists", new java.util.ArrayList<Object>(all.subList(0, 1)));
  }

  // Logs

  UnifiedLog logOf(TopicPartition partition) {
    return logs.of(partition);
  }

  void startLogs(boolean stray) {
    try {
      logs.start(Set.of(HeldController.TOPIC), stray);
    } catch (Exception problem) {
      throw new IllegalStateException(problem);
    }
  }

  void stopLogs(long epoch) throws IOException {
    UnifiedLog log = logOf(Broker.PARTITION);
    if (log != null) {
      ownIndexes(log.activeSegment(), log.dir());
    }
    logs.stop(epoch);
  }

  /**
   * Copies share the mapped files of the indexes, which are empty, and which only a process that
   * stops closes.
   */
  private static void ownIndexes(LogSegment segment, File folder) {
    long base = segment.baseOffset();
    Fields.set(
        segment,
        "lazyOffsetIndex",
        LazyIndex.forOffset(LogFileUtils.offsetIndexFile(folder, base), base, 4096));
    Fields.set(
        segment,
        "lazyTimeIndex",
        LazyIndex.forTime(LogFileUtils.timeIndexFile(folder, base), base, 4096));
  }

  HeapChannel file(UnifiedLog log) {
    return (HeapChannel) log.activeSegment().log().channel();
  }

  List<org.apache.kafka.storage.internals.log.EpochEntry> epochs(UnifiedLog log) {
    return ((HeapEpochs) Fields.get(log.leaderEpochCache(), "checkpoint")).read();
  }

  /** The files of a log that Kafka has just opened move to the heap. */
  void settleLog(Broker broker, int flushed) {
    UnifiedLog log = broker.log();
    if (log == null) {
      return;
    }
    FileRecords records = log.activeSegment().log();
    if (records.channel() instanceof HeapChannel) {
      return;
    }
    try {
      java.nio.ByteBuffer content = java.nio.ByteBuffer.allocate(records.sizeInBytes());
      records.readInto(content, 0);
      records.channel().close();
      Fields.set(records, "channel", new HeapChannel(content.array(), flushed));
    } catch (IOException problem) {
      throw new IllegalStateException(problem);
    }
    Fields.set(
        log.leaderEpochCache(), "checkpoint", HeapEpochs.of(log.leaderEpochCache().epochEntries()));
  }

  /** As if the follower had fetched at the leader's log end this moment. */
  @SuppressWarnings("unchecked")
  static void caughtUpNow(Replica replica, long now) {
    ReplicaState s = replica.stateSnapshot();
    ((AtomicReference<ReplicaState>) Fields.get(replica, "replicaState"))
        .set(
            new ReplicaState(
                s.logStartOffset(),
                s.logEndOffsetMetadata(),
                s.lastFetchLeaderLogEndOffset(),
                s.lastFetchTimeMs(),
                now,
                s.brokerEpoch()));
  }

  void process(Broker.Ask ask) {
    Shapes.process(ask);
  }
}
