package insync.raft;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.BeginQuorumEpochResponseData;
import org.apache.kafka.common.message.EndQuorumEpochResponseData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.FetchSnapshotResponseData;
import org.apache.kafka.common.message.VoteRequestData;
import org.apache.kafka.common.message.VoteResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.UnalignedMemoryRecords;
import org.apache.kafka.raft.HeldClient;
import org.apache.kafka.raft.HeldRequest;

/** Kafka's messages in the words of the model. Each crosses in the bytes that Kafka gives it. */
public final class Messages {
  private Messages() {}

  /** A request as its receiver reads it. */
  public static ApiMessage request(ApiMessage data) {
    return read(ApiMessageType.fromApiKey(data.apiKey()).newRequest(), data);
  }

  /** An answer as its receiver reads it. */
  public static ApiMessage response(ApiMessage data) {
    return read(ApiMessageType.fromApiKey(data.apiKey()).newResponse(), data);
  }

  private static ApiMessage read(ApiMessage blank, Message data) {
    short version = ApiKeys.forId(blank.apiKey()).latestVersion(false);
    ObjectSerializationCache cache = new ObjectSerializationCache();
    ByteBuffer bytes = ByteBuffer.allocate(data.size(cache, version));
    data.write(new ByteBufferAccessor(bytes), cache, version);
    bytes.flip();
    blank.read(new ByteBufferAccessor(bytes), version);
    return blank;
  }

  /** Whether it is the answer to a fetch, and has records. */
  public static boolean hasRecords(ApiMessage answer) {
    return answer instanceof FetchResponseData all
        && all.responses().get(0).partitions().get(0).records() instanceof Records records
        && records.sizeInBytes() > 0;
  }

  /** What a request asks. */
  public static String kind(HeldRequest request) {
    ApiMessage data = request.data();
    return switch (ApiKeys.forId(data.apiKey())) {
      case VOTE -> HeldClient.isPreVote(vote(data)) ? "pre_vote" : "vote";
      case BEGIN_QUORUM_EPOCH -> "begin";
      case END_QUORUM_EPOCH -> "end";
      case FETCH -> "fetch";
      case FETCH_SNAPSHOT -> "fetch_snapshot";
      case API_VERSIONS -> "api_versions";
      default -> throw new IllegalStateException("a voter sends " + data);
    };
  }

  private static VoteRequestData.PartitionData vote(ApiMessage data) {
    return ((VoteRequestData) data).topics().get(0).partitions().get(0);
  }

  /**
   * An answer on its way: to which request of its receiver, what it says, and as the model has it.
   */
  record Answer(
      int number,
      ApiMessage data,
      String kind,
      int epoch,
      int leader,
      Integer firstEpoch,
      int lastEpoch,
      int end,
      Integer watermark,
      Map<Integer, Integer> voters,
      Disk snapshot) {
    /** Whether the request waits at its receiver. This is then what was to be said when it came. */
    boolean waits() {
      return data == null;
    }

    /** The epoch of each record that a snapshot stands for. */
    List<Integer> log() {
      return snapshot == null ? List.of() : snapshot.batchEpochs().subList(0, end);
    }
  }

  /** What is kept of the answer to a fetch that waits. */
  static Answer answerForLater(HeldRequest request, int epoch, int leader, Integer watermark) {
    return new Answer(
        request.number(), null, "none", epoch, leader, null, 0, 0, watermark, null, null);
  }

  /** The answer to a request, by somebody with this disk. */
  static Answer answer(HeldRequest request, ApiMessage data, Disk disk) {
    int number = request.number();
    if (data instanceof VoteResponseData all) {
      var p = all.topics().get(0).partitions().get(0);
      String kind = kind(p.errorCode(), p.voteGranted() ? "grant" : "rejection");
      return plain(number, data, kind, p.leaderEpoch(), p.leaderId());
    } else if (data instanceof BeginQuorumEpochResponseData all) {
      var p = all.topics().get(0).partitions().get(0);
      return plain(number, data, kind(p.errorCode(), "none"), p.leaderEpoch(), p.leaderId());
    } else if (data instanceof EndQuorumEpochResponseData all) {
      var p = all.topics().get(0).partitions().get(0);
      return plain(number, data, kind(p.errorCode(), "none"), p.leaderEpoch(), p.leaderId());
    } else if (data instanceof FetchResponseData all) {
      return fetch(number, data, all.responses().get(0).partitions().get(0), disk);
    } else if (data instanceof FetchSnapshotResponseData all) {
      return snapshot(number, data, all.topics().get(0).partitions().get(0), disk);
    }
    throw new IllegalStateException("a voter answers " + data);
  }

  private static Answer plain(int number, ApiMessage data, String kind, int epoch, int leader) {
    return new Answer(number, data, kind, epoch, leader, null, 0, 0, null, null, null);
  }

  private static Answer fetch(
      int number, ApiMessage data, FetchResponseData.PartitionData p, Disk disk) {
    boolean diverges = p.divergingEpoch().epoch() >= 0;
    boolean isSnapshot = p.snapshotId().epoch() >= 0;
    long end = diverges ? p.divergingEpoch().endOffset() : p.snapshotId().endOffset();
    Integer firstEpoch = null;
    Map<Integer, Integer> voters = null;
    if (p.records() != null && p.records().sizeInBytes() > 0) {
      Records records = (Records) p.records();
      firstEpoch = records.batches().iterator().next().partitionLeaderEpoch();
      voters = VoterSets.in(records);
    }
    String brings = diverges ? "diverging" : isSnapshot ? "snapshot_id" : "fetched";
    return new Answer(
        number,
        data,
        kind(p.errorCode(), brings),
        p.currentLeader().leaderEpoch(),
        p.currentLeader().leaderId(),
        firstEpoch,
        diverges ? p.divergingEpoch().epoch() : 0,
        diverges || isSnapshot ? disk.position(end) : 0,
        p.highWatermark() < 0 ? null : disk.position(p.highWatermark()),
        voters,
        null);
  }

  private static Answer snapshot(
      int number, ApiMessage data, FetchSnapshotResponseData.PartitionSnapshot p, Disk disk) {
    boolean sends = p.errorCode() == 0;
    boolean isGone = p.errorCode() == Errors.SNAPSHOT_NOT_FOUND.code();
    return new Answer(
        number,
        data,
        sends || isGone ? "snapshot" : "error",
        p.currentLeader().leaderEpoch(),
        p.currentLeader().leaderId(),
        null,
        0,
        sends ? disk.position(p.snapshotId().endOffset()) : 0,
        null,
        sends ? VoterSets.in(records(p)) : null,
        sends ? disk : null);
  }

  private static Records records(FetchSnapshotResponseData.PartitionSnapshot p) {
    return p.unalignedRecords() instanceof MemoryRecords records
        ? records
        : MemoryRecords.readableRecords(
            ((UnalignedMemoryRecords) p.unalignedRecords()).buffer().duplicate());
  }

  /** Another disk of the node that was asked says so in an error, which changes nothing. */
  private static String kind(short error, String otherwise) {
    boolean isOf = error == Errors.INVALID_VOTER_KEY.code() && otherwise.equals("none");
    return error == 0 || isOf ? otherwise : "error";
  }
}
