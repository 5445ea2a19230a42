package org.apache.kafka.raft;

import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AddRaftVoterRequestData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.RemoveRaftVoterRequestData;
import org.apache.kafka.common.message.UpdateRaftVoterRequestData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.common.KRaftVersion;

/** What is asked of a leader about its voters (KIP-853), and what others answer it. */
public final class VoterRequests {
  private static final String LISTENER = HeldChannel.LISTENER.value();

  private VoterRequests() {}

  /** An administrator adds a node with this directory. */
  public static ApiMessage adds(int id, Uuid directory) {
    InetSocketAddress address = HeldParts.address(id);
    var listeners = new AddRaftVoterRequestData.ListenerCollection();
    listeners.add(
        new AddRaftVoterRequestData.Listener()
            .setName(LISTENER)
            .setHost(address.getHostString())
            .setPort(address.getPort()));
    return new AddRaftVoterRequestData()
        .setClusterId(HeldParts.CLUSTER)
        .setTimeoutMs(30_000)
        .setVoterId(id)
        .setVoterDirectoryId(directory)
        .setListeners(listeners);
  }

  /** An administrator removes a voter with this directory. */
  public static ApiMessage removes(int id, Uuid directory) {
    return new RemoveRaftVoterRequestData()
        .setClusterId(HeldParts.CLUSTER)
        .setVoterId(id)
        .setVoterDirectoryId(directory);
  }

  /** A voter tells the leader of this epoch its endpoints and versions. */
  public static ApiMessage updates(int id, Uuid directory, int epoch) {
    InetSocketAddress address = HeldParts.address(id);
    var listeners = new UpdateRaftVoterRequestData.ListenerCollection();
    listeners.add(
        new UpdateRaftVoterRequestData.Listener()
            .setName(LISTENER)
            .setHost(address.getHostString())
            .setPort(address.getPort()));
    return new UpdateRaftVoterRequestData()
        .setClusterId(HeldParts.CLUSTER)
        .setCurrentLeaderEpoch(epoch)
        .setVoterId(id)
        .setVoterDirectoryId(directory)
        .setListeners(listeners)
        .setKRaftVersionFeature(
            new UpdateRaftVoterRequestData.KRaftVersionFeature()
                .setMinSupportedVersion(HeldParts.VERSIONS.min())
                .setMaxSupportedVersion(HeldParts.VERSIONS.max()));
  }

  /** What a node answers to ApiVersions: kraft.version as this Kafka knows it. */
  public static ApiMessage versions() {
    var features = new ApiVersionsResponseData.SupportedFeatureKeyCollection();
    features.add(
        new ApiVersionsResponseData.SupportedFeatureKey()
            .setName(KRaftVersion.FEATURE_NAME)
            .setMinVersion(HeldParts.VERSIONS.min())
            .setMaxVersion(HeldParts.VERSIONS.max()));
    return new ApiVersionsResponseData().setSupportedFeatures(features);
  }

  /** The voter sets with which nodes are formatted, these with their directories. */
  public static VoterSet first(Map<Integer, Uuid> voters) {
    Map<Integer, VoterSet.VoterNode> nodes = new HashMap<>();
    voters.forEach(
        (id, directory) ->
            nodes.put(
                id,
                VoterSet.VoterNode.of(
                    ReplicaKey.of(id, directory), HeldParts.endpoints(id), HeldParts.VERSIONS)));
    return VoterSet.fromMap(nodes);
  }

  /** What a server that follows this leader answers to a fetch: who leads. */
  public static ApiMessage leads(FetchRequestData fetch, int leader, int epoch) {
    InetSocketAddress address = HeldParts.address(leader);
    var endpoints = new FetchResponseData.NodeEndpointCollection();
    endpoints.add(
        new FetchResponseData.NodeEndpoint()
            .setNodeId(leader)
            .setHost(address.getHostString())
            .setPort(address.getPort()));
    FetchRequestData.FetchTopic topic = fetch.topics().get(0);
    var partition =
        new FetchResponseData.PartitionData()
            .setPartitionIndex(topic.partitions().get(0).partition())
            .setErrorCode(Errors.NOT_LEADER_OR_FOLLOWER.code())
            .setCurrentLeader(
                new FetchResponseData.LeaderIdAndEpoch().setLeaderId(leader).setLeaderEpoch(epoch));
    return new FetchResponseData()
        .setNodeEndpoints(endpoints)
        .setResponses(
            List.of(
                new FetchResponseData.FetchableTopicResponse()
                    .setTopicId(topic.topicId())
                    .setPartitions(List.of(partition))));
  }
}
