package org.apache.kafka.controller;

import insync.found.classes.Clock;
import insync.found.classes.Moved;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.OptionalLong;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * The controller of three brokers and one partition, from Kafka's own classes:
 * ClusterControlManager (registrations, sessions) and ReplicationControlManager (ISR, elections).
 * Without a quorum: the records that a call gives are replayed at once. The package is theirs,
 * because the managers are visible only there.
 */
public final class InProcessController {
  /** The topic, of one partition. */
  public static final String TOPIC = "t";

  private static final String CLUSTER = "found";

  private final Clock clock;
  private final FeatureControlManager features;
  private final ClusterControlManager cluster;
  private final ConfigurationControlManager configs;
  private final ReplicationControlManager replication;
  private final List<ApiMessage> log = new ArrayList<>();
  private final Uuid topicId;

  /**
   * Three brokers, 1 to 3, unfenced; RF 3, min.insync.replicas 2, ELR on; r1 leads, ISR {1, 2, 3}.
   */
  public InProcessController(Clock clock) {
    this.clock = clock;
    SnapshotRegistry registry = snapshotRegistry();
    features =
        new FeatureControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(
                new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0)))
            .build();
    cluster =
        new ClusterControlManager.Builder()
            .setClusterId(CLUSTER)
            .setSnapshotRegistry(registry)
            .setTime(clock)
            .setReplicaPlacer(new StripedReplicaPlacer(new Random(1)))
            .setFeatureControlManager(features)
            .setBrokerShutdownHandler((broker, clean, records) -> {})
            .build();
    configs =
        new ConfigurationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setFeatureControl(features)
            .setKafkaConfigSchema(kafka.server.KafkaRaftServer.configSchema())
            .build();
    replication =
        new ReplicationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setConfigurationControl(configs)
            .setClusterControl(cluster)
            .setFeatureControl(features)
            .build();
    cluster.activate();
    feature(MetadataVersion.FEATURE_NAME, MetadataVersion.latestProduction().featureLevel());
    feature(EligibleLeaderReplicasVersion.FEATURE_NAME, (short) 1);
    for (int broker = 1; broker <= 3; broker++) {
      register(broker);
      heartbeat(broker);
    }
    replay(minimum(2));
    topicId = createTopic(List.of(1, 2, 3));
  }

  private static ConfigRecord minimum(int replicas) {
    return new ConfigRecord()
        .setResourceType(ConfigResource.Type.TOPIC.id())
        .setResourceName(TOPIC)
        .setName("min.insync.replicas")
        .setValue(Integer.toString(replicas));
  }

  /** Somebody sets min.insync.replicas of the topic; ConfigurationControlManager adds its records. */
  public void setMinimum(int replicas) {
    List<ApiMessageAndVersion> batch = new ArrayList<>();
    batch.add(new ApiMessageAndVersion(minimum(replicas), (short) 0));
    batch.addAll(configs.createClearElrRecordsAsNeeded(List.copyOf(batch)));
    replay(batch);
  }

  private static SnapshotRegistry snapshotRegistry() {
    Class<?> context =
        Moved.type(
            "org.apache.kafka.common.utils.internals.LogContext",
            "org.apache.kafka.common.utils.LogContext");
    return Moved.build(SnapshotRegistry.class, Moved.build(context, ""));
  }

  private void feature(String name, short level) {
    replay(new FeatureLevelRecord().setName(name).setFeatureLevel(level));
  }

  /** All records so far: what brokers read. */
  public List<ApiMessage> log() {
    return Collections.unmodifiableList(log);
  }

  /** The topic's id. */
  public Uuid topicId() {
    return topicId;
  }

  /** The epoch of a broker's registration. */
  public long brokerEpoch(int broker) {
    return cluster.brokerRegistrations().get(broker).epoch();
  }

  /** Whether the broker has no session. */
  public boolean fenced(int broker) {
    return cluster.brokerRegistrations().get(broker).fenced();
  }

  /** The partition as the controller has it. */
  public PartitionRegistration partition() {
    return replication.getPartition(topicId, 0);
  }

  /** A heartbeat of a broker that has read all metadata: it gets its session back. */
  public void heartbeat(int broker) {
    heartbeat(broker, false);
  }

  /** A heartbeat that asks for a controlled shutdown: the broker loses leadership and ISR. */
  public void askToShutDown(int broker) {
    heartbeat(broker, true);
  }

  private void heartbeat(int broker, boolean wantShutDown) {
    cluster.trackBrokerHeartbeat(broker, brokerEpoch(broker));
    replay(
        replication
            .processBrokerHeartbeat(
                new BrokerHeartbeatRequestData()
                    .setBrokerId(broker)
                    .setBrokerEpoch(brokerEpoch(broker))
                    .setCurrentMetadataOffset(log.size() + 1)
                    .setWantShutDown(wantShutDown),
                0)
            .records());
  }

  /**
   * Nothing is heard of the broker for longer than broker.session.timeout.ms, of the others it is.
   */
  public void fence(int broker) {
    clock.sleep(20_000);
    for (int other = 1; other <= 3; other++) {
      if (other != broker) {
        cluster.trackBrokerHeartbeat(other, brokerEpoch(other));
      }
    }
    replay(replication.maybeFenceOneStaleBroker().records());
    if (!fenced(broker)) {
      throw new IllegalStateException("r" + broker + " was not fenced");
    }
  }

  /** The order of the assignment, the first of which is the preferred leader. */
  public void assign(List<Integer> replicas) {
    AlterPartitionReassignmentsRequestData request = new AlterPartitionReassignmentsRequestData();
    request
        .topics()
        .add(
            new AlterPartitionReassignmentsRequestData.ReassignableTopic()
                .setName(TOPIC)
                .setPartitions(
                    List.of(
                        new AlterPartitionReassignmentsRequestData.ReassignablePartition()
                            .setPartitionIndex(0)
                            .setReplicas(replicas))));
    replay(replication.alterPartitionReassignments(request).records());
  }

  /** kafka-leader-election.sh --election-type preferred; false if it changes nothing. */
  public boolean electPreferred() {
    ElectLeadersRequestData request = new ElectLeadersRequestData().setElectionType((byte) 0);
    request
        .topicPartitions()
        .add(
            new ElectLeadersRequestData.TopicPartitions()
                .setTopic(TOPIC)
                .setPartitions(List.of(0)));
    List<ApiMessageAndVersion> records = replication.electLeaders(request).records();
    replay(records);
    return !records.isEmpty();
  }

  /** What ControllerApis does with an AlterPartition request. */
  public AlterPartitionResponseData alterPartition(AlterPartitionRequestData request) {
    ControllerResult<AlterPartitionResponseData> result =
        replication.alterPartition(context(ApiKeys.ALTER_PARTITION), request.duplicate());
    replay(result.records());
    return result.response();
  }

  private Uuid createTopic(List<Integer> replicas) {
    CreateTopicsRequestData.CreatableTopic topic =
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
    CreateTopicsRequestData request = new CreateTopicsRequestData();
    request.topics().add(topic);
    ControllerResult<CreateTopicsResponseData> result =
        replication.createTopics(context(ApiKeys.CREATE_TOPICS), request, Set.of(TOPIC), false);
    replay(result.records());
    return result.response().topics().find(TOPIC).topicId();
  }

  private void register(int broker) {
    BrokerRegistrationRequestData request =
        new BrokerRegistrationRequestData()
            .setBrokerId(broker)
            .setClusterId(CLUSTER)
            .setIncarnationId(new Uuid(1, broker))
            .setLogDirs(List.of(new Uuid(1, 1000 + broker)))
            .setPreviousBrokerEpoch(-1);
    request
        .listeners()
        .add(
            new BrokerRegistrationRequestData.Listener()
                .setName("PLAINTEXT")
                .setHost("localhost")
                .setPort(9092 + broker)
                .setSecurityProtocol(SecurityProtocol.PLAINTEXT.id));
    supports(
        request,
        MetadataVersion.FEATURE_NAME,
        MetadataVersion.MINIMUM_VERSION.featureLevel(),
        MetadataVersion.latestTesting().featureLevel());
    supports(request, EligibleLeaderReplicasVersion.FEATURE_NAME, (short) 0, (short) 1);
    replay(
        cluster
            .registerBroker(request, 100 + broker, features.finalizedFeatures(Long.MAX_VALUE), true)
            .records());
  }

  private static void supports(
      BrokerRegistrationRequestData request, String name, short from, short to) {
    request
        .features()
        .add(
            new BrokerRegistrationRequestData.Feature()
                .setName(name)
                .setMinSupportedVersion(from)
                .setMaxSupportedVersion(to));
  }

  private static ControllerRequestContext context(ApiKeys key) {
    return new ControllerRequestContext(
        new RequestHeaderData().setRequestApiKey(key.id).setRequestApiVersion(key.latestVersion()),
        KafkaPrincipal.ANONYMOUS,
        OptionalLong.empty());
  }

  private void replay(List<ApiMessageAndVersion> records) {
    records.forEach(record -> replay(record.message()));
  }

  private void replay(ApiMessage record) {
    log.add(record);
    switch (MetadataRecordType.fromId(record.apiKey())) {
      case FEATURE_LEVEL_RECORD -> features.replay((FeatureLevelRecord) record);
      case REGISTER_BROKER_RECORD -> cluster.replay((RegisterBrokerRecord) record, log.size());
      case BROKER_REGISTRATION_CHANGE_RECORD ->
          cluster.replay((BrokerRegistrationChangeRecord) record);
      case CONFIG_RECORD -> configs.replay((ConfigRecord) record);
      case CLEAR_ELR_RECORD -> replication.replay((ClearElrRecord) record);
      case TOPIC_RECORD -> replication.replay((TopicRecord) record);
      case PARTITION_RECORD -> replication.replay((PartitionRecord) record);
      case PARTITION_CHANGE_RECORD -> replication.replay((PartitionChangeRecord) record);
      default -> throw new IllegalStateException("a record that nobody expected: " + record);
    }
  }
}
