package org.apache.kafka.controller;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * What the fix refusal-in-new-version adds; the package is Kafka's, because ControllerResult's is.
 */
public final class Refusals {
  private Refusals() {}

  /**
   * The same result with one more record for each partition that is answered INELIGIBLE_REPLICA: a
   * change of nothing, whose replay raises the partition epoch.
   */
  public static Object inNewVersion(Object given) {
    ControllerResult<?> result = (ControllerResult<?>) given;
    AlterPartitionResponseData response = (AlterPartitionResponseData) result.response();
    List<ApiMessageAndVersion> records = new ArrayList<>(result.records());
    for (AlterPartitionResponseData.TopicData topic : response.topics()) {
      for (AlterPartitionResponseData.PartitionData partition : topic.partitions()) {
        if (partition.errorCode() == Errors.INELIGIBLE_REPLICA.code()) {
          PartitionChangeRecord record =
              new PartitionChangeRecord()
                  .setTopicId(topic.topicId())
                  .setPartitionId(partition.partitionIndex());
          records.add(new ApiMessageAndVersion(record, (short) 0));
        }
      }
    }
    return ControllerResult.of(records, response);
  }
}
