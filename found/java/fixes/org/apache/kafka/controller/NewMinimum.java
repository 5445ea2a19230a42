package org.apache.kafka.controller;

import java.lang.reflect.Field;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * What the fix minimum-in-new-version adds: a ClearElrRecord is a new partition epoch of each
 * partition of its topic, also of those without an ELR, as it is of the others today.
 */
public final class NewMinimum {
  private NewMinimum() {}

  /**
   * Replaces each partition of the topic that Kafka leaves as it is by one with the next partition
   * epoch. What the controller keeps of a topic is private to its class.
   */
  public static void raisePartitionEpochs(Object topic) throws ReflectiveOperationException {
    Uuid id = (Uuid) field(topic, "id");
    Map<Integer, PartitionRegistration> parts = parts(topic);
    for (int partitionId : parts.keySet().stream().toList()) {
      PartitionRegistration partition = parts.get(partitionId);
      if (isLeftAsItIs(partition)) {
        parts.put(partitionId, inNewVersion(id, partitionId, partition));
      }
    }
  }

  /** The partitions of a topic, by their numbers. */
  @SuppressWarnings("unchecked")
  public static Map<Integer, PartitionRegistration> parts(Object topic)
      throws ReflectiveOperationException {
    return (Map<Integer, PartitionRegistration>) field(topic, "parts");
  }

  /** A field of what the controller keeps of a topic. */
  public static Object field(Object topic, String name) throws ReflectiveOperationException {
    Field field = topic.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(topic);
  }

  /** Whether Kafka leaves it as it is: it has no ELR, and no last known one. */
  public static boolean isLeftAsItIs(PartitionRegistration partition) {
    return partition.elr.length == 0 && partition.lastKnownElr.length == 0;
  }

  /** The same partition in the next partition epoch. */
  public static PartitionRegistration inNewVersion(
      Uuid topicId, int partitionId, PartitionRegistration partition) {
    return partition.merge(
        new PartitionChangeRecord().setTopicId(topicId).setPartitionId(partitionId));
  }
}
