package insync.kafka;

import insync.conform.Refused;
import insync.objects.Fields;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import kafka.server.KafkaApis;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Request;
import org.apache.kafka.network.metrics.RequestChannelMetrics;
import org.apache.kafka.server.ApiVersionManager;
import org.apache.kafka.server.FetchManager;
import org.apache.kafka.server.FetchSessionCacheShard;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.ShutdownableThread;

/**
 * KafkaApis of a broker: requests come to KafkaApis.handle as they come from the network, parsed
 * from their bytes; answers are taken from its RequestChannel.
 */
final class Apis {
  private static final RequestChannelMetrics METRICS =
      new RequestChannelMetrics(ApiMessageType.ListenerType.BROKER);

  /** No fetch has a session, as there is no room for one. */
  private static final FetchManager FETCHES =
      Sessions.manager(Time.SYSTEM, new FetchSessionCacheShard(0, Long.MAX_VALUE, 1, 0));

  /** The version before clients were named in fetches, who since then may read from followers. */
  private static final short LEADERS_ONLY = 10;

  /** In place of a number that a leader should tell, and does not: no number of the model. */
  static final long WRONG = -1;

  /** A producer that waits: its record, and the leader's epoch when it asked. */
  private record Waiting(int name, int epoch) {}

  private final Broker broker;
  private final KafkaApis apis;
  private final Map<Integer, AbstractResponse> answers = new TreeMap<>();
  private final Map<Integer, Waiting> producers = new TreeMap<>();
  private int requests;

  Apis(Broker broker, Parts parts) {
    this.broker = broker;
    apis =
        Wiring.make(
            KafkaApis.class,
            new Requests(broker.clock, METRICS, this),
            parts.manager,
            broker.id,
            parts.config,
            parts.cache,
            Parts.METRICS,
            parts.quotas,
            FETCHES,
            Parts.STATS,
            "insync",
            broker.clock,
            Wiring.answering(ApiVersionManager.class, true));
    withoutAcls(apis);
  }

  /** AclApis has a purgatory of its own, whose thread ends here. */
  private static void withoutAcls(KafkaApis apis) {
    Object waiting = Fields.get(Fields.get(apis, "aclApis"), "alterAclsPurgatory");
    Object reaper = Fields.get(Fields.get(waiting, "purgatory"), "expirationReaper");
    ((ShutdownableThread) reaper).initiateShutdown();
    Fields.set(apis, "aclApis", null);
  }

  /** A response is on its way to whom it is for; null where none is sent. */
  void takeResponse(RequestHeader header, AbstractResponse response) {
    Waiting waiting = producers.remove(header.correlationId());
    if (waiting == null) {
      answers.put(header.correlationId(), response);
    } else if (response instanceof ProduceResponse produced) {
      short error =
          produced.data().responses().iterator().next().partitionResponses().get(0).errorCode();
      broker.replies.add(new Broker.Reply(waiting.name, waiting.epoch, Errors.forCode(error)));
    }
  }

  /** KafkaApis.handle; the number of the request. */
  private int handle(AbstractRequest request) {
    return handle(request, ++requests);
  }

