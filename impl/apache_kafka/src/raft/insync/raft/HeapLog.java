package insync.raft;

import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.raft.Isolation;
import org.apache.kafka.raft.LogAppendInfo;
import org.apache.kafka.raft.LogFetchInfo;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RawSnapshotReader;
import org.apache.kafka.snapshot.RawSnapshotWriter;

/**
 * The log of the metadata in memory, without snapshots. A read gives as many batches as the disk
 * says.
 *
 * <p>It says what KafkaRaftLog says of its UnifiedLog and LeaderEpochFileCache, and refuses what
 * that refuses.
 */
public final class HeapLog implements org.apache.kafka.raft.RaftLog {
  private final Disk disk;
  private LogOffsetMetadata highWatermark = new LogOffsetMetadata(0);

  /** The log on this disk. */
  public HeapLog(Disk disk) {
    this.disk = disk;
  }

  private int end() {
    return disk.epochs.size();
  }

  private LogAppendInfo append(Records records) {
    long first = end();
    for (MutableRecordBatch batch : ((MemoryRecords) records).batches()) {
      if (batch.baseOffset() != end()) {
        throw new IllegalStateException("batch " + batch + " at " + end());
      }
      ByteBuffer copy = ByteBuffer.allocate(batch.sizeInBytes());
      batch.writeTo(copy);
      copy.flip();
      disk.batches.add(MemoryRecords.readableRecords(copy));
      disk.offsets.add(end());
      while (end() <= batch.lastOffset()) {
        disk.epochs.add(batch.partitionLeaderEpoch());
      }
    }
    return new LogAppendInfo(first, end() - 1);
  }

  @Override
  public LogAppendInfo appendAsLeader(Records records, int epoch) {
    return append(records);
  }

  /** As releases before 4.1 call it. */
  public LogAppendInfo appendAsFollower(Records records) {
    return append(records);
  }

  /** As releases since 4.1 call it, in which records of later epochs are refused. */
  public LogAppendInfo appendAsFollower(Records records, int epoch) {
    return append(records);
  }

  /** As older releases call it. */
  public LogFetchInfo read(long start, Isolation isolation) {
    return read(start, isolation, Integer.MAX_VALUE);
  }

  /** At least one batch, if there is one, whatever its size: so reads KafkaRaftLog. */
  public LogFetchInfo read(long start, Isolation isolation, int maxBytes) {
    long limit = isolation == Isolation.COMMITTED ? highWatermark.offset() : end();
    Records found = start < limit ? records(batchAt(start), (int) limit) : MemoryRecords.EMPTY;
    return new LogFetchInfo(found, new LogOffsetMetadata(start));
  }

  /** Which batch has the record at this offset. */
  private int batchAt(long offset) {
    int batch = Collections.binarySearch(disk.offsets, (int) offset);
    return batch < 0 ? -batch - 2 : batch;
  }

  private Records records(int first, int limit) {
    int last = first + 1;
    while (last < disk.batches.size()
        && last - first < disk.batchesPerRead
        && disk.offsets.get(last) < limit) {
      last++;
    }
    List<MemoryRecords> found = disk.batches.subList(first, last);
    if (found.size() == 1) {
      return found.get(0);
    }
    ByteBuffer all = ByteBuffer.allocate(found.stream().mapToInt(MemoryRecords::sizeInBytes).sum());
    found.forEach(one -> all.put(one.buffer()));
    all.flip();
    return MemoryRecords.readableRecords(all);
  }

  @Override
  public int lastFetchedEpoch() {
    return disk.epochs.isEmpty() ? 0 : disk.epochs.get(end() - 1);
  }

  @Override
  public OffsetAndEpoch endOffsetForEpoch(int epoch) {
    int known = -1;
    int end = 0;
    while (end < end() && disk.epochs.get(end) <= epoch) {
      known = disk.epochs.get(end++);
    }
    return new OffsetAndEpoch(end, known < 0 ? epoch : known);
  }

  @Override
  public LogOffsetMetadata endOffset() {
    return new LogOffsetMetadata(end());
  }

  @Override
  public LogOffsetMetadata highWatermark() {
    return highWatermark;
  }

  @Override
  public long startOffset() {
    return 0;
  }

  @Override
  public void initializeLeaderEpoch(int epoch) {}

  @Override
  public void truncateTo(long offset) {
    if (offset < highWatermark.offset()) {
      throw new IllegalArgumentException("truncates below the high watermark");
    }
    int batches = offset == end() ? disk.batches.size() : batchAt(offset);
    int first = batches == disk.offsets.size() ? end() : disk.offsets.get(batches);
    disk.batches.subList(batches, disk.batches.size()).clear();
    disk.offsets.subList(batches, disk.offsets.size()).clear();
    disk.epochs.subList(first, disk.epochs.size()).clear();
  }

  @Override
  public void updateHighWatermark(LogOffsetMetadata offset) {
    highWatermark = offset;
  }

  @Override
  public void flush(boolean forceFlushActiveSegment) {}

  @Override
  public boolean maybeClean() {
    return false;
  }

  @Override
  public TopicPartition topicPartition() {
    return new TopicPartition("__cluster_metadata", 0);
  }

  @Override
  public Uuid topicId() {
    return Uuid.METADATA_TOPIC_ID;
  }

  @Override
  public boolean truncateToLatestSnapshot() {
    return false;
  }

  @Override
  public boolean deleteBeforeSnapshot(OffsetAndEpoch id) {
    return false;
  }

  @Override
  public Optional<RawSnapshotWriter> createNewSnapshot(OffsetAndEpoch id) {
    return Optional.empty();
  }

  @Override
  public Optional<RawSnapshotWriter> createNewSnapshotUnchecked(OffsetAndEpoch id) {
    return Optional.empty();
  }

  @Override
  public Optional<RawSnapshotReader> readSnapshot(OffsetAndEpoch id) {
    return Optional.empty();
  }

  @Override
  public Optional<RawSnapshotReader> latestSnapshot() {
    return Optional.empty();
  }

  @Override
  public Optional<OffsetAndEpoch> latestSnapshotId() {
    return Optional.empty();
  }

  @Override
  public Optional<OffsetAndEpoch> earliestSnapshotId() {
    return Optional.empty();
  }

  @Override
  public void onSnapshotFrozen(OffsetAndEpoch id) {}

  /** Nothing is open. */
  public void close() {}
}
