package insync.raft;

import java.nio.ByteBuffer;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.raft.Isolation;
import org.apache.kafka.raft.LogAppendInfo;
import org.apache.kafka.raft.LogFetchInfo;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RawSnapshotReader;
import org.apache.kafka.snapshot.RawSnapshotWriter;

/**
 * Kafka's KafkaRaftLog in the folder that a disk is now. Whatever writes has a folder of its own
 * before. A read gives one batch.
 */
record FileLog(FileDisk disk) implements RaftLog {
  @Override
  public LogAppendInfo appendAsLeader(Records records, int epoch) {
    LogAppendInfo info = disk.own().appendAsLeader(records, epoch);
    disk.readFiles();
    return info;
  }

  @Override
  public LogAppendInfo appendAsFollower(Records records, int epoch) {
    LogAppendInfo info = disk.own().appendAsFollower(records, epoch);
    disk.readFiles();
    return info;
  }

  @Override
  public LogFetchInfo read(long start, Isolation isolation, int maxBytes) {
    LogFetchInfo found = disk.present().read(start, isolation, 1);
    ByteBuffer bytes = ByteBuffer.allocate(found.records.sizeInBytes());
    for (RecordBatch batch : found.records.batches()) {
      batch.writeTo(bytes);
    }
    bytes.flip();
    return new LogFetchInfo(MemoryRecords.readableRecords(bytes), found.startOffsetMetadata);
  }

  @Override
  public void truncateTo(long offset) {
    disk.own().truncateTo(offset);
    disk.readFiles();
  }

  @Override
  public boolean truncateToLatestSnapshot() {
    boolean isTruncated = disk.own().truncateToLatestSnapshot();
    disk.readFiles();
    return isTruncated;
  }

  @Override
  public void initializeLeaderEpoch(int epoch) {
    disk.own().initializeLeaderEpoch(epoch);
  }

  @Override
  public void updateHighWatermark(LogOffsetMetadata offset) {
    disk.own().updateHighWatermark(offset);
  }

  @Override
  public void flush(boolean forceFlushActiveSegment) {
    disk.present().flush(forceFlushActiveSegment);
  }

  @Override
  public boolean maybeClean() {
    return false;
  }

  @Override
  public int lastFetchedEpoch() {
    return disk.present().lastFetchedEpoch();
  }

  @Override
  public OffsetAndEpoch endOffsetForEpoch(int epoch) {
    return disk.present().endOffsetForEpoch(epoch);
  }

  @Override
  public LogOffsetMetadata endOffset() {
    return disk.present().endOffset();
  }

  @Override
  public LogOffsetMetadata highWatermark() {
    return disk.present().highWatermark();
  }

  @Override
  public long startOffset() {
    return disk.present().startOffset();
  }

  @Override
  public TopicPartition topicPartition() {
    return disk.present().topicPartition();
  }

  @Override
  public Uuid topicId() {
    return disk.present().topicId();
  }

  // Snapshots, of which no world has any

  @Override
  public boolean deleteBeforeSnapshot(OffsetAndEpoch id) {
    return disk.own().deleteBeforeSnapshot(id);
  }

  @Override
  public Optional<RawSnapshotWriter> createNewSnapshot(OffsetAndEpoch id) {
    return disk.own().createNewSnapshot(id);
  }

  @Override
  public Optional<RawSnapshotWriter> createNewSnapshotUnchecked(OffsetAndEpoch id) {
    return disk.own().createNewSnapshotUnchecked(id);
  }

  @Override
  public Optional<RawSnapshotReader> readSnapshot(OffsetAndEpoch id) {
    return disk.present().readSnapshot(id);
  }

  @Override
  public Optional<RawSnapshotReader> latestSnapshot() {
    return disk.present().latestSnapshot();
  }

  @Override
  public Optional<OffsetAndEpoch> latestSnapshotId() {
    return disk.present().latestSnapshotId();
  }

  @Override
  public Optional<OffsetAndEpoch> earliestSnapshotId() {
    return disk.present().earliestSnapshotId();
  }

  @Override
  public void onSnapshotFrozen(OffsetAndEpoch id) {}
}
