package insync.kafka;

import insync.objects.Fields;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import kafka.cluster.Partition;
import kafka.server.AbstractFetcherThread;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.server.partition.PendingPartitionChange;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** One broker's process: Kafka's ReplicaManager and what it needs, without threads and sockets. */
final class Broker {
  static final TopicPartition PARTITION = new TopicPartition(HeldController.TOPIC, HeldController.INDEX);
  private static final Method EXPAND =
      Fields.method(Partition.class, "maybeExpandIsr", Replica.class);
  private static final Method TRUNCATE =
      Fields.method(AbstractFetcherThread.class, "maybeTruncate");

  /** A producer's answer: the record, the leader's epoch when it was appended, and the error. */
  record Reply(int name, int epoch, Errors error) {}

  /** A record of the log. */
  record Row(int name, int epoch) {}

  /** What the fetcher thread would send: to whom, and Kafka's own request. */
  record Ask(
      ReplicaFetcherThread thread,
      Map<TopicPartition, FetchRequest.PartitionData> partitions,
      FetchRequest.Builder request,
      int to) {
    FetchRequest.PartitionData partition() {
      return partitions.get(PARTITION);
    }
  }

  final int id;
  final Clock clock;

  /** The epoch of its registration; -1 until the controller has registered it. */
  long epoch = -1;

  final List<Reply> replies = new ArrayList<>();

  /** The AlterPartition that it has sent and that nobody has taken to the network yet. */
  AlterPartitionRequestData alterRequest;

  RequestCompletionHandler whenAnswered;

  /** The directory that it is to tell the controller its replica is in; null for none. */
  Uuid assignment;

  /** The answer that the fetcher thread finds when it waits for one. */
  FetchResponse fetchAnswer;

  /** While it is true, AlterPartitionManager says that it is busy (OPERATION_NOT_ATTEMPTED). */
  boolean busy;

  final Parts parts;
  private final Metadata metadata;
  private final Apis apis;
  private final int flushed;

  Broker(int id, Clock clock, Disk disk, Uuid directory) throws Exception {
    this.id = id;
    this.clock = clock;
    flushed = disk.flushed();
    parts = new Parts(this, disk.prepare(id, directory));
    metadata = new Metadata(this, parts);
    apis = Steering.APIS ? new Apis(this, parts) : null;
  }

  /** The same, registered with this epoch. */
  Broker(int id, long epoch, Clock clock, Disk disk, Uuid directory) throws Exception {
    this(id, clock, disk, directory);
    this.epoch = epoch;
  }

  private ReplicaManager manager() {
    return parts.manager;
  }

  Partition partition() {
    Option<Partition> found = manager().onlinePartition(PARTITION);
    return found.isEmpty() ? null : found.get();
  }

  UnifiedLog log() {
    Partition partition = partition();
    if (partition != null && partition.log().isDefined()) {
      return partition.log().get();
    }
    return parts.logOf(PARTITION);
  }

  boolean leads() {
    Partition partition = partition();
    return partition != null && partition.isLeader();
  }

  int leader() {
    Partition partition = partition();
    if (partition == null || partition.leaderReplicaIdOpt().isEmpty()) {
      return -1;
    }
    return (Integer) partition.leaderReplicaIdOpt().get();
  }

  int leaderEpoch() {
    Partition partition = partition();
    return partition == null ? -1 : partition.getLeaderEpoch();
  }

  long watermark() {
    UnifiedLog log = log();
    return log == null ? 0 : log.highWatermark();
  }

  // Metadata

  /** Metadata reaches it: all that the controller has committed by now. */
  void learn(HeldController controller) {
    learn(controller, controller.log().size());
  }

  /** The first so many records of metadata reach it, which end with a batch. */
  void learn(HeldController controller, int end) {
    metadata.learn(controller, end);
    parts.settleLog(this, flushed);
  }

  /** The same as a snapshot, with what it has read already. */
  void learnSnapshot(HeldController controller, int end) {
    metadata.learnSnapshot(controller, end);
    parts.settleLog(this, flushed);
  }

  /** The version of the partition in its metadata; -1 if they have none. */
  int readVersion() {
    Object read = parts.cache.getLeaderAndIsr(PARTITION.topic(), PARTITION.partition());
    Object found = // of Java or of Scala, as the release has it
        read instanceof Optional<?> java
            ? java.orElse(null)
            : ((Option<?>) read).getOrElse(() -> null);
    return found == null ? -1 : ((LeaderAndIsr) found).partitionEpoch();
  }

