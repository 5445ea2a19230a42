package org.apache.kafka.controller;

import java.util.Set;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;

/** ReplicationControlManager.createTopics, as Kafka 4.0 has it. */
final class Creation {
  private Creation() {}

  static ControllerResult<CreateTopicsResponseData> of(
      ReplicationControlManager manager,
      ControllerRequestContext context,
      CreateTopicsRequestData request,
      String topic) {
    return manager.createTopics(context, request, Set.of(topic));
  }
}