  private int handle(AbstractRequest request, int number) {
    RequestHeader header = new RequestHeader(request.apiKey(), request.version(), "insync", number);
    ByteBuffer bytes = request.serializeWithHeader(header);
    RequestContext context =
        new RequestContext(
            RequestHeader.parse(bytes),
            "connection",
            InetAddress.getLoopbackAddress(),
            Optional.empty(),
            KafkaPrincipal.ANONYMOUS,
            ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT),
            SecurityProtocol.PLAINTEXT,
            ClientInformation.EMPTY,
            false);
    Request made = Wiring.make(Request.class, 0, context, 0L, MemoryPool.NONE, bytes, METRICS);
    apis.handle(made, RequestLocal.noCaching());
    return number;
  }

  /** A producer's record, by name. */
  void produce(int name, int epoch, short acks, MemoryRecords records) {
    ProduceRequestData.TopicProduceData topic =
        new ProduceRequestData.TopicProduceData()
            .setName(Broker.PARTITION.topic())
            .setPartitionData(
                List.of(
                    new ProduceRequestData.PartitionProduceData()
                        .setIndex(Broker.PARTITION.partition())
                        .setRecords(records)));
    ProduceRequestData data = new ProduceRequestData().setAcks(acks).setTimeoutMs(30_000);
    data.topicData().add(topic);
    producers.put(++requests, new Waiting(name, epoch));
    handle(ProduceRequest.builder(data).build((short) 12), requests);
  }

  /** A fetch; one that waits is ended. */
  FetchPartitionData fetch(FetchRequest request) {
    Parts parts = broker.parts;
    parts.purgatory.last = null;
    int number = handle(request);
    if (!answers.containsKey(number)) {
      if (parts.purgatory.last == null) {
        throw Refused.answer("no answer");
      }
      parts.purgatory.last.forceComplete();
      parts.manager.tryCompleteActions();
    }
    parts.purgatory.last = null;
    FetchResponse got = (FetchResponse) answers.remove(number);
    if (got == null || got.data().responses().isEmpty()) {
      throw Refused.answer("no answer about the partition");
    }
    FetchResponseData.PartitionData data = got.data().responses().get(0).partitions().get(0);
    return new FetchPartitionData(
        Errors.forCode(data.errorCode()),
        data.highWatermark(),
        data.logStartOffset(),
        FetchResponse.recordsOrFail(data),
        FetchResponse.divergingEpoch(data),
        OptionalLong.of(data.lastStableOffset()),
        Optional.empty(),
        OptionalInt.empty(),
        false);
  }

  /** A consumer's fetch of one record. */
  FetchPartitionData read(Uuid topic, long offset, boolean anywhere) {
    short version = anywhere ? ApiKeys.FETCH.latestVersion() : LEADERS_ONLY;
    FetchRequest.PartitionData asked =
        new FetchRequest.PartitionData(
            topic, offset, FetchRequest.INVALID_LOG_START_OFFSET, 1, Optional.empty());
    return fetch(
        FetchRequest.Builder.forConsumer(version, 0, 1, Map.of(Broker.PARTITION, asked))
            .setMaxBytes(1)
            .build(version));
  }

  /**
   * Where a consumer that begins at the end would begin, or what is given while a leader does not
   * know it yet (KIP-207); {@link #WRONG} if there is no answer, or another error.
   */
  long latest(int epoch, long unknown) {
    ListOffsetsRequestData.ListOffsetsTopic topic =
        new ListOffsetsRequestData.ListOffsetsTopic()
            .setName(Broker.PARTITION.topic())
            .setPartitions(
                List.of(
                    new ListOffsetsRequestData.ListOffsetsPartition()
                        .setPartitionIndex(Broker.PARTITION.partition())
                        .setCurrentLeaderEpoch(epoch)
                        .setTimestamp(ListOffsetsRequest.LATEST_TIMESTAMP)));
    int number =
        handle(
            ListOffsetsRequest.Builder.forConsumer(true, IsolationLevel.READ_UNCOMMITTED)
                .setTargetTimes(List.of(topic))
                .build());
    ListOffsetsResponse got = (ListOffsetsResponse) answers.remove(number);
    if (got == null) {
      return WRONG;
    }
    ListOffsetsResponseData.ListOffsetsPartitionResponse found =
        got.topics().get(0).partitions().get(0);
    return switch (Errors.forCode(found.errorCode())) {
      case NONE -> found.offset();
      case OFFSET_NOT_AVAILABLE -> unknown;
      default -> WRONG;
    };
  }

  /**
   * Where the records of this leader epoch and all before it end, as a leader says; {@link #WRONG}
   * if there is no answer, or an error.
   */
  long end(int current, int epoch) {
    OffsetForLeaderEpochRequestData.OffsetForLeaderTopicCollection topics =
        new OffsetForLeaderEpochRequestData.OffsetForLeaderTopicCollection();
    topics.add(
        new OffsetForLeaderEpochRequestData.OffsetForLeaderTopic()
            .setTopic(Broker.PARTITION.topic())
            .setPartitions(
                List.of(
                    new OffsetForLeaderEpochRequestData.OffsetForLeaderPartition()
                        .setPartition(Broker.PARTITION.partition())
                        .setCurrentLeaderEpoch(current)
                        .setLeaderEpoch(epoch))));
    int number = handle(OffsetsForLeaderEpochRequest.Builder.forConsumer(topics).build());
    OffsetsForLeaderEpochResponse got = (OffsetsForLeaderEpochResponse) answers.remove(number);
    if (got == null) {
      return WRONG;
    }
    OffsetForLeaderEpochResponseData.EpochEndOffset found =
        got.data().topics().iterator().next().partitions().get(0);
    return found.errorCode() == Errors.NONE.code() ? found.endOffset() : WRONG;
  }
}
