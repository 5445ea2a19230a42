package org.apache.kafka.controller;

import insync.objects.Fields;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.queue.KafkaEventQueue;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandler;

/** One QuorumController without a thread, on a client of the quorum. Its brokers are requests. */
public final class HeldQuorumController {
  public static final String TOPIC = "t";
  private static final String MINIMUM = "min.insync.replicas";
  private static final String CLUSTER = "cluster";

  /** AlterPartition with ids of topics and epochs of brokers (KIP-903). */
  private static final short ALTER_PARTITION = 3;

  private static final long CAUGHT_UP = Long.MAX_VALUE;
  private static final byte PREFERRED = 0;

  /** More than a session lasts, in ns. */
  private static final long SESSION = 2 * ClusterControlManager.DEFAULT_SESSION_TIMEOUT_NS;

  private final SessionTime time = new SessionTime();
  private final List<Throwable> faults = new ArrayList<>();
  private final QuorumController controller;
  private final KafkaEventQueue queue;

  /** The controller of this number, of so many, whose brokers have this min.insync.replicas. */
  public HeldQuorumController(
      int id, int controllers, RaftClient<ApiMessageAndVersion> client, int minInsync) {
    FaultHandler handler = this::fault;
    List<Integer> voters = IntStream.rangeClosed(1, controllers).boxed().toList();
    try {
      controller =
          new QuorumController.Builder(id, CLUSTER)
              .setTime(time)
              .setRaftClient(client)
              .setQuorumFeatures(
                  new QuorumFeatures(id, QuorumFeatures.defaultSupportedFeatureMap(true), voters))
              .setBootstrapMetadata(bootstrap())
              .setConfigSchema(kafka.server.KafkaRaftServer$.MODULE$.configSchema())
              .setStaticConfig(Map.of(MINIMUM, minInsync))
              .setFatalFaultHandler(handler)
              .setNonFatalFaultHandler(handler)
              .build();
    } catch (Exception problem) {
      throw new IllegalStateException(problem);
    }
    queue = (KafkaEventQueue) Fields.get(controller, "queue");
  }

  private RuntimeException fault(String message, Throwable cause) {
    RuntimeException fault = new RuntimeException(message, cause);
    faults.add(fault);
    return fault;
  }

  private static BootstrapMetadata bootstrap() {
    short latest = MetadataVersion.latestProduction().featureLevel();
    return BootstrapMetadata.fromRecords(
        List.of(
            feature(MetadataVersion.FEATURE_NAME, latest),
            feature(EligibleLeaderReplicasVersion.FEATURE_NAME, (short) 1)),
        "insync");
  }

  private static ApiMessageAndVersion feature(String name, short level) {
    return new ApiMessageAndVersion(
        new FeatureLevelRecord().setName(name).setFeatureLevel(level), (short) 0);
  }

  /** Do what waits in its queue; whether there was anything. */
  public boolean runs() {
    return queue.runs();
  }

  /** What its fault handlers were told. */
  public List<Throwable> faults() {
    return faults;
  }

  /** Whether it takes itself for the active one. */
  public boolean isActive() {
    return controller.curClaimEpoch() != -1;
  }

  // Requests, which are done when their answers leave

  /** An incarnation of a broker registers, after an unclean shutdown. */
  public CompletableFuture<?> registers(int broker, int incarnation) {
    var features = new BrokerRegistrationRequestData.FeatureCollection();
    QuorumFeatures.defaultSupportedFeatureMap(true)
        .forEach(
            (name, range) ->
                features.add(
                    new BrokerRegistrationRequestData.Feature()
                        .setName(name)
                        .setMinSupportedVersion(range.min())
                        .setMaxSupportedVersion(range.max())));
    var listeners = new BrokerRegistrationRequestData.ListenerCollection();
    listeners.add(
        new BrokerRegistrationRequestData.Listener()
            .setName("PLAINTEXT")
            .setHost("broker")
            .setPort(9092));
    return controller.registerBroker(
        context((short) 4),
        new BrokerRegistrationRequestData()
            .setBrokerId(broker)
            .setClusterId(CLUSTER)
            .setIncarnationId(new Uuid(9 + incarnation, broker))
            .setPreviousBrokerEpoch(-1)
            .setFeatures(features)
            .setListeners(listeners)
            .setLogDirs(List.of(new Uuid(11, broker))));
  }