  /** Whether it leads, and knows its version of the partition from an answer only. */
  boolean ahead() {
    return leads() && readVersion() < partition().getPartitionEpoch();
  }

  /** How many records of metadata it has. */
  int metadataPosition() {
    return metadata.position();
  }

  /**
   * The broker epoch that it will tell the controller for a clean stop, as BrokerServer.startup asks
   * for it: LogManager.readBrokerEpochFromCleanShutdownFiles, before the logs are loaded.
   */
  OptionalLong cleanEpoch() {
    return parts.logs.cleanEpoch();
  }

  /**
   * Recovery of the logs under the configuration that the metadata has: LogManager.startup, before
   * the first delta. With {@code stray} those metadata have no replica of the broker's, as
   * BrokerMetadataPublisher.initializeManagers looks for it.
   */
  void load(List<ApiMessage> records, boolean stray) {
    MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
    records.forEach(delta::replay);
    parts.cache.setImage(delta.apply(new MetadataProvenance(records.size(), 1, clock.now, true)));
    parts.startLogs(stray);
    parts.settleLog(this, flushed);
  }

  // Records

  List<Row> rows() {
    UnifiedLog log = log();
    return log == null ? List.of() : rows(parts.file(log).content());
  }

  /** How many entries its leader-epoch cache has. */
  int entries() {
    UnifiedLog log = log();
    return log == null ? 0 : log.leaderEpochCache().epochEntries().size();
  }

