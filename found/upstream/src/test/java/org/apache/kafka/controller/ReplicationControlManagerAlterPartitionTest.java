package org.apache.kafka.controller;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.metadata.Replicas;

import org.junit.jupiter.api.Test;

import java.util.List;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

/**
 * The methods belong in ReplicationControlManagerTest.
 */
public class ReplicationControlManagerAlterPartitionTest {
    @Test
    public void testEarlierCopyOfRejectedAlterPartitionIsRejected() {
        ReplicationControlTestContext ctx = new ReplicationControlTestContext("2");
        ctx.registerBrokers(1, 2, 3);
        ctx.unfenceBrokers(1, 2, 3);
        Uuid fooId = ctx.createTestTopic("foo", new int[] {1, 2, 3}).topicId();
        ctx.fenceBrokers(3);
        ctx.unfenceBrokers(3);

        // The leader wants 3 back in the ISR. Its request hangs in the connection, and 3 is fenced once more.
        AlterPartitionRequestData request = ctx.newAlterPartitionRequest(fooId, 1, 2, 3);
        ctx.fenceBrokers(3);

        // After controller.socket.timeout.ms NodeToControllerRequestThread sends the same request on a new connection.
        // The leader takes the answer for the end of it: it no longer waits for 3 (Partition#handleAlterPartitionError).
        assertEquals(Errors.INELIGIBLE_REPLICA, ctx.alterPartition(request));
        ctx.unfenceBrokers(3);

        // What was written to the first connection arrives.
        assertNotEquals(Errors.NONE, ctx.alterPartition(request),
            "A request must not be accepted after a copy of it was rejected");
        assertEquals(List.of(1, 2), Replicas.toList(ctx.replicationControl.getPartition(fooId, 0).isr));
    }
}
