package org.apache.kafka.controller;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.CreateTopicsRequestData;

/** A call that differs between releases, as it was until Kafka 4.2. */
final class ControllerRelease {
  private ControllerRelease() {}

  static CompletableFuture<?> creates(
      QuorumController controller,
      ControllerRequestContext context,
      CreateTopicsRequestData topics) {
    return controller.createTopics(context, topics, Set.of());
  }
}
