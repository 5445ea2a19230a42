package org.apache.kafka.controller;

import insync.kafka.Clock;
import insync.kafka.Wiring;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.DuplicateBrokerRegistrationException;
import org.apache.kafka.common.errors.StaleBrokerEpochException;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.AssignReplicasToDirsResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.ElectLeadersResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.metadata.BrokerRegistrationInControlledShutdownChange;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * The controller: Kafka's ReplicationControlManager, ClusterControlManager, BrokerHeartbeatManager,
 * FeatureControlManager and ConfigurationControlManager, whose records are replayed at once, as
 * QuorumController does when they are committed.
 */
public final class HeldController {
  public static final String CLUSTER = "insync";
  public static final String TOPIC = "t";

  /**
   * The partition that the model is about. Its minimum at the controller is at most the number of
   * replicas of partition 0 (ReplicationControlManager.getTopicEffectiveMinIsr), which nobody here
   * changes.
   */
  public static final int INDEX = 1;

  /** Replicas of partition 0 are on brokers that are not registered: nothing happens to them. */
  private static final int ELSEWHERE = 1000;

  private static final long FIRST_EPOCH = 1000;
  private static final String MINIMUM = "min.insync.replicas";
  private static final String UNCLEAN = "unclean.leader.election.enable";
  private static final ConfigResource TOPIC_RESOURCE =
      new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
  private static final ConfigResource EVERY_BROKER =
      new ConfigResource(ConfigResource.Type.BROKER, "");

  public final Clock clock = new Clock();

  private final SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
  private final FeatureControlManager features;
  private final ClusterControlManager cluster;
  private final ConfigurationControlManager configs;
  private final ReplicationControlManager replication;
  private final List<ApiMessage> log = new ArrayList<>();
  private final List<Integer> ends = new ArrayList<>();
  private final int brokers;
  private int versionEnd;
  private final Uuid topic;

  /** The same, with a replica on every broker. */
  public HeldController(
      int brokers, int first, int minInsync, boolean flushAlways, boolean eligibleReplicas) {
    this(
        brokers,
        first,
        IntStream.range(0, brokers).boxed().toList(),
        minInsync,
        flushAlways,
        eligibleReplicas);
  }

