package org.apache.kafka.queue;

import java.util.OptionalLong;
import java.util.function.Function;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;

/**
 * Stands in the place of Kafka's class of this name, as it was in Kafka 4.0: it comes earlier on
 * the class path, for QuorumController builds its queue itself.
 */
public final class KafkaEventQueue extends HeldEvents {
  /** As Kafka's; the other things are for its thread. */
  public KafkaEventQueue(Time time, LogContext log, String threadNamePrefix) {
    super(time);
  }

  @Override
  public void enqueue(
      EventInsertionType type, String tag, Function<OptionalLong, OptionalLong> time, Event event) {
    hold(type, tag, event);
  }
}
