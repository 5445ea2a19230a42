package org.apache.kafka.controller;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;

import org.junit.jupiter.api.Test;

import java.util.List;

import static org.apache.kafka.metadata.LeaderConstants.NO_LEADER;
import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * The methods belong in ReplicationControlManagerTest.
 */
public class ReplicationControlManagerReassignmentTest {
    @Test
    public void testEligibleLeaderReplicas_ReplicaAddedAgainIsNotElected() {
        ReplicationControlTestContext ctx = new ReplicationControlTestContext("2");
        ctx.registerBrokers(1, 2, 3, 4);
        ctx.unfenceBrokers(1, 2, 3, 4);
        Uuid fooId = ctx.createTestTopic("foo", new int[] {2, 3, 4}).topicId();
        ctx.fenceBrokers(3, 4);

        // 2 is replaced by 1, which completes when 1 has caught up. Broker 2 then deletes its log.
        ctx.reassign("foo", 1, 3, 4);
        assertEquals(Errors.NEW_LEADER_ELECTED, ctx.alterPartition(ctx.newAlterPartitionRequest(fooId, 2, 1)));
        PartitionRegistration partition = ctx.replicationControl.getPartition(fooId, 0);
        assertEquals(List.of(1, 3, 4), Replicas.toList(partition.replicas));
        assertEquals(List.of(1), Replicas.toList(partition.isr));

        // 2 is added again. It is not in the ISR, for it has yet to fetch.
        ctx.reassign("foo", 2, 3, 4);
        ctx.fenceBrokers(1);

        partition = ctx.replicationControl.getPartition(fooId, 0);
        assertEquals(NO_LEADER, partition.leader,
            "A replica which has not been in sync since it was added must not be elected");
    }
}
