package insync.raft;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.raft.ElectionState;

/** What outlives a voter's process: its log, and the quorum-state file. */
public final class Disk {
  /** How many disks the voter has lost before this one. */
  final int number;

  /** How many batches a read gives at most. */
  final int batchesPerRead;

  final List<MemoryRecords> batches = new ArrayList<>();

  /** The offset of the first record of each batch. */
  final List<Integer> offsets = new ArrayList<>();

  final List<Integer> epochs = new ArrayList<>();

  /** What the quorum-state file says; null where there is none. */
  ElectionState election;

  /** An empty disk. */
  public Disk(int number, int batchesPerRead) {
    this.number = number;
    this.batchesPerRead = batchesPerRead;
  }

  /** The next disk of a voter that has lost this one, empty. */
  public Disk next() {
    return new Disk(number + 1, batchesPerRead);
  }

  /**
   * The directory id in its meta.properties, which another disk of the same voter does not have.
   */
  public Uuid directory(int voter) {
    return new Uuid(7 + number, voter);
  }

  /** The epoch of each record. */
  public List<Integer> epochs() {
    return List.copyOf(epochs);
  }

  /** The batches of its log. */
  public List<MemoryRecords> batches() {
    return List.copyOf(batches);
  }

  /** The offset of the first record of each batch. */
  public List<Integer> offsets() {
    return List.copyOf(offsets);
  }
}
