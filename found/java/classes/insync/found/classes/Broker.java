package insync.found.classes;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import kafka.cluster.DelayedOperations;
import kafka.cluster.Partition;
import kafka.server.DelayedFetch;
import kafka.server.share.DelayedShareFetch;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;
import org.apache.kafka.controller.InProcessController;
import org.apache.kafka.image.LocalReplicaChanges;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.partition.AlterPartitionListener;
import org.apache.kafka.server.purgatory.DelayedDeleteRecords;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.purgatory.DelayedProduce;
import org.apache.kafka.server.purgatory.TopicPartitionOperationKey;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpoints;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogReadInfo;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Function0;
import scala.Option;
import scala.Tuple2;

/**
 * One replica of the partition, from Kafka's own classes: Partition, LogManager and UnifiedLog on
 * real files, DelayedProduce in its purgatory, MetadataDelta and KRaftMetadataCache. ReplicaManager
 * and the fetcher thread are replaced by {@link #learn}, {@link #produce} and {@link #fetchFrom},
 * which call Kafka's classes in the order in which those do.
 */
public final class Broker {
  private static final TopicPartition PARTITION = new TopicPartition(InProcessController.TOPIC, 0);
  private static final OffsetCheckpoints NO_CHECKPOINTS =
      (directory, partition) -> Optional.empty();

  private final int id;
  private final Clock clock;
  private final InProcessController controller;
  private final UnifiedLog log;
  private final Partition partition;
  private final KRaftMetadataCache metadata;
  private final DelayedOperationPurgatory<DelayedProduce> produces;
  private MetadataImage image = MetadataImage.EMPTY;
  private int read = 0;
  private Errors answer;

  /**
   * A broker that has read all metadata so far.
   *
   * @param alterPartitionManager Kafka's, whichever package it is in
   */
  public Broker(
      int id,
      InProcessController controller,
      Clock clock,
      Path folder,
      Object alterPartitionManager)
      throws Exception {
    this.id = id;
    this.clock = clock;
    this.controller = controller;
    metadata = new KRaftMetadataCache(id, () -> KRaftVersion.LATEST_PRODUCTION);
    produces = purgatory("Produce");
    DelayedOperations operations =
        new DelayedOperations(
            Option.apply(controller.topicId()),
            PARTITION,
            produces,
            Broker.<DelayedFetch>purgatory("Fetch"),
            Broker.<DelayedDeleteRecords>purgatory("DeleteRecords"),
            Broker.<DelayedShareFetch>purgatory("ShareFetch"));
    Function0<Object> epoch = () -> controller.brokerEpoch(id);
    partition =
        Moved.build(
            Partition.class,
            PARTITION,
            30_000L, // replica.lag.time.max.ms
            id,
            epoch,
            clock,
            new NoMetrics(),
            operations,
            metadata,
            logManager(folder.resolve("broker-" + id)),
            alterPartitionManager,
            Option.apply(controller.topicId()));
    learn();
    log = partition.localLogOrException();
  }

  private Object logManager(Path folder) throws IOException {
    Files.createDirectories(folder);
    KafkaScheduler scheduler = new KafkaScheduler(1);
    scheduler.startup();
    return Moved.callStatic(
        Moved.type("kafka.log.LogManager"),
        "apply",
        Configurations.broker(id, folder),
        Set.of(),
        scala.collection.immutable.List$.MODULE$.empty(),
        metadata,
        scheduler,
        clock,
        new BrokerTopicStats(),
        new LogDirFailureChannel(1));
  }

  private static <T extends DelayedOperation> DelayedOperationPurgatory<T> purgatory(String name) {
    return new DelayedOperationPurgatory<>(name, new NoTimer(), 0, 1000, false, false);
  }

  /**
   * Reads all metadata that there is by now and applies it as one delta: what MetadataLoader hands
   * over, and what BrokerMetadataPublisher and ReplicaManager.applyDelta do with it.
   *
   * @return how many changes of the partition were in it
   */
  public long learn() {
    List<ApiMessage> records = controller.log().subList(read, controller.log().size());
    MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
    records.forEach(delta::replay);
    long changes =
        records.stream()
            .filter(r -> r instanceof org.apache.kafka.common.metadata.PartitionChangeRecord)
            .count();
    read += records.size();
    image = delta.apply(new MetadataProvenance(read, 1, clock.milliseconds(), true));
    metadata.setImage(image);
    if (delta.topicsDelta() != null) {
      LocalReplicaChanges local = delta.topicsDelta().localChanges(id);
      local.leaders().values().forEach(i -> makeLeader(i));
      local.followers().values().forEach(i -> makeFollower(i));
      produces.checkAndComplete(new TopicPartitionOperationKey(PARTITION));
    }
    return changes;
  }

  private void makeLeader(LocalReplicaChanges.PartitionInfo info) {
    partition.makeLeader(
        info.partition(), false, NO_CHECKPOINTS, Option.apply(info.topicId()), Option.empty());
  }

  private void makeFollower(LocalReplicaChanges.PartitionInfo info) {
    partition.makeFollower(
        info.partition(), false, NO_CHECKPOINTS, Option.apply(info.topicId()), Option.empty());
  }

