package insync.controllers;

import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** How records are read, as it was in Kafka 4.0. */
final class Reader {
  private static final int MAX_BATCH = 1 << 23;

  private Reader() {}

  static RecordsIterator<ApiMessageAndVersion> of(MemoryRecords records) {
    return new RecordsIterator<>(
        records, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), MAX_BATCH, true);
  }
}