  /** A heartbeat of a broker that has applied all metadata; NotControllerException at once. */
  public CompletableFuture<?> heartbeat(int broker, long epoch) {
    return controller.processBrokerHeartbeat(
        context((short) 1),
        new BrokerHeartbeatRequestData()
            .setBrokerId(broker)
            .setBrokerEpoch(epoch)
            .setCurrentMetadataOffset(CAUGHT_UP));
  }

  /** So much time goes by that no session lasts of whom nobody has heard since. */
  public void sessionsEnd() {
    time.moves(SESSION);
  }

  /** The periodic task that fences one broker without a session; whether it is due at all. */
  public boolean fencesStaleBroker() {
    return queue.isTime("maybeFenceStaleBroker");
  }

  /** Somebody creates the topic, whose only partition has its replicas in this order. */
  public CompletableFuture<?> creates(List<Integer> replicas) {
    var topic =
        new CreateTopicsRequestData.CreatableTopic()
            .setName(TOPIC)
            .setNumPartitions(-1)
            .setReplicationFactor((short) -1);
    topic
        .assignments()
        .add(
            new CreateTopicsRequestData.CreatableReplicaAssignment()
                .setPartitionIndex(0)
                .setBrokerIds(replicas));
    CreateTopicsRequestData topics = new CreateTopicsRequestData().setTimeoutMs(1000);
    topics.topics().add(topic);
    return ControllerRelease.creates(controller, context((short) 7), topics);
  }

  /** Somebody has the preferred replica elected. */
  public CompletableFuture<?> electsPreferred() {
    var partitions = new ElectLeadersRequestData.TopicPartitionsCollection();
    partitions.add(
        new ElectLeadersRequestData.TopicPartitions().setTopic(TOPIC).setPartitions(List.of(0)));
    return controller.electLeaders(
        context((short) 2),
        new ElectLeadersRequestData()
            .setElectionType(PREFERRED)
            .setTopicPartitions(partitions)
            .setTimeoutMs(1000));
  }

  /**
   * A leader's AlterPartition; {@code members} are the proposed ISR, each with its broker epoch.
   */
  public CompletableFuture<AlterPartitionResponseData> alters(
      Uuid topic,
      int leader,
      long brokerEpoch,
      int leaderEpoch,
      int partitionEpoch,
      Map<Integer, Long> members) {
    var partition =
        new AlterPartitionRequestData.PartitionData()
            .setPartitionIndex(0)
            .setLeaderEpoch(leaderEpoch)
            .setPartitionEpoch(partitionEpoch);
    members.forEach(
        (broker, epoch) ->
            partition
                .newIsrWithEpochs()
                .add(
                    new AlterPartitionRequestData.BrokerState()
                        .setBrokerId(broker)
                        .setBrokerEpoch(epoch)));
    var data =
        new AlterPartitionRequestData.TopicData()
            .setTopicId(topic)
            .setPartitions(new ArrayList<>(List.of(partition)));
    return controller.alterPartition(
        context(ALTER_PARTITION),
        new AlterPartitionRequestData()
            .setBrokerId(leader)
            .setBrokerEpoch(brokerEpoch)
            .setTopics(new ArrayList<>(List.of(data))));
  }

  private static ControllerRequestContext context(short version) {
    return new ControllerRequestContext(
        new RequestHeaderData().setRequestApiVersion(version),
        KafkaPrincipal.ANONYMOUS,
        OptionalLong.empty());
  }

  // What it has replayed

  /** The partition as it has it in memory; null if it has none. */
  public PartitionRegistration partition(Uuid topic) {
    return controller.replicationControl().getPartition(topic, 0);
  }

  /** The brokers as it has them in memory. */
  public Map<Integer, BrokerRegistration> brokers() {
    return controller.clusterControl().brokerRegistrations();
  }
}
