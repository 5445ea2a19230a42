package org.apache.kafka.controller;

import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.DuplicateBrokerRegistrationException;
import org.apache.kafka.common.errors.StaleBrokerEpochException;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignablePartition;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignableTopic;
import org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.MockTime;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeSet;
import java.util.stream.Collectors;

import static org.apache.kafka.controller.ControllerRequestContextUtil.anonymousContextFor;

/**
 * The controller of {@link ReplicationSimulationTest}, without Raft: the records of each decision are a batch, which is
 * committed at once.
 */
final class SimulatedController extends ReplicationControlTestContext {
    static final String TOPIC = "foo";

    final List<List<ApiMessageAndVersion>> batches = new ArrayList<>();
    private final Runnable onPartitionChange;
    private long nextOffset;

    SimulatedController(int minInSyncReplicas, MockTime time, Runnable onPartitionChange) {
        super(Integer.toString(minInSyncReplicas), time);
        this.onPartitionChange = onPartitionChange;
        append(List.of(
            featureLevel(MetadataVersion.FEATURE_NAME, MetadataVersion.latestProduction().featureLevel()),
            featureLevel(EligibleLeaderReplicasVersion.FEATURE_NAME,
                EligibleLeaderReplicasVersion.ELRV_1.featureLevel())));
    }

    private static ApiMessageAndVersion featureLevel(String name, short level) {
        return new ApiMessageAndVersion(new FeatureLevelRecord().setName(name).setFeatureLevel(level), (short) 0);
    }

    private void append(List<ApiMessageAndVersion> records) {
        batches.add(records);
        nextOffset += records.size();
    }

    @Override
    void replay(List<ApiMessageAndVersion> records) {
        if (records.isEmpty()) {
            return;
        }
        long offset = nextOffset;
        for (ApiMessageAndVersion record : records) {
            replay(record.message(), offset++);
        }
        append(records);
        onPartitionChange.run();
    }

    private void replay(ApiMessage message, long offset) {
        if (message instanceof RegisterBrokerRecord record) {
            clusterControl.replay(record, offset);
        } else if (message instanceof BrokerRegistrationChangeRecord record) {
            clusterControl.replay(record);
        } else if (message instanceof ConfigRecord record) {
            configurationControl.replay(record);
        } else if (message instanceof TopicRecord record) {
            replicationControl.replay(record);
        } else if (message instanceof PartitionRecord record) {
            replicationControl.replay(record);
        } else if (message instanceof PartitionChangeRecord record) {
            replicationControl.replay(record);
        } else if (message instanceof ClearElrRecord record) {
            replicationControl.replay(record);
        } else {
            throw new IllegalStateException("Unexpected record " + message);
        }
    }

    /** The new broker epoch; empty if the session of the last incarnation is still valid. */
    OptionalLong registerBroker(int brokerId, Uuid incarnationId, OptionalLong previousBrokerEpoch) {
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData().
            setBrokerId(brokerId).
            setClusterId(clusterControl.clusterId()).
            setIncarnationId(incarnationId).
            setLogDirs(List.of(logDirId(brokerId))).
            setPreviousBrokerEpoch(previousBrokerEpoch.orElse(-1));
        request.listeners().add(new BrokerRegistrationRequestData.Listener().
            setName("PLAINTEXT").
            setHost("localhost").
            setPort(9092 + brokerId).
            setSecurityProtocol(SecurityProtocol.PLAINTEXT.id));
        request.features().add(new BrokerRegistrationRequestData.Feature().
            setName(MetadataVersion.FEATURE_NAME).
            setMinSupportedVersion(MetadataVersion.MINIMUM_VERSION.featureLevel()).
            setMaxSupportedVersion(MetadataVersion.latestTesting().featureLevel()));
        request.features().add(new BrokerRegistrationRequestData.Feature().
            setName(EligibleLeaderReplicasVersion.FEATURE_NAME).
            setMinSupportedVersion((short) 0).
            setMaxSupportedVersion((short) 1));
        long brokerEpoch = nextOffset;
        try {
            replay(clusterControl.registerBroker(request, brokerEpoch,
                new FinalizedControllerFeatures(featureControl.finalizedFeatures(Long.MAX_VALUE).featureMap(),
                    Long.MAX_VALUE), true).records());
            // The record of the registration comes after those about the shutdown of the last incarnation.
            return OptionalLong.of(clusterControl.registration(brokerId).epoch());
        } catch (DuplicateBrokerRegistrationException e) {
            return OptionalLong.empty();
        }
    }

