package insync.raft;

import java.nio.ByteBuffer;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.BeginQuorumEpochResponseData;
import org.apache.kafka.common.message.EndQuorumEpochResponseData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.VoteRequestData;
import org.apache.kafka.common.message.VoteResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.Records;
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
      Integer watermark) {
    boolean isError() {
      return kind.equals("error");
    }
  }

  static Answer answer(HeldRequest request, ApiMessage data) {
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
      return fetch(number, data, all.responses().get(0).partitions().get(0));
    }
    throw new IllegalStateException("a voter answers " + data);
  }

  private static Answer plain(int number, ApiMessage data, String kind, int epoch, int leader) {
    return new Answer(number, data, kind, epoch, leader, null, 0, 0, null);
  }

  private static Answer fetch(int number, ApiMessage data, FetchResponseData.PartitionData p) {
    boolean diverges = p.divergingEpoch().epoch() >= 0;
    Integer firstEpoch = null;
    if (p.records() != null && p.records().sizeInBytes() > 0) {
      firstEpoch = ((Records) p.records()).batches().iterator().next().partitionLeaderEpoch();
    }
    return new Answer(
        number,
        data,
        kind(p.errorCode(), diverges ? "diverging" : "fetched"),
        p.currentLeader().leaderEpoch(),
        p.currentLeader().leaderId(),
        firstEpoch,
        diverges ? p.divergingEpoch().epoch() : 0,
        diverges ? (int) p.divergingEpoch().endOffset() : 0,
        p.highWatermark() < 0 ? null : (int) p.highWatermark());
  }

  private static String kind(short error, String otherwise) {
    return error == 0 ? otherwise : "error";
  }
}
