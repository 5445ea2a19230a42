package insync.metadata;

import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.image.LocalReplicaChanges;
import org.apache.kafka.image.TopicsDelta;
import org.apache.kafka.image.TopicsImage;

/**
 * What Kafka's classes take for a change of a broker's partition: where the log of metadata brings it, and where a
 * snapshot does. Broker 1 leads replicas 1, 2 and 3. A line for each: broker, source, change, and what is to be done.
 */
public final class Snapshots {
    private static final Uuid TOPIC = Uuid.randomUuid();
    private static final Uuid DIRECTORY = Uuid.randomUuid();

    private Snapshots() {}

    public static void main(String[] arguments) {
        TopicsImage known = snapshot(TopicsImage.EMPTY, 5, 1, 2, 3).apply();
        TopicsDelta nothing = new TopicsDelta(known);
        PartitionChangeRecord away = new PartitionChangeRecord().setTopicId(TOPIC).setPartitionId(0);
        away.setReplicas(List.of(1, 2)).setIsr(List.of(1, 2)).setDirectories(List.of(DIRECTORY, DIRECTORY));
        TopicsDelta removed = new TopicsDelta(known);
        removed.replay(away.setLeader(1));
        say(1, "log nothing", nothing);
        say(1, "snapshot nothing", snapshot(known, 5, 1, 2, 3));
        say(3, "log removed", removed);
        say(3, "snapshot removed", snapshot(known, 6, 1, 2));
    }

    /** All that a snapshot has of the topic. */
    private static TopicsDelta snapshot(TopicsImage before, int partitionEpoch, Integer... replicas) {
        TopicsDelta delta = new TopicsDelta(before);
        delta.replay(new TopicRecord().setName("topic").setTopicId(TOPIC));
        delta.replay(
                new PartitionRecord()
                        .setTopicId(TOPIC)
                        .setPartitionId(0)
                        .setReplicas(List.of(replicas))
                        .setIsr(List.of(replicas))
                        .setDirectories(List.of(replicas).stream().map(id -> DIRECTORY).toList())
                        .setLeader(1)
                        .setLeaderEpoch(partitionEpoch)
                        .setPartitionEpoch(partitionEpoch));
        delta.finishSnapshot();
        return delta;
    }

    private static void say(int broker, String what, TopicsDelta delta) {
        LocalReplicaChanges changes = delta.localChanges(broker);
        System.out.println(
                broker
                        + " "
                        + what
                        + ": leads "
                        + changes.leaders().keySet()
                        + ", follows "
                        + changes.followers().keySet()
                        + ", deletes "
                        + changes.deletes());
    }
}
