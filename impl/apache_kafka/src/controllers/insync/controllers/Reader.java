package insync.controllers;

import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** How records are read, as it is since Kafka 4.1. */
final class Reader {
  private static final int MAX_BATCH = 1 << 23;

  private Reader() {}

  static RecordsIterator<ApiMessageAndVersion> of(MemoryRecords records) {
    return new RecordsIterator<>(
        records,
        MetadataRecordSerde.INSTANCE,
        BufferSupplier.create(),
        MAX_BATCH,
        true,
        new LogContext());
  }
}
