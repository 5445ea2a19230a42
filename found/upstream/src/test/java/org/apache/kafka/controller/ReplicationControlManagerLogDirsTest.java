package org.apache.kafka.controller;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

import static org.apache.kafka.metadata.LeaderConstants.NO_LEADER;
import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Broker 1 shuts down in order, and starts with other log directories. The epoch which it names is that of the shutdown,
 * for it is in each of the directories that it has. The methods belong in ReplicationControlManagerTest.
 */
public class ReplicationControlManagerLogDirsTest {
    private static final Uuid DIR_OF_REPLICA = Uuid.fromString("7DRbpDYKQoyqTmuP5qBS2w");
    private static final Uuid OTHER_DIR = Uuid.fromString("xPz5OLFDTQCNSdHlhzNHBQ");
    private static final Uuid NEW_DIR = Uuid.fromString("Kj0Iw0NYTiSHPdbFcSo7Ng");

    private final ReplicationControlTestContext ctx = new ReplicationControlTestContext("2");
    private long brokerEpoch = -1;
    private Uuid fooId;

    @BeforeEach
    public void setUp() {
        registerBroker(DIR_OF_REPLICA, OTHER_DIR);
        unfenceBroker();
        ctx.registerBrokers(2, 3);
        ctx.unfenceBrokers(2, 3);
        fooId = ctx.createTestTopic("foo", new int[] {1, 2, 3}).topicId();
        assignReplica(DIR_OF_REPLICA);
    }

    /** Broker 1 starts. It is fenced until it has caught up with the metadata. */
    private void registerBroker(Uuid... logDirs) {
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData().
            setBrokerId(1).
            setClusterId(ctx.clusterControl.clusterId()).
            setIncarnationId(Uuid.randomUuid()).
            setPreviousBrokerEpoch(brokerEpoch).
            setLogDirs(List.of(logDirs));
        FinalizedControllerFeatures finalized = ctx.featureControl.finalizedFeatures(Long.MAX_VALUE);
        finalized.featureMap().forEach((name, level) ->
            request.features().add(new BrokerRegistrationRequestData.Feature().
                setName(name).
                setMinSupportedVersion(level).
                setMaxSupportedVersion(level)));
        ControllerResult<?> result = ctx.clusterControl.registerBroker(request, brokerEpoch + 1000, finalized, true);
        ctx.replay(result.records());
        brokerEpoch += 1000;
    }

    private void unfenceBroker() {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        ctx.replicationControl.handleBrokerUnfenced(1, brokerEpoch, records);
        ctx.replay(records);
    }

    /** Broker 1 has a log of foo in this directory. */
    private void assignReplica(Uuid logDir) {
        var partition = new AssignReplicasToDirsRequestData.PartitionData().setPartitionIndex(0);
        var topic = new AssignReplicasToDirsRequestData.TopicData().setTopicId(fooId).setPartitions(List.of(partition));
        var directory = new AssignReplicasToDirsRequestData.DirectoryData().setId(logDir).setTopics(List.of(topic));
        ctx.replay(ctx.replicationControl.handleAssignReplicasToDirs(new AssignReplicasToDirsRequestData().
            setBrokerId(1).
            setBrokerEpoch(brokerEpoch).
            setDirectories(List.of(directory))).records());
    }

    @Test
    public void testEligibleLeaderReplicas_BrokerWithoutEarlierLogDirIsStruck() {
        ctx.fenceBrokers(3, 1);
        assertEquals(List.of(1), Replicas.toList(partition().elr));

        // A directory more is no reason to take it for a broker which lost data.
        registerBroker(DIR_OF_REPLICA, OTHER_DIR, NEW_DIR);
        assertEquals(List.of(1), Replicas.toList(partition().elr));

        registerBroker(OTHER_DIR, NEW_DIR);
        assertEquals(List.of(), Replicas.toList(partition().elr),
            "A broker which lacks a log directory that it had must not stay in the ELR");
    }

    @Test
    public void testEligibleLeaderReplicas_BrokerWithoutLogDirOfReplicaIsNotElected() {
        ctx.fenceBrokers(3, 1, 2);
        assertEquals(List.of(1, 2), Replicas.toList(partition().elr));

        // Before it is unfenced, it makes an empty log in the directory which is left.
        registerBroker(OTHER_DIR);
        assignReplica(OTHER_DIR);
        unfenceBroker();

        assertEquals(NO_LEADER, partition().leader,
            "A replica whose log directory is gone must not be elected from the ELR");
    }

    private PartitionRegistration partition() {
        return ctx.replicationControl.getPartition(fooId, 0);
    }
}
