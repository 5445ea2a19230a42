package kafka.server.metadata;

import kafka.coordinator.transaction.TransactionCoordinator;
import kafka.log.LogManager;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.share.SharePartitionManager;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.coordinator.share.ShareCoordinator;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.LogDeltaManifest;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.publisher.AclPublisher;
import org.apache.kafka.metadata.publisher.DelegationTokenPublisher;
import org.apache.kafka.metadata.publisher.DynamicClientQuotaPublisher;
import org.apache.kafka.metadata.publisher.DynamicTopicClusterQuotaPublisher;
import org.apache.kafka.metadata.publisher.ScramPublisher;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.fault.FaultHandler;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;

/**
 * The methods belong in BrokerMetadataPublisherTest.
 */
public class BrokerMetadataPublisherOrderTest {
    /**
     * While it applies the topics of a delta, a leader may move the high watermark. Whether it may depends on
     * min.insync.replicas, and the controller has gone by the new value.
     */
    @Test
    public void testConfigurationIsAppliedBeforeTopics() {
        ReplicaManager replicaManager = mock(ReplicaManager.class);
        DynamicConfigPublisher dynamicConfigPublisher = mock(DynamicConfigPublisher.class);
        BrokerMetadataPublisher metadataPublisher = createPublisher(replicaManager, dynamicConfigPublisher);

        Uuid topicId = Uuid.randomUuid();
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        delta.replay(new TopicRecord().setName("foo").setTopicId(topicId));
        delta.replay(new PartitionRecord().
            setTopicId(topicId).setPartitionId(0).setReplicas(List.of(0, 1)).setIsr(List.of(0, 1)).setLeader(0));
        MetadataImage image = publish(metadataPublisher, delta);

        // min.insync.replicas is raised, then broker 1 shuts down. Broker 0 gets both in one delta.
        delta = new MetadataDelta.Builder().setImage(image).build();
        delta.replay(new ConfigRecord().
            setResourceType(ConfigResource.Type.TOPIC.id()).
            setResourceName("foo").
            setName(TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG).
            setValue("2"));
        delta.replay(new PartitionChangeRecord().
            setTopicId(topicId).setPartitionId(0).setIsr(List.of(0)).setEligibleLeaderReplicas(List.of(1)));

        List<Class<?>> calls = new ArrayList<>();
        doAnswer(invocation -> calls.add(ReplicaManager.class)).when(replicaManager).applyDelta(any(), any());
        doAnswer(invocation -> calls.add(DynamicConfigPublisher.class)).
            when(dynamicConfigPublisher).onMetadataUpdate(any(), any());
        publish(metadataPublisher, delta);

        assertEquals(DynamicConfigPublisher.class, calls.get(0),
            "The configuration in a delta must be applied before its topics");
    }

    private static MetadataImage publish(BrokerMetadataPublisher metadataPublisher, MetadataDelta delta) {
        MetadataImage image = delta.apply(MetadataProvenance.EMPTY);
        metadataPublisher.onMetadataUpdate(delta, image,
            LogDeltaManifest.newBuilder().
                provenance(MetadataProvenance.EMPTY).
                leaderAndEpoch(LeaderAndEpoch.UNKNOWN).
                numBatches(1).
                elapsedNs(100).
                numBytes(42).
                build());
        return image;
    }

    private static BrokerMetadataPublisher createPublisher(
        ReplicaManager replicaManager,
        DynamicConfigPublisher dynamicConfigPublisher
    ) {
        FaultHandler faultHandler = mock(FaultHandler.class);
        return new BrokerMetadataPublisher(
            mock(KafkaConfig.class),
            new KRaftMetadataCache(0, () -> KRaftVersion.KRAFT_VERSION_1),
            mock(LogManager.class),
            replicaManager,
            mock(GroupCoordinator.class),
            mock(TransactionCoordinator.class),
            mock(ShareCoordinator.class),
            mock(SharePartitionManager.class),
            dynamicConfigPublisher,
            mock(DynamicClientQuotaPublisher.class),
            mock(DynamicTopicClusterQuotaPublisher.class),
            mock(ScramPublisher.class),
            mock(DelegationTokenPublisher.class),
            mock(AclPublisher.class),
            faultHandler,
            faultHandler
        );
    }
}
