package org.apache.kafka.controller;

import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.requests.AlterPartitionRequest;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.server.common.MetadataVersion;

import org.junit.jupiter.api.Test;

import java.util.List;

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * A reassignment which removes a replica of the ISR or of the ELR, while the ISR is below min.insync.replicas.
 * The methods belong in PartitionChangeBuilderTest.
 */
public class PartitionChangeBuilderReassignmentTest {
    private static final Uuid TOPIC_ID = Uuid.fromString("FbrrdcfiR-KC2CPSTHaJrg");

    private static PartitionChangeBuilder createBuilder(PartitionRegistration partition) {
        return new PartitionChangeBuilder(partition, TOPIC_ID, 0, r -> true, MetadataVersion.latestTesting(), 2, true).
            setDefaultDirProvider(brokerId -> DirectoryId.UNASSIGNED);
    }

    private static PartitionRegistration apply(PartitionRegistration partition, PartitionChangeBuilder builder) {
        return partition.merge((PartitionChangeRecord) builder.build().get().message());
    }

    @Test
    public void testEligibleLeaderReplicas_CompletedReassignmentRemovesReplicaFromElr() {
        // 2 is being replaced by 4, while 1 and 3 are out of sync.
        PartitionRegistration partition = new PartitionRegistration.Builder().
            setReplicas(new int[] {4, 1, 3, 2}).
            setDirectories(DirectoryId.unassignedArray(4)).
            setAddingReplicas(new int[] {4}).
            setRemovingReplicas(new int[] {2}).
            setIsr(new int[] {2}).
            setElr(new int[] {1, 3}).
            setLeader(2).
            setLeaderRecoveryState(LeaderRecoveryState.RECOVERED).
            setLeaderEpoch(100).
            setPartitionEpoch(200).
            build();

        // 4 has caught up.
        partition = apply(partition, createBuilder(partition).setTargetIsrWithBrokerStates(
            AlterPartitionRequest.newIsrToSimpleNewIsrWithBrokerEpochs(List.of(2, 4))));

        assertEquals(List.of(4, 1, 3), Replicas.toList(partition.replicas));
        assertEquals(List.of(4), Replicas.toList(partition.isr));
        assertEquals(List.of(1, 3), Replicas.toList(partition.elr),
            "A replica which the reassignment removes must not be in the ELR");
    }

    @Test
    public void testEligibleLeaderReplicas_CancelledReassignmentRemovesReplicaFromElr() {
        // 1 and 2 are being replaced by 3 and 4, while 2 and 4 are out of sync.
        PartitionRegistration partition = new PartitionRegistration.Builder().
            setReplicas(new int[] {3, 4, 1, 2}).
            setDirectories(DirectoryId.unassignedArray(4)).
            setAddingReplicas(new int[] {3, 4}).
            setRemovingReplicas(new int[] {1, 2}).
            setIsr(new int[] {1, 3}).
            setLeader(1).
            setLeaderRecoveryState(LeaderRecoveryState.RECOVERED).
            setLeaderEpoch(100).
            setPartitionEpoch(200).
            build();

        // As in ReplicationControlManager#cancelPartitionReassignment.
        PartitionReassignmentRevert revert = new PartitionReassignmentRevert(partition);
        partition = apply(partition, createBuilder(partition).
            setTargetIsr(revert.isr()).
            setTargetReplicas(revert.replicas()).
            setTargetRemoving(List.of()).
            setTargetAdding(List.of()));

        assertEquals(List.of(1, 2), Replicas.toList(partition.replicas));
        assertEquals(List.of(1), Replicas.toList(partition.isr));
        assertEquals(List.of(), Replicas.toList(partition.elr),
            "A replica which the cancelled reassignment had added must not be in the ELR");
    }
}
