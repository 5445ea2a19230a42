package org.apache.kafka.controller;

import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.PartitionRegistration;

/** What the fix elr-index-emptied adds: who leaves an ELR by a ClearElrRecord leaves the index. */
public final class ElrIndex {
  private static final int[] NOBODY = {};

  private ElrIndex() {}

  /**
   * Tells the index what replayClearTopicElrs is about to do to the partitions of a topic.
   *
   * @param index BrokersToElrs, which only this package may name
   */
  public static void empty(Object index, Uuid topic, Map<Integer, PartitionRegistration> parts) {
    parts.forEach((id, part) -> ((BrokersToElrs) index).update(topic, id, part.elr, NOBODY));
  }
}
