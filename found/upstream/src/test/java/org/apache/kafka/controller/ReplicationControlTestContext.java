package org.apache.kafka.controller;

import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignablePartition;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignableTopic;
import org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionRequestData.PartitionData;
import org.apache.kafka.common.message.AlterPartitionRequestData.TopicData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableReplicaAssignment;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicResult;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.FakeKafkaConfigSchema;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.RecordTestUtils;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.MockRandom;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

import static org.apache.kafka.controller.ControllerRequestContextUtil.anonymousContextFor;
import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * The parts of the controller which decide about replicas, with ELR enabled and no log. That of
 * ReplicationControlManagerTest is private to it; what has the same name here does the same there.
 */
class ReplicationControlTestContext {
    final FeatureControlManager featureControl;
    final ClusterControlManager clusterControl;
    final ConfigurationControlManager configurationControl;
    final ReplicationControlManager replicationControl;

    ReplicationControlTestContext(String minInSyncReplicas) {
        this(minInSyncReplicas, Time.SYSTEM);
    }

    ReplicationControlTestContext(String minInSyncReplicas, Time time) {
        LogContext logContext = new LogContext();
        SnapshotRegistry snapshotRegistry = new SnapshotRegistry(logContext);
        featureControl = new FeatureControlManager.Builder().
            setSnapshotRegistry(snapshotRegistry).
            setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0))).
            build();
        featureControl.replay(new FeatureLevelRecord().
            setName(MetadataVersion.FEATURE_NAME).
            setFeatureLevel(MetadataVersion.latestProduction().featureLevel()));
        featureControl.replay(new FeatureLevelRecord().
            setName(EligibleLeaderReplicasVersion.FEATURE_NAME).
            setFeatureLevel(EligibleLeaderReplicasVersion.ELRV_1.featureLevel()));
        clusterControl = new ClusterControlManager.Builder().
            setLogContext(logContext).
            setTime(time).
            setSnapshotRegistry(snapshotRegistry).
            setReplicaPlacer(new StripedReplicaPlacer(new MockRandom())).
            setFeatureControlManager(featureControl).
            setBrokerShutdownHandler(this::handleBrokerShutdown).
            build();
        configurationControl = new ConfigurationControlManager.Builder().
            setSnapshotRegistry(snapshotRegistry).
            setFeatureControl(featureControl).
            setStaticConfig(Map.of("min.insync.replicas", minInSyncReplicas)).
            setKafkaConfigSchema(FakeKafkaConfigSchema.INSTANCE).
            build();
        replicationControl = new ReplicationControlManager.Builder().
            setSnapshotRegistry(snapshotRegistry).
            setLogContext(logContext).
            setConfigurationControl(configurationControl).
            setClusterControl(clusterControl).
            setFeatureControl(featureControl).
            build();
        clusterControl.activate();
    }

    private void handleBrokerShutdown(int brokerId, boolean isCleanShutdown, List<ApiMessageAndVersion> records) {
        replicationControl.handleBrokerShutdown(brokerId, isCleanShutdown, records);
    }

    static long defaultBrokerEpoch(int brokerId) {
        return brokerId + 100;
    }

    static List<BrokerState> isrWithDefaultEpoch(int... isr) {
        return IntStream.of(isr).
            mapToObj(id -> new BrokerState().setBrokerId(id).setBrokerEpoch(defaultBrokerEpoch(id))).
            toList();
    }

    void replay(List<ApiMessageAndVersion> records) {
        RecordTestUtils.replayAll(clusterControl, records);
        RecordTestUtils.replayAll(configurationControl, records);
        RecordTestUtils.replayAll(replicationControl, records);
    }

    void registerBrokers(int... brokerIds) {
        for (int brokerId : brokerIds) {
            RegisterBrokerRecord record = new RegisterBrokerRecord().
                setBrokerId(brokerId).
                setBrokerEpoch(defaultBrokerEpoch(brokerId)).
                setLogDirs(List.of(new Uuid(1000, brokerId)));
            record.endPoints().add(new RegisterBrokerRecord.BrokerEndpoint().
                setSecurityProtocol(SecurityProtocol.PLAINTEXT.id).
                setPort(9092 + brokerId).
                setName("PLAINTEXT").
                setHost("localhost"));
            replay(List.of(new ApiMessageAndVersion(record, (short) 3)));
        }
    }

    void unfenceBrokers(int... brokerIds) {
        for (int brokerId : brokerIds) {
            List<ApiMessageAndVersion> records = new ArrayList<>();
            replicationControl.handleBrokerUnfenced(brokerId, defaultBrokerEpoch(brokerId), records);
            replay(records);
        }
    }

    void fenceBrokers(int... brokerIds) {
        for (int brokerId : brokerIds) {
            List<ApiMessageAndVersion> records = new ArrayList<>();
            replicationControl.handleBrokerFenced(brokerId, records);
            replay(records);
        }
    }

    CreatableTopicResult createTestTopic(String name, int[] replicas) {
        CreatableTopic topic = new CreatableTopic().setName(name).setNumPartitions(-1).setReplicationFactor((short) -1);
        topic.assignments().add(
            new CreatableReplicaAssignment().setPartitionIndex(0).setBrokerIds(Replicas.toList(replicas)));
        CreateTopicsRequestData request = new CreateTopicsRequestData();
        request.topics().add(topic);
        ControllerResult<CreateTopicsResponseData> result = replicationControl.createTopics(
            anonymousContextFor(ApiKeys.CREATE_TOPICS), request, Set.of(name), false);
        CreatableTopicResult topicResult = result.response().topics().find(name);
        assertEquals(Errors.NONE.code(), topicResult.errorCode(), topicResult.errorMessage());
        replay(result.records());
        return topicResult;
    }

    /** The request which the leader of partition 0 sends to get this ISR, by the state as it is now. */
    AlterPartitionRequestData newAlterPartitionRequest(Uuid topicId, int... isr) {
        PartitionRegistration partition = replicationControl.getPartition(topicId, 0);
        return new AlterPartitionRequestData().
            setBrokerId(partition.leader).
            setBrokerEpoch(defaultBrokerEpoch(partition.leader)).
            setTopics(List.of(new TopicData().
                setTopicId(topicId).
                setPartitions(List.of(new PartitionData().
                    setPartitionIndex(0).
                    setPartitionEpoch(partition.partitionEpoch).
                    setLeaderEpoch(partition.leaderEpoch).
                    setLeaderRecoveryState(partition.leaderRecoveryState.value()).
                    setNewIsrWithEpochs(isrWithDefaultEpoch(isr))))));
    }

    /** Handles a copy of the request, as the controller does with what it reads from a connection. */
    Errors alterPartition(AlterPartitionRequestData request) {
        ControllerResult<AlterPartitionResponseData> result = replicationControl.alterPartition(
            anonymousContextFor(ApiKeys.ALTER_PARTITION), request.duplicate());
        replay(result.records());
        return Errors.forCode(result.response().topics().get(0).partitions().get(0).errorCode());
    }

    void reassign(String topic, int... replicas) {
        ControllerResult<AlterPartitionReassignmentsResponseData> result =
            replicationControl.alterPartitionReassignments(new AlterPartitionReassignmentsRequestData().setTopics(
                List.of(new ReassignableTopic().setName(topic).setPartitions(List.of(
                    new ReassignablePartition().setPartitionIndex(0).setReplicas(Replicas.toList(replicas)))))));
        assertEquals(Errors.NONE.code(),
            result.response().responses().get(0).partitions().get(0).errorCode(), result.response().toString());
        replay(result.records());
    }

    void setTopicConfig(String topic, String name, String value) {
        ControllerResult<Map<ConfigResource, org.apache.kafka.common.requests.ApiError>> result =
            configurationControl.incrementalAlterConfigs(
                Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic),
                    Map.of(name, Map.entry(OpType.SET, value))), false, false);
        result.response().values().forEach(error -> assertEquals(Errors.NONE, error.error(), error.message()));
        replay(result.records());
    }
}
