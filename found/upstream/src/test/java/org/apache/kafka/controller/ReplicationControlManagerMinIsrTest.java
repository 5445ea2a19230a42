package org.apache.kafka.controller;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.metadata.Replicas;

import org.junit.jupiter.api.Test;

import java.util.List;

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * The methods belong in ReplicationControlManagerTest.
 */
public class ReplicationControlManagerMinIsrTest {
    /**
     * The leader has sent its request when min.insync.replicas was 1. The response may reach it before its metadata have
     * the new value, and it commits alone. So a replica which it drops does not have every committed record.
     */
    @Test
    public void testEligibleLeaderReplicas_AlterPartitionFromBeforeMinIsrIncrease() {
        ReplicationControlTestContext ctx = new ReplicationControlTestContext("1");
        ctx.registerBrokers(1, 2);
        ctx.unfenceBrokers(1, 2);
        Uuid fooId = ctx.createTestTopic("foo", new int[] {1, 2}).topicId();

        AlterPartitionRequestData request = ctx.newAlterPartitionRequest(fooId, 1);
        ctx.setTopicConfig("foo", TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG, "2");
        ctx.alterPartition(request);

        assertEquals(List.of(), Replicas.toList(ctx.replicationControl.getPartition(fooId, 0).elr),
            "A request from before min.insync.replicas was raised must not put a replica into the ELR");
    }
}
