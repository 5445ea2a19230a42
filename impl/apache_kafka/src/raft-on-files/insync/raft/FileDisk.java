package insync.raft;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Optional;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.raft.ElectionState;
import org.apache.kafka.raft.QuorumStateStore;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.server.common.KRaftVersion;

/**
 * A disk that is a folder of Kafka's own files. Of what they have it keeps a copy in memory, which
 * is read from them after whatever writes.
 */
final class FileDisk extends Disk {
  private final int voter;
  private Folder folder = new Folder();

  /** Whether no other world has the folder. */
  private boolean isOwn = true;

  FileDisk(int number, int voter) {
    super(number, 1);
    this.voter = voter;
  }

  @Override
  public Disk next() {
    return new FileDisk(number + 1, voter);
  }

  @Override
  public void share() {
    isOwn = false;
  }

  @Override
  public org.apache.kafka.raft.RaftLog log() {
    folder = folder.copy();
    isOwn = true;
    folder.open(voter);
    readFiles();
    return new FileLog(this);
  }

  @Override
  public QuorumStateStore store() {
    return new Store(this);
  }

  /** The log as it is. */
  KafkaRaftLog present() {
    return folder.log();
  }

  /** The log, to be written: in files that no other world has. */
  KafkaRaftLog own() {
    if (!isOwn) {
      Folder copy = folder.copy();
      copy.open(voter).updateHighWatermark(present().highWatermark());
      folder = copy;
      isOwn = true;
    }
    return present();
  }

  /** What the files have now. */
  void readFiles() {
    batches.clear();
    offsets.clear();
    epochs.clear();
    for (File segment : folder.segments()) {
      try (FileRecords records = FileRecords.open(segment, false)) {
        for (FileChannelRecordBatch batch : records.batches()) {
          ByteBuffer bytes = ByteBuffer.allocate(batch.sizeInBytes());
          batch.writeTo(bytes);
          bytes.flip();
          batches.add(MemoryRecords.readableRecords(bytes));
          offsets.add((int) batch.baseOffset());
          while (epochs.size() <= batch.lastOffset()) {
            epochs.add(batch.partitionLeaderEpoch());
          }
        }
      } catch (IOException problem) {
        throw new UncheckedIOException(problem);
      }
    }
    election = folder.store().readElectionState().orElse(null);
  }

  /** Kafka's quorum-state file in the folder that the disk is now. */
  private record Store(FileDisk disk) implements QuorumStateStore {
    @Override
    public Optional<ElectionState> readElectionState() {
      return disk.folder.store().readElectionState();
    }

    @Override
    public void writeElectionState(ElectionState latest, KRaftVersion version) {
      disk.own();
      disk.folder.store().writeElectionState(latest, version);
      disk.readFiles();
    }

    @Override
    public Path path() {
      return disk.folder.store().path();
    }

    @Override
    public void clear() {
      disk.own();
      disk.folder.store().clear();
      disk.readFiles();
    }
  }
}
