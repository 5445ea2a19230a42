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
import org.apache.kafka.raft.ValidOffsetAndEpoch;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RawSnapshotReader;
import org.apache.kafka.snapshot.RawSnapshotWriter;

/**
 * The log of the metadata in memory, with its snapshots. A read gives as many batches as the disk
 * says.
 *
 * <p>It says what KafkaRaftLog says of its UnifiedLog and LeaderEpochFileCache, and refuses what
 * that refuses.
 */
public final class HeapLog implements org.apache.kafka.raft.RaftLog {
  private final Disk disk;
  private LogOffsetMetadata highWatermark;

  /** The log on this disk. */
  public HeapLog(Disk disk) {
    this.disk = disk;
    highWatermark = new LogOffsetMetadata(disk.start);
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
    if (start < disk.start) {
      throw new IllegalStateException("reads at " + start + " before " + disk.start);
    }
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
    int end = disk.start;
    while (end < end() && disk.epochs.get(end) <= epoch) {
      known = disk.epochs.get(end++);
    }
    if (known >= 0) {
      return new OffsetAndEpoch(end, known);
    }
    return earliestSnapshotId()
        .filter(earliest -> earliest.offset() == disk.start)
        .orElse(new OffsetAndEpoch(end, epoch));
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
    return disk.start;
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
    OffsetAndEpoch latest = latestSnapshotId().orElse(new OffsetAndEpoch(0, 0));
    int own = lastFetchedEpoch();
    if (latest.epoch() < own || latest.epoch() == own && latest.offset() <= end()) {
      return false;
    }
    disk.batches.clear();
    disk.offsets.clear();
    disk.epochs.clear();
    for (int offset = 0; offset < latest.offset(); offset++) {
      disk.epochs.add(latest.epoch());
    }
    startAt(latest);
    highWatermark = new LogOffsetMetadata(disk.start);
    return true;
  }

  private void startAt(OffsetAndEpoch snapshot) {
    disk.start = (int) snapshot.offset();
    disk.snapshots.headMap(snapshot, false).clear();
  }

  @Override
  public boolean deleteBeforeSnapshot(OffsetAndEpoch id) {
    if (!disk.snapshots.containsKey(id) || id.offset() <= disk.start) {
      return false;
    }
    startAt(id);
    return true;
  }

  @Override
  public Optional<RawSnapshotWriter> createNewSnapshot(OffsetAndEpoch id) {
    if (id.offset() < disk.start) {
      return Optional.empty();
    }
    if (id.offset() > highWatermark.offset()) {
      throw new IllegalArgumentException("a snapshot past the high watermark");
    }
    if (validateOffsetAndEpoch(id.offset(), id.epoch()).kind() != ValidOffsetAndEpoch.Kind.VALID) {
      throw new IllegalArgumentException("a snapshot that is not of this log");
    }
    if (id.offset() < end() && !disk.offsets.contains((int) id.offset())) {
      throw new IllegalArgumentException("a snapshot that ends within a batch");
    }
    return createNewSnapshotUnchecked(id);
  }

  @Override
  public Optional<RawSnapshotWriter> createNewSnapshotUnchecked(OffsetAndEpoch id) {
    return disk.snapshots.containsKey(id)
        ? Optional.empty()
        : Optional.of(new HeapSnapshot.Writer(disk, id));
  }

  @Override
  public Optional<RawSnapshotReader> readSnapshot(OffsetAndEpoch id) {
    return Optional.ofNullable(disk.snapshots.get(id));
  }

  @Override
  public Optional<RawSnapshotReader> latestSnapshot() {
    return latestSnapshotId().flatMap(this::readSnapshot);
  }

  @Override
  public Optional<OffsetAndEpoch> latestSnapshotId() {
    return disk.snapshots.isEmpty() ? Optional.empty() : Optional.of(disk.snapshots.lastKey());
  }

  @Override
  public Optional<OffsetAndEpoch> earliestSnapshotId() {
    return disk.snapshots.isEmpty() ? Optional.empty() : Optional.of(disk.snapshots.firstKey());
  }

  @Override
  public void onSnapshotFrozen(OffsetAndEpoch id) {}

  /** Nothing is open. */
  public void close() {}
}
