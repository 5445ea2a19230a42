package org.apache.kafka.raft;

import insync.raft.ClientMetrics;
import insync.raft.Disk;
import insync.raft.StillTime;
import java.net.InetSocketAddress;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.VoteRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.server.common.serialization.RecordSerde;

/** Calls that differ between releases, as they are since Kafka 4.0. */
final class ThisRelease {
  /** Whether a voter asks beforehand whether it would be elected (KIP-996). */
  static final boolean HAS_PRE_VOTES = true;

  private ThisRelease() {}

  /** A client that has not been initialized; {@code servers}: whom it asks first, if not voters. */
  static <T> KafkaRaftClient<T> client(
      int id,
      Disk disk,
      List<InetSocketAddress> servers,
      HeldChannel channel,
      HeldQueue queue,
      HeldParts parts,
      RecordSerde<T> serde) {
    return new KafkaRaftClient<>(
        OptionalInt.of(id),
        disk.directory(id),
        serde,
        channel,
        queue,
        disk.log(),
        parts.memory(),
        parts.time(),
        parts.expiration(),
        parts.fetchMaxWaitMs(),
        true,
        HeldParts.CLUSTER,
        servers,
        HeldParts.endpoints(id),
        HeldParts.VERSIONS,
        new LogContext(),
        parts.random(),
        parts.quorumConfig());
  }

  /** What it does when its process starts. */
  static void initialize(
      KafkaRaftClient<?> client,
      Map<Integer, InetSocketAddress> voters,
      Disk disk,
      ClientMetrics metrics) {
    client.initialize(voters, disk.store(), metrics.registry(), ignored -> {});
  }

  /** A request arrives; the answer comes when it comes. */
  static CompletableFuture<RaftResponse.Outbound> handle(
      KafkaRaftClient<?> client, int number, ApiMessage data) {
    short version = ApiKeys.forId(data.apiKey()).latestVersion(false);
    RaftRequest.Inbound inbound =
        new RaftRequest.Inbound(HeldChannel.LISTENER, number, version, data, StillTime.NOW);
    return HeldChannel.handle(client, inbound);
  }

  /** A leader appends a record; NotLeaderException if it is none. */
  static <T> void append(KafkaRaftClient<T> client, int epoch, T record) {
    client.prepareAppend(epoch, List.of(record));
    client.schedulePreparedAppend();
  }

  /** Whether a vote is asked for beforehand (KIP-996). */
  static boolean isPreVote(VoteRequestData.PartitionData vote) {
    return vote.preVote();
  }

  /** Who has granted or rejected the vote of a nominee. */
  static Collection<Integer> votes(EpochState state, boolean granting) {
    if (!(state instanceof NomineeState nominee)) {
      return List.of();
    }
    var election = nominee.epochElection();
    return granting ? election.grantingVoters() : election.rejectingVoters();
  }
}