  /**
   * A producer's record with acks=all: appended, and its request parked, as ReplicaManager does.
   */
  public void produce(String value) {
    MemoryRecords records =
        MemoryRecords.withRecords(
            Compression.NONE, new SimpleRecord(value.getBytes(StandardCharsets.UTF_8)));
    partition.appendRecordsToLeader(
        records,
        AppendOrigin.CLIENT,
        -1,
        RequestLocal.noCaching(),
        VerificationGuard.SENTINEL,
        (short) 0);
    long end = log.logEndOffset();
    TopicIdPartition key = new TopicIdPartition(controller.topicId(), PARTITION);
    DelayedProduce parked =
        new DelayedProduce(
            Long.MAX_VALUE / 2,
            Map.of(
                key,
                new DelayedProduce.ProducePartitionStatus(
                    end, new PartitionResponse(Errors.NONE, end - 1, -1, 0))),
            (partitionAsked, offset) -> enough(offset),
            answers -> answer = answers.get(key).error);
    produces.tryCompleteElseWatch(parked, List.of(new TopicPartitionOperationKey(PARTITION)));
  }

  private DelayedProduce.PartitionStatusValidator.Result enough(long offset) {
    Tuple2<Object, Errors> result = partition.checkEnoughReplicasReachOffset(offset);
    return new DelayedProduce.PartitionStatusValidator.Result((Boolean) result._1(), result._2());
  }

  /** What ReplicaManager does every half of replica.lag.time.max.ms: who lags is to leave the ISR. */
  public void shrink() {
    partition.maybeShrinkIsr();
  }

  /** What the producer was told; null while its request is parked. */
  public Errors answer() {
    return answer;
  }

  /** One fetch and its answer, as AbstractFetcherThread handles it. Says what came of it. */
  public String fetchFrom(Broker leader) throws IOException {
    LogReadInfo answered = askAt(leader);
    if (answered.divergingEpoch().isPresent()) {
      long end = Math.min(answered.divergingEpoch().get().endOffset(), log.logEndOffset());
      partition.truncateTo(end, false);
      return "truncates to " + end + ", where its log parts from r" + leader.id + "'s";
    }
    int size = answered.fetchedData().records.sizeInBytes();
    if (size == 0) {
      return "has all there is";
    }
    ByteBuffer bytes = ByteBuffer.allocate(size);
    ((FileRecords) answered.fetchedData().records).readInto(bytes, 0);
    partition.appendRecordsToFollowerOrFutureReplica(
        MemoryRecords.readableRecords(bytes), false, partition.getLeaderEpoch());
    return "appends up to offset " + log.logEndOffset();
  }

  /** A fetch that reaches the leader and whose answer is still on its way. */
  public LogReadInfo askAt(Broker leader) {
    FetchRequest.PartitionData data =
        new FetchRequest.PartitionData(
            controller.topicId(),
            log.logEndOffset(),
            0,
            1 << 20,
            Optional.of(partition.getLeaderEpoch()),
            log.latestEpoch());
    FetchParams parameters =
        new FetchParams(
            id,
            controller.brokerEpoch(id),
            0,
            1,
            1 << 20,
            FetchIsolation.LOG_END,
            Optional.empty());
    LogReadInfo answered =
        leader.partition.fetchRecords(parameters, data, clock.milliseconds(), 1 << 20, true, true);
    leader.produces.checkAndComplete(new TopicPartitionOperationKey(PARTITION));
    return answered;
  }

  /** The leader's view of a follower's log end; -1 if unknown. */
  public long positionOf(Broker follower) {
    Option<Replica> replica = partition.getReplica(follower.id);
    return replica.isEmpty() ? -1 : replica.get().stateSnapshot().logEndOffset();
  }

  /** The values of all records in the log. */
  public List<String> values() throws IOException {
    List<String> values = new ArrayList<>();
    for (Record record : log.read(0, 1 << 20, FetchIsolation.LOG_END, true).records.records()) {
      values.add(StandardCharsets.UTF_8.decode(record.value().duplicate()).toString());
    }
    return values;
  }

  /** Its log's end. */
  public long logEnd() {
    return log.logEndOffset();
  }

  /** min.insync.replicas, as its log has it. */
  public int minimum() {
    return log.config().minInSyncReplicas;
  }

  /** Its high watermark. */
  public long highWatermark() {
    return log.highWatermark();
  }

  /** The members of the ISR that it waits for, the proposed ones included. */
  public List<Integer> maximalIsr() {
    return partition.partitionState().maximalIsr().stream().sorted().toList();
  }

  @Override
  public String toString() {
    String leader =
        partition.leaderReplicaIdOpt().isDefined()
            ? "r" + partition.leaderReplicaIdOpt().get()
            : "nobody";
    String role =
        partition.isLeader() ? "leads, waits for " + brokers(maximalIsr()) : "follows " + leader;
    return String.format(
        "r%d  epoch %d, log end %d, high watermark %d, %s",
        id, partition.getLeaderEpoch(), logEnd(), highWatermark(), role);
  }

  private static String brokers(List<Integer> ids) {
    return ids.stream().map(i -> "r" + i).collect(Collectors.joining(", ", "{", "}"));
  }

  private static final class NoMetrics implements AlterPartitionListener {
    @Override
    public void markIsrExpand() {}

    @Override
    public void markIsrShrink() {}

    @Override
    public void markFailed() {}
  }

  private static final class NoTimer implements Timer {
    @Override
    public void add(TimerTask task) {}

    @Override
    public boolean advanceClock(long milliseconds) {
      return false;
    }

    @Override
    public int size() {
      return 0;
    }

    @Override
    public void close() {}
  }
}