  /**
   * A controller whose brokers are registered and unfenced, with one topic that {@code first}
   * leads, and of which the replicas are on these brokers.
   */
  public HeldController(
      int brokers,
      int first,
      Collection<Integer> replicas,
      int minInsync,
      boolean flushAlways,
      boolean eligibleReplicas) {
    this.brokers = brokers;
    QuorumFeatures quorum =
        new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0));
    features =
        new FeatureControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(quorum)
            .build();
    cluster =
        new ClusterControlManager.Builder()
            .setClusterId(CLUSTER)
            .setSnapshotRegistry(registry)
            .setTime(clock)
            .setReplicaPlacer(new StripedReplicaPlacer(new Random(1)))
            .setFeatureControlManager(features)
            .setBrokerShutdownHandler(this::onShutdown)
            .build();
    configs =
        new ConfigurationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setFeatureControl(features)
            .setKafkaConfigSchema(kafka.server.KafkaRaftServer$.MODULE$.configSchema())
            .build();
    replication =
        new ReplicationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setMaxElectionsPerImbalance(Integer.MAX_VALUE)
            .setConfigurationControl(configs)
            .setClusterControl(cluster)
            .setFeatureControl(features)
            .build();
    cluster.activate();
    feature(MetadataVersion.FEATURE_NAME, MetadataVersion.latestProduction().featureLevel());
    feature(EligibleLeaderReplicasVersion.FEATURE_NAME, (short) (eligibleReplicas ? 1 : 0));
    for (int i = 0; i < brokers; i++) {
      register(i, FIRST_EPOCH, -1, directory(i, 0));
      unfence(i);
    }
    configure(MINIMUM, Integer.toString(minInsync));
    if (flushAlways) {
      configure("flush.messages", "1");
    }
    topic = createTopic(first, replicas);
  }

  private void feature(String name, short level) {
    replay(new FeatureLevelRecord().setName(name).setFeatureLevel(level));
  }

  private void configure(String name, String value) {
    replay(
        new ConfigRecord()
            .setResourceType(ConfigResource.Type.TOPIC.id())
            .setResourceName(TOPIC)
            .setName(name)
            .setValue(value));
  }

  /** min.insync.replicas of the topic. */
  public int minimum() {
    return Integer.parseInt(configs.getConfigs(TOPIC_RESOURCE).get(MINIMUM));
  }

  /**
   * Somebody sets min.insync.replicas: ConfigurationControlManager.incrementalAlterConfigs. What a
   * topic has already, that writes no record for; so somebody sets the default of all topics then,
   * for which it always writes one, and of which this topic does not go.
   */
  public void setMinimum(int replicas) {
    ConfigResource of = minimum() == replicas ? EVERY_BROKER : TOPIC_RESOURCE;
    set(of, MINIMUM, Integer.toString(replicas));
  }

  /** unclean.leader.election.enable of the topic, or of all brokers. */
  public boolean unclean() {
    return configs.uncleanLeaderElectionEnabledForTopic(TOPIC);
  }

  /** Somebody sets unclean.leader.election.enable of the topic: nobody is elected with that. */
  public void setUnclean(boolean enabled) {
    set(TOPIC_RESOURCE, UNCLEAN, Boolean.toString(enabled));
  }

  /**
   * What happens each unclean.leader.election.interval.ms:
   * ReplicationControlManager.maybeElectUncleanLeaders.
   */
  public boolean electUncleanLeaders() {
    ControllerResult<Boolean> result = replication.maybeElectUncleanLeaders();
    replay(result.records());
    return !result.records().isEmpty();
  }

  /** ConfigurationControlManager.incrementalAlterConfigs. */
  private void set(ConfigResource of, String name, String setting) {
    Map.Entry<AlterConfigOp.OpType, String> value =
        Map.entry(AlterConfigOp.OpType.SET, setting);
    ControllerResult<?> result =
        (ControllerResult<?>)
            Wiring.call(configs, "incrementalAlterConfigs", Map.of(of, Map.of(name, value)), false);
    if (((ApiError) ((Map<?, ?>) result.response()).get(of)).isFailure()) {
      throw new IllegalStateException(result.response().toString());
    }
    replay(result.records());
  }

  /**
   * Somebody asks for these replicas, in this order, or cancels (null):
   * ReplicationControlManager.alterPartitionReassignments.
   */
  public Errors reassign(List<Integer> target) {
    AlterPartitionReassignmentsRequestData request = new AlterPartitionReassignmentsRequestData();
    request
        .topics()
        .add(
            new AlterPartitionReassignmentsRequestData.ReassignableTopic()
                .setName(TOPIC)
                .setPartitions(
                    List.of(
                        new AlterPartitionReassignmentsRequestData.ReassignablePartition()
                            .setPartitionIndex(INDEX)
                            .setReplicas(target))));
    ControllerResult<AlterPartitionReassignmentsResponseData> result =
        replication.alterPartitionReassignments(request);
    replay(result.records());
    Errors all = Errors.forCode(result.response().errorCode());
    return all != Errors.NONE
        ? all
        : Errors.forCode(result.response().responses().get(0).partitions().get(0).errorCode());
  }

  /** Whether a reassignment is under way. */
  public boolean reassigning() {
    PartitionRegistration now = partition();
    return now.addingReplicas.length + now.removingReplicas.length > 0;
  }

  private Uuid createTopic(int first, Collection<Integer> replicas) {
    CreateTopicsRequestData.CreatableTopic wanted =
        new CreateTopicsRequestData.CreatableTopic()
            .setName(TOPIC)
            .setNumPartitions(-1)
            .setReplicationFactor((short) -1);
    List<Integer> order = new ArrayList<>(List.of(first));
    replicas.stream().filter(i -> i != first).forEach(order::add);
    for (int index = 0; index <= INDEX; index++) {
      wanted
          .assignments()
          .add(
              new CreateTopicsRequestData.CreatableReplicaAssignment()
                  .setPartitionIndex(index)
                  .setBrokerIds(order));
    }
    CreateTopicsRequestData request = new CreateTopicsRequestData();
    request.topics().add(wanted);
    ControllerResult<?> result =
        (ControllerResult<?>)
            Wiring.call(
                replication,
                "createTopics",
                context(ApiKeys.CREATE_TOPICS),
                request,
                Set.of(TOPIC),
                false);
    CreateTopicsResponseData.CreatableTopicResult created =
        ((CreateTopicsResponseData) result.response()).topics().find(TOPIC);
    if (created.errorCode() != 0) {
      throw new IllegalStateException(created.toString());
    }
    result.records().forEach(record -> moveElsewhere(record.message()));
    replay(result.records());
    return created.topicId();
  }

  private void moveElsewhere(ApiMessage message) {
    if (message instanceof PartitionRecord record && record.partitionId() != INDEX) {
      List<Integer> replicas = IntStream.range(ELSEWHERE, ELSEWHERE + brokers).boxed().toList();
      record.setReplicas(replicas).setIsr(replicas).setLeader(ELSEWHERE);
      record.setDirectories(replicas.stream().map(i -> DirectoryId.UNASSIGNED).toList());
    }
  }

  /** Somebody deletes the topic: ReplicationControlManager.deleteTopics. */
  public void deleteTopic() {
    replay(replication.deleteTopics(context(ApiKeys.DELETE_TOPICS), List.of(topic)).records());
  }

  private static ControllerRequestContext context(ApiKeys key) {
    return new ControllerRequestContext(
        new RequestHeaderData().setRequestApiKey(key.id).setRequestApiVersion(key.latestVersion()),
        KafkaPrincipal.ANONYMOUS,
        OptionalLong.empty());
  }

  private void onShutdown(int broker, boolean clean, List<ApiMessageAndVersion> records) {
    replication.handleBrokerShutdown(broker, clean, records);
  }

  private void replay(List<ApiMessageAndVersion> records) {
    int version = version();
    records.forEach(record -> take(record.message()));
    if (!records.isEmpty()) {
      ends.add(log.size());
    }
    versionEnd = version() == version ? versionEnd : log.size();
  }

  /** The version of the partition; -1 until its topic is made. */
  private int version() {
    PartitionRegistration now = topic == null ? null : partition();
    return now == null ? -1 : now.partitionEpoch;
  }

  private void replay(ApiMessage message) {
    take(message);
    ends.add(log.size());
  }

  private void take(ApiMessage message) {
    log.add(message);
    switch (MetadataRecordType.fromId(message.apiKey())) {
      case FEATURE_LEVEL_RECORD -> features.replay((FeatureLevelRecord) message);
      case REGISTER_BROKER_RECORD -> cluster.replay((RegisterBrokerRecord) message, log.size());
      case BROKER_REGISTRATION_CHANGE_RECORD ->
          cluster.replay((BrokerRegistrationChangeRecord) message);
      case CONFIG_RECORD -> configs.replay((ConfigRecord) message);
      case CLEAR_ELR_RECORD -> replication.replay((ClearElrRecord) message);
      case TOPIC_RECORD -> replication.replay((TopicRecord) message);
      case REMOVE_TOPIC_RECORD -> replication.replay((RemoveTopicRecord) message);
      case PARTITION_RECORD -> replication.replay((PartitionRecord) message);
      case PARTITION_CHANGE_RECORD -> replication.replay((PartitionChangeRecord) message);
      default -> throw new IllegalStateException("a record of another kind: " + message);
    }
  }

  // What there is

  /** All metadata so far; brokers learn a first part of it. */
  public List<ApiMessage> log() {
    return log;
  }

  /** Whether a record sets what brokers go by: unclean elections are the controller's. */
  private static boolean configuresBrokers(ApiMessage message) {
    return message instanceof ConfigRecord record && !record.name().equals(UNCLEAN);
  }

  /** How many of the first so many records there are up to the last that configures brokers. */
  public int configuredBy(int records) {
    int last = records;
    while (!configuresBrokers(log.get(last - 1))) {
      last--;
    }
    int record = last;
    return ends.stream().filter(end -> end >= record).findFirst().orElseThrow();
  }

  /** How many records there are up to the one that brought the newest version of the partition. */
  public int versionedBy() {
    return versionEnd;
  }

  /** Whether a configuration of brokers is set after the first so many records, and up to others. */
  public boolean configures(int from, int to) {
    return log.subList(from, Math.max(from, to)).stream().anyMatch(HeldController::configuresBrokers);
  }

  /** The batches after the first so many records: the records of one decision are one batch. */
  public List<List<ApiMessage>> batches(int from) {
    List<List<ApiMessage>> all = new ArrayList<>();
    int begin = from;
    for (int end : ends) {
      if (end > begin) {
        all.add(log.subList(begin, end));
        begin = end;
      }
    }
    return all;
  }

  public Uuid topic() {
    return topic;
  }

  public PartitionRegistration partition() {
    return replication.getPartition(topic, INDEX);
  }

  /** The directory id of a broker's only folder, which has had so many disks before. */
  public static Uuid directory(int broker, int disksBefore) {
    return new Uuid(77L, 1000L + 100L * disksBefore + broker);
  }

  public long epoch(int broker) {
    return cluster.brokerRegistrations().get(broker).epoch();
  }

  /** How often the broker had registered before the registration with this epoch. */
  public static int incarnation(long epoch) {
    return epoch < FIRST_EPOCH ? 0 : (int) (epoch - FIRST_EPOCH);
  }

  public boolean fenced(int broker) {
    return cluster.brokerRegistrations().get(broker).fenced();
  }

  public boolean shuttingDown(int broker) {
    return cluster.brokerRegistrations().get(broker).inControlledShutdown();
  }

  // Brokers

  private void register(int broker, long epoch, long previous, Uuid directory) {
    BrokerRegistrationRequestData request =
        new BrokerRegistrationRequestData()
            .setBrokerId(broker)
            .setClusterId(CLUSTER)
            .setIncarnationId(new Uuid(99L + broker, epoch))
            .setLogDirs(List.of(directory))
            .setPreviousBrokerEpoch(previous);
    request
        .listeners()
        .add(
            new BrokerRegistrationRequestData.Listener()
                .setName("PLAINTEXT")
                .setHost("localhost")
                .setPort(9092 + broker)
                .setSecurityProtocol(SecurityProtocol.PLAINTEXT.id));
    request
        .features()
        .add(
            new BrokerRegistrationRequestData.Feature()
                .setName(MetadataVersion.FEATURE_NAME)
                .setMinSupportedVersion(MetadataVersion.MINIMUM_VERSION.featureLevel())
                .setMaxSupportedVersion(MetadataVersion.latestTesting().featureLevel()));
    request
        .features()
        .add(
            new BrokerRegistrationRequestData.Feature()
                .setName(EligibleLeaderReplicasVersion.FEATURE_NAME)
                .setMinSupportedVersion((short) 0)
                .setMaxSupportedVersion((short) 1));
    replay(
        cluster
            .registerBroker(request, epoch, features.finalizedFeatures(Long.MAX_VALUE), true)
            .records());
  }

  /**
   * A broker's process registers again with its directory: ClusterControlManager.registerBroker,
   * ReplicationControlManager.handleBrokerShutdown.
   */
  public boolean restarts(int broker, OptionalLong cleanEpoch, Uuid directory) {
    if (fenced(broker)) {
      expire(broker);
    } else {
      cluster.trackBrokerHeartbeat(broker, epoch(broker)); // its session has not run out
    }
    try {
      register(broker, epoch(broker) + 1, cleanEpoch.orElse(-1), directory);
      return true;
    } catch (DuplicateBrokerRegistrationException refused) {
      return false;
    }
  }

  /** Whether a broker has registered this directory. */
  public boolean registers(int broker, Uuid directory) {
    return cluster.registration(broker).directories().contains(directory);
  }

  /** A broker tells in which directory its replica is: handleAssignReplicasToDirs. */
  public Errors assign(int broker, Uuid directory) {
    order(partition(), orderOfLog());
    AssignReplicasToDirsRequestData.TopicData replicas =
        new AssignReplicasToDirsRequestData.TopicData()
            .setTopicId(topic)
            .setPartitions(
                List.of(
                    new AssignReplicasToDirsRequestData.PartitionData().setPartitionIndex(INDEX)));
    ControllerResult<AssignReplicasToDirsResponseData> result =
        replication.handleAssignReplicasToDirs(
            new AssignReplicasToDirsRequestData()
                .setBrokerId(broker)
                .setBrokerEpoch(epoch(broker))
                .setDirectories(
                    List.of(
                        new AssignReplicasToDirsRequestData.DirectoryData()
                            .setId(directory)
                            .setTopics(List.of(replicas)))));
    replay(result.records());
    return Errors.forCode(
        result.response().directories().get(0).topics().get(0).partitions().get(0).errorCode());
  }

  /** A session runs out: ReplicationControlManager.maybeFenceOneStaleBroker. */
  public boolean fence(int broker) {
    if (fenced(broker)) {
      return false;
    }
    expire(broker);
    while (!fenced(broker)) {
      ControllerResult<Boolean> result = replication.maybeFenceOneStaleBroker();
      replay(result.records());
      if (!result.response()) {
        return false;
      }
    }
    return true;
  }

  /** So much time goes by that this broker's session is over; all others are heard. */
  private void expire(int broker) {
    clock.now += 20_000;
    for (int i = 0; i < brokers; i++) {
      if (i != broker) {
        cluster.trackBrokerHeartbeat(i, epoch(i));
      }
    }
  }

  /** A fenced broker is heard again. */
  public boolean unfence(int broker) {
    if (!fenced(broker)) {
      return false;
    }
    heartbeat(broker, false);
    return !fenced(broker);
  }

  /**
   * A heartbeat of a broker that has caught up with the metadata:
   * ReplicationControlManager.processBrokerHeartbeat. One that asks for a controlled shutdown takes
   * leadership and its place in the ISR from the broker.
   */
  public void heartbeat(int broker, boolean wantShutDown) {
    cluster.trackBrokerHeartbeat(broker, epoch(broker));
    replay(
        replication
            .processBrokerHeartbeat(
                new BrokerHeartbeatRequestData()
                    .setBrokerId(broker)
                    .setBrokerEpoch(epoch(broker))
                    .setCurrentMetadataOffset(1 + log.size())
                    .setWantFence(false)
                    .setWantShutDown(wantShutDown),
                0)
            .records());
  }

  /** The first record of a heartbeat with wantShutDown: the broker is marked. */
  public boolean askToShutDown(int broker) {
    if (fenced(broker) || shuttingDown(broker)) {
      return false;
    }
    replay(
        new BrokerRegistrationChangeRecord()
            .setBrokerId(broker)
            .setBrokerEpoch(epoch(broker))
            .setInControlledShutdown(
                BrokerRegistrationInControlledShutdownChange.IN_CONTROLLED_SHUTDOWN.value()));
    return true;
  }

  /** Its other records: ReplicationControlManager.handleBrokerInControlledShutdown. */
  public boolean relieve(int broker) {
    List<ApiMessageAndVersion> records = new ArrayList<>();
    replication.handleBrokerInControlledShutdown(broker, epoch(broker), records);
    replay(records);
    return !records.isEmpty();
  }

  /** Whether handleBrokerInControlledShutdown would change the partition. */
  public boolean relievable(int broker) {
    List<ApiMessageAndVersion> records = new ArrayList<>();
    replication.handleBrokerInControlledShutdown(broker, epoch(broker), records);
    return !records.isEmpty();
  }

  /**
   * It has stopped in order: the heartbeat that is answered with SHUTDOWN_NOW,
   * ReplicationControlManager.handleBrokerFenced.
   */
  public void stopped(int broker) {
    if (fenced(broker)) {
      expire(broker);
      replay(replication.maybeFenceOneStaleBroker().records());
      return;
    }
    List<ApiMessageAndVersion> records = new ArrayList<>();
    replication.handleBrokerFenced(broker, records);
    replay(records);
    cluster.heartbeatManager().fence(broker);
  }

  // Leaders

  /**
   * The order of assignment is the environment's choice: this replica comes first from now on. It
   * stays as it is for who is no replica.
   */
  public void prefer(int broker) {
    PartitionRegistration now = partition();
    if (Arrays.stream(now.replicas).noneMatch(replica -> replica == broker)) {
      return;
    }
    List<Integer> order = new ArrayList<>(List.of(broker));
    for (int replica : now.replicas) {
      if (replica != broker) {
        order.add(replica);
      }
    }
    order(now, order);
  }

  private void order(PartitionRegistration now, List<Integer> order) {
    ImageWriterOptions options =
        new ImageWriterOptions.Builder(MetadataVersion.latestProduction())
            .setEligibleLeaderReplicasEnabled(true)
            .build();
    PartitionRecord record = (PartitionRecord) now.toRecord(topic, INDEX, options).message();
    record.setReplicas(order);
    record.setDirectories(order.stream().map(now::directory).toList());
    replication.replay(record);
  }

  /** The replicas in the order that the metadata have told, in which they tell directories, too. */
  private List<Integer> orderOfLog() {
    for (int i = log.size() - 1; ; i--) {
      List<Integer> told = null;
      if (log.get(i) instanceof PartitionRecord record && record.partitionId() == INDEX) {
        told = record.replicas();
      } else if (log.get(i) instanceof PartitionChangeRecord record) {
        told = record.replicas();
      }
      if (told != null) {
        return told;
      }
    }
  }

  /**
   * A preferred election, or (unclean) an operator's of any available replica:
   * ReplicationControlManager.electLeaders.
   */
  public boolean elect(boolean unclean) {
    ElectLeadersRequestData request =
        new ElectLeadersRequestData().setElectionType((byte) (unclean ? 1 : 0));
    request
        .topicPartitions()
        .add(
            new ElectLeadersRequestData.TopicPartitions()
                .setTopic(TOPIC)
                .setPartitions(List.of(INDEX)));
    ControllerResult<ElectLeadersResponseData> result = replication.electLeaders(request);
    replay(result.records());
    return !result.records().isEmpty();
  }

  /** ReplicationControlManager.alterPartition; null if the broker epoch is stale. */
  public AlterPartitionResponseData alter(AlterPartitionRequestData request) {
    try {
      ControllerResult<AlterPartitionResponseData> result =
          replication.alterPartition(context(ApiKeys.ALTER_PARTITION), request.duplicate());
      replay(result.records());
      return result.response();
    } catch (StaleBrokerEpochException stale) {
      return null;
    }
  }
}