    BrokerHeartbeatReply heartbeat(int brokerId, long brokerEpoch, long metadataOffset, boolean wantShutDown) {
        clusterControl.trackBrokerHeartbeat(brokerId, brokerEpoch);
        ControllerResult<BrokerHeartbeatReply> result = replicationControl.processBrokerHeartbeat(
            new BrokerHeartbeatRequestData().
                setBrokerId(brokerId).
                setBrokerEpoch(brokerEpoch).
                setCurrentMetadataOffset(metadataOffset).
                setWantFence(false).
                setWantShutDown(wantShutDown),
            clusterControl.registerBrokerRecordOffset(brokerId).getAsLong());
        replay(result.records());
        if (result.response().inControlledShutdown()) {
            clusterControl.heartbeatManager().maybeUpdateControlledShutdownOffset(brokerId, nextOffset - 1);
        }
        return result.response();
    }

    void fenceStaleBrokers() {
        ControllerResult<Boolean> result;
        do {
            result = replicationControl.maybeFenceOneStaleBroker();
            replay(result.records());
        } while (result.response());
    }

    AlterPartitionResponseData handleAlterPartition(AlterPartitionRequestData request) {
        try {
            ControllerResult<AlterPartitionResponseData> result = replicationControl.alterPartition(
                anonymousContextFor(ApiKeys.ALTER_PARTITION), request.duplicate());
            replay(result.records());
            return result.response();
        } catch (StaleBrokerEpochException e) {
            return new AlterPartitionResponseData().setErrorCode(Errors.STALE_BROKER_EPOCH.code());
        }
    }

    /** Null cancels. */
    Errors reassign(List<Integer> replicas) {
        ControllerResult<AlterPartitionReassignmentsResponseData> result =
            replicationControl.alterPartitionReassignments(new AlterPartitionReassignmentsRequestData().setTopics(
                List.of(new ReassignableTopic().setName(TOPIC).setPartitions(List.of(
                    new ReassignablePartition().setPartitionIndex(0).setReplicas(replicas))))));
        replay(result.records());
        return Errors.forCode(result.response().responses().get(0).partitions().get(0).errorCode());
    }

    Errors electPreferredLeader() {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        Errors error = replicationControl.electLeader(TOPIC, 0, ElectionType.PREFERRED, records).error();
        replay(records);
        return error;
    }

    boolean setMinInSyncReplicas(int value) {
        ControllerResult<?> result = configurationControl.incrementalAlterConfigs(
            Map.of(new ConfigResource(ConfigResource.Type.TOPIC, TOPIC), Map.of(
                TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG, Map.entry(OpType.SET, Integer.toString(value)))),
            false, false);
        replay(result.records());
        return !result.records().isEmpty();
    }

    boolean isReassigning() {
        return partition().addingReplicas.length + partition().removingReplicas.length > 0;
    }

    int minInSyncReplicas() {
        return Integer.parseInt(
            configurationControl.getTopicConfig(TOPIC, TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG).value());
    }

    OptionalLong controlledShutdownOffset(int brokerId) {
        return clusterControl.registration(brokerId).inControlledShutdown() ?
            clusterControl.heartbeatManager().controlledShutdownOffset(brokerId) : OptionalLong.empty();
    }

    boolean isActive(int brokerId) {
        return !registration(brokerId).fenced() && !registration(brokerId).inControlledShutdown();
    }

    BrokerRegistration registration(int brokerId) {
        return clusterControl.brokerRegistrations().get(brokerId);
    }

    PartitionRegistration partition() {
        Uuid topicId = replicationControl.getTopicId(TOPIC);
        return topicId == null ? null : replicationControl.getPartition(topicId, 0);
    }

    String describe() {
        PartitionRegistration partition = partition();
        String fenced = clusterControl.brokerRegistrations().values().stream().
            filter(registration -> registration.fenced() || registration.inControlledShutdown()).
            map(registration -> registration.id() + (registration.fenced() ? "" : " (shutting down)")).
            collect(Collectors.joining(", "));
        String reassignment = partition.addingReplicas.length + partition.removingReplicas.length == 0 ? "" :
            String.format(", adding %s, removing %s", Arrays.toString(partition.addingReplicas),
                Arrays.toString(partition.removingReplicas));
        return String.format("controller: leader %d, epoch %d, partition epoch %d, replicas %s%s, ISR %s, ELR %s%s",
            partition.leader, partition.leaderEpoch, partition.partitionEpoch, Arrays.toString(partition.replicas),
            reassignment, new TreeSet<>(Replicas.toList(partition.isr)), new TreeSet<>(Replicas.toList(partition.elr)),
            fenced.isEmpty() ? "" : ", fenced " + fenced);
    }

    static Uuid logDirId(int brokerId) {
        return new Uuid(1000, 1 + brokerId);
    }
}
