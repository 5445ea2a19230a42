package kafka.cluster;

import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.config.ReplicationConfigs;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.storage.internals.log.AppendOrigin;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.Optional;
import java.util.Properties;
import java.util.Set;

import scala.Option;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.Mockito.when;

/**
 * What the leader of a partition waits for before the high watermark moves. Replication factor 3, min.insync.replicas 2.
 * The methods belong in PartitionTest.
 */
public class PartitionHighWatermarkTest extends AbstractPartitionTest {
    private final int leaderId = brokerId();
    private final int replica1 = leaderId + 1;
    private final int replica2 = leaderId + 2;

    @Override
    public Properties createLogProperties(scala.collection.immutable.Map<String, String> overrides) {
        Properties logProps = super.createLogProperties(overrides);
        logProps.put(TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG, "2");
        return logProps;
    }

    @BeforeEach
    @Override
    public void setup() {
        super.setup();
        for (int replica : new int[] {leaderId, replica1, replica2}) {
            when(metadataCache().getAliveBrokerEpoch(replica)).thenReturn(Optional.of(defaultBrokerEpoch(replica)));
        }
        partition().createLogIfNotExists(true, false, offsetCheckpoints(), topicId(), Option.empty());
    }

    /**
     * Leadership goes to another replica and comes back, and both elections are in one metadata delta. What a follower
     * had fetched before may be truncated by now.
     */
    @Test
    public void testHighWatermarkDoesNotMoveByFetchesOfEarlierEpochIfAnotherReplicaLed() {
        assertTrue(makeLeader(0, 1, leaderId, replica1, replica2));
        appendRecord();
        fetchFollower(replica1, 0, 0);
        fetchFollower(replica1, 1, 0);
        fetchFollower(replica2, 0, 0);
        assertEquals(0, highWatermark());

        // In epoch 1 replica 2 led, and replica 1 has truncated to its log. Then replica 2 shut down.
        makeLeader(2, 3, leaderId, replica1);
        assertEquals(0, highWatermark(),
            "The high watermark must not move before the follower has fetched in the new leader epoch");

        fetchFollower(replica1, 0, 2);
        assertEquals(0, highWatermark());
        fetchFollower(replica1, 1, 2);
        assertEquals(1, highWatermark());
    }

    /**
     * Both followers have been out of the ISR. One is back, which the leader knows by the response to its
     * AlterPartition; the metadata follow when the next AlterPartition is in flight.
     */
    @Test
    public void testMetadataOfSamePartitionEpochKeepIsrExpandInFlight() {
        assertTrue(makeLeader(0, 1, leaderId, replica1, replica2));
        appendRecord();
        time().sleep(ReplicationConfigs.REPLICA_LAG_TIME_MAX_MS_DEFAULT + 1);
        partition().maybeShrinkIsr();
        alterPartitionManager().completeIsrUpdate(2);
        assertFalse(makeLeader(0, 2, leaderId));

        fetchFollower(replica1, 0, 0);
        alterPartitionManager().completeIsrUpdate(3);
        fetchFollower(replica2, 0, 0);
        assertHighWatermarkWaitsForIsrExpand();
    }

    /**
     * A follower is dropped from the ISR, which the leader knows by the response to its AlterPartition. It is to be
     * added again, and the metadata of the first change follow.
     */
    @Test
    public void testMetadataOfSamePartitionEpochKeepIsrExpandAfterShrink() {
        assertTrue(makeLeader(0, 2, leaderId, replica1, replica2));
        time().sleep(ReplicationConfigs.REPLICA_LAG_TIME_MAX_MS_DEFAULT + 1);
        fetchFollower(replica1, 0, 0);
        appendRecord();
        partition().maybeShrinkIsr();
        alterPartitionManager().completeIsrUpdate(3);
        fetchFollower(replica2, 0, 0);
        assertHighWatermarkWaitsForIsrExpand();
    }

    /** The ISR is {leader, replica 1} in partition epoch 3. Replica 2 is at offset 0, and the leader wants it in the ISR. */
    private void assertHighWatermarkWaitsForIsrExpand() {
        assertEquals(Set.of(leaderId, replica1), partition().partitionState().isr());
        assertEquals(Set.of(leaderId, replica1, replica2), partition().partitionState().maximalIsr());
        assertEquals(3, partition().getPartitionEpoch());
        assertEquals(1, alterPartitionManager().isrUpdates().size());

        assertFalse(makeLeader(0, 3, leaderId, replica1));
        fetchFollower(replica1, 1, 0);
        assertEquals(0, highWatermark(),
            "The high watermark must not move past a replica whose AlterPartition is in flight");

        alterPartitionManager().completeIsrUpdate(4);
        assertEquals(Set.of(leaderId, replica1, replica2), partition().partitionState().isr());
        assertEquals(0, highWatermark());
        fetchFollower(replica2, 1, 0);
        assertEquals(1, highWatermark());
    }

    private boolean makeLeader(int leaderEpoch, int partitionEpoch, int... isr) {
        PartitionRegistration partitionRegistration = new PartitionRegistration.Builder().
            setLeader(leaderId).
            setLeaderRecoveryState(LeaderRecoveryState.RECOVERED).
            setLeaderEpoch(leaderEpoch).
            setPartitionEpoch(partitionEpoch).
            setIsr(isr).
            setReplicas(new int[] {leaderId, replica1, replica2}).
            setDirectories(DirectoryId.unassignedArray(3)).
            build();
        return partition().makeLeader(partitionRegistration, false, offsetCheckpoints(), topicId(), Option.empty());
    }

    private void appendRecord() {
        MemoryRecords records = MemoryRecords.withRecords(Compression.NONE, new SimpleRecord("k1".getBytes(), "v1".getBytes()));
        partition().appendRecordsToLeader(records, AppendOrigin.CLIENT, -1, RequestLocal.withThreadConfinedCaching(),
            partition().appendRecordsToLeader$default$5(), partition().appendRecordsToLeader$default$6());
    }

    private void fetchFollower(int replicaId, long fetchOffset, int leaderEpoch) {
        FetchParams fetchParams = new FetchParams(replicaId, defaultBrokerEpoch(replicaId), 0, 1, Integer.MAX_VALUE,
            FetchIsolation.LOG_END, Optional.empty());
        FetchRequest.PartitionData fetchPartitionData = new FetchRequest.PartitionData(
            Uuid.ZERO_UUID, fetchOffset, 0, Integer.MAX_VALUE, Optional.of(leaderEpoch), Optional.empty());
        partition().fetchRecords(fetchParams, fetchPartitionData, time().milliseconds(), Integer.MAX_VALUE, true, true);
    }

    private long highWatermark() {
        return partition().localLogOrException().highWatermark();
    }
}