  static List<Row> rows(byte[] content) {
    List<Row> rows = new ArrayList<>();
    for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(content)).batches()) {
      for (Record record : batch) {
        rows.add(new Row(record.value().duplicate().getInt(), batch.partitionLeaderEpoch()));
      }
    }
    return rows;
  }

  static Integer name(Records records) {
    for (RecordBatch batch : records.batches()) {
      for (Record record : batch) {
        return record.value().duplicate().getInt();
      }
    }
    return null;
  }

  /**
   * A producer's record: ReplicaManager.appendRecords, as KafkaApis.handleProduceRequest calls it.
   */
  boolean produce(int name, short acks) {
    SimpleRecord record = new SimpleRecord(clock.now, null, ByteBuffer.allocate(4).putInt(0, name));
    MemoryRecords records = MemoryRecords.withRecords(Compression.NONE, record);
    long before = log() == null ? -1 : log().logEndOffset();
    int at = leaderEpoch();
    if (apis != null) {
      apis.produce(name, at, acks, records);
    } else {
      TopicIdPartition to = new TopicIdPartition(partition().topicId().get(), PARTITION);
      List<Reply> answers = replies;
      Release.THIS.append(
          manager(),
          acks,
          AppendOrigin.CLIENT,
          Map.of(to, records),
          error -> answers.add(new Reply(name, at, error)));
      manager().tryCompleteActions();
    }
    return log() != null && log().logEndOffset() > before;
  }

  /**
   * A fetch arrives: ReplicaManager.fetchMessages, as KafkaApis.handleFetchRequest calls it; what
   * waits is ended.
   */
  FetchPartitionData fetch(FetchRequest request, Map<Uuid, String> names, boolean parks) {
    if (apis != null) {
      return apis.fetch(request);
    }
    List<Tuple2<TopicIdPartition, FetchRequest.PartitionData>> asked = new ArrayList<>();
    request.fetchData(names).forEach((k, v) -> asked.add(new Tuple2<>(k, v)));
    FetchIsolation isolation = FetchIsolation.of(request.replicaId(), request.isolationLevel());
    int least = parks ? Integer.MAX_VALUE : 1;
    FetchParams params =
        Shapes.fetch(
            request.replicaId(),
            request.replicaEpoch(),
            parks ? 1000 : 0,
            least,
            isolation,
            Optional.empty());
    return fetch(params, asked);
  }

  /**
   * A consumer's fetch of one record at an offset; with {@code anywhere} it may be served by a
   * follower (KIP-392).
   */
  FetchPartitionData read(Uuid topic, long offset, boolean anywhere) {
    if (apis != null) {
      return apis.read(topic, offset, anywhere);
    }
    FetchRequest.PartitionData asked =
        new FetchRequest.PartitionData(
            topic, offset, FetchRequest.INVALID_LOG_START_OFFSET, 1, Optional.empty());
    Optional<ClientMetadata> client =
        anywhere
            ? Optional.of(new ClientMetadata.DefaultClientMetadata("", "", null, null, "PLAINTEXT"))
            : Optional.empty();
    FetchParams params =
        Shapes.fetch(
            FetchRequest.ORDINARY_CONSUMER_ID, -1, 0, 1, FetchIsolation.HIGH_WATERMARK, client);
    return fetch(params, List.of(new Tuple2<>(new TopicIdPartition(topic, PARTITION), asked)));
  }

  private FetchPartitionData fetch(
      FetchParams params, List<Tuple2<TopicIdPartition, FetchRequest.PartitionData>> asked) {
    FetchPartitionData[] got = new FetchPartitionData[1];
    parts.purgatory.last = null;
    manager()
        .fetchMessages(
            params,
            CollectionConverters.asScala(asked).toSeq(),
            Parts.UNBOUNDED,
            answers -> {
              got[0] = answers.head()._2();
              return BoxedUnit.UNIT;
            });
    manager().tryCompleteActions();
    if (got[0] == null) {
      parts.purgatory.last.forceComplete();
      manager().tryCompleteActions();
    }
    parts.purgatory.last = null;
    return got[0];
  }

  /**
   * The first half of ReplicaFetcherThread.doWork: maybeTruncate, LeaderEndPoint.buildFetch; null
   * if it asks nobody.
   */
  Ask ask() {
    Option<ReplicaFetcherThread> found = manager().replicaFetcherManager().getFetcher(PARTITION);
    if (found.isEmpty()) {
      return null;
    }
    Fields.call(TRUNCATE, found.get());
    return Shapes.buildFetch(found.get());
  }

  /** The second half: AbstractFetcherThread.processFetchRequest, which finds this answer. */
  void answer(Ask ask, FetchResponse response) {
    fetchAnswer = response;
    parts.process(ask);
    fetchAnswer = null;
  }

  /**
   * A leader's log as it tells it, by where the records of each epoch end. Where it tells of a record
   * that is not there, or of another epoch, or nothing at all, there is {@link Apis#WRONG}.
   */
  List<Integer> toldLog() {
    int current = leaderEpoch();
    List<Row> rows = rows();
    List<Integer> names = new ArrayList<>();
    for (int epoch = 0; epoch <= current; epoch++) {
      long end = apis.end(current, epoch);
      if (end < names.size()) {
        names.add((int) Apis.WRONG); // an end before the one of an earlier epoch, or an error
      }
      while (names.size() < Math.min(end, rows.size() + 1)) {
        Row row = names.size() < rows.size() ? rows.get(names.size()) : null;
        names.add(row != null && row.epoch == epoch ? row.name : (int) Apis.WRONG);
      }
    }
    return names;
  }

  /**
   * A leader's watermark as it tells it. Before its own epoch is committed it need not tell (KIP-207),
   * and is taken at what it has.
   */
  long toldWatermark() {
    long own = watermark();
    long before = rows().stream().filter(row -> row.epoch < leaderEpoch()).count();
    return apis.latest(leaderEpoch(), own < before ? own : Apis.WRONG);
  }

  // The in-sync set

  Replica replica(int follower) {
    Partition partition = partition();
    Option<Replica> found = partition == null ? Option.empty() : partition.getReplica(follower);
    return found.isEmpty() ? null : found.get();
  }

  /** The in-sync set that it takes to be committed. */
  Set<Integer> isr() {
    return ids(partition().partitionState().isr());
  }

  /** The in-sync set that it has proposed; empty if it has not. */
  Set<Integer> pending() {
    return partition().partitionState() instanceof PendingPartitionChange pending
        ? ids(pending.sentLeaderAndIsr().isr())
        : Set.of();
  }

  /** The in-sync set that it waits for: whom it has proposed belongs to it. */
  Set<Integer> maximalIsr() {
    return ids(partition().partitionState().maximalIsr());
  }

  /** Of Java or of Scala, as the release has it. */
  private static Set<Integer> ids(Object set) {
    Set<Integer> all = new TreeSet<>();
    Logs.each(set).forEach(id -> all.add((Integer) id));
    return all;
  }

  /** Partition.maybeExpandIsr, which Kafka calls while it handles the follower's fetch. */
  void expand(int follower) {
    Fields.call(EXPAND, partition(), replica(follower));
  }

  /** Partition.maybeShrinkIsr, which Kafka's isr-expiration task calls. */
  void shrink() {
    partition().maybeShrinkIsr();
  }

  /** What its thread to the controller has in its queue is on its way once more. */
  void sendAgain() {
    parts.controller.work();
  }

  // The end

  /** A clean stop: ReplicaManager.shutdown, LogManager.shutdown. */
  void stop() throws Exception {
    manager().shutdown(true);
    parts.stopLogs(epoch);
  }
}
