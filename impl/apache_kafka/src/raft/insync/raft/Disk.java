package insync.raft;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.raft.ElectionState;
import org.apache.kafka.raft.QuorumStateStore;
import org.apache.kafka.server.common.OffsetAndEpoch;

/** What outlives a voter's process: its log with its snapshots, and the quorum-state file. */
public class Disk {
  /** What the first half of the directory id of a first disk is. Kafka reserves the least ones. */
  private static final long FIRST = 7;

  /** How many disks the voter has lost before this one. */
  final int number;

  /** How many batches a read gives at most. */
  final int batchesPerRead;

  /** The batches of the log; of those that a snapshot has replaced only the model still speaks. */
  final List<MemoryRecords> batches = new ArrayList<>();

  /** The offset of the first record of each batch. */
  final List<Integer> offsets = new ArrayList<>();

  /** The epoch of each record. */
  final List<Integer> epochs = new ArrayList<>();

  /** The offset at which the log begins. What was before that is in a snapshot. */
  int start;

  final TreeMap<OffsetAndEpoch, HeapSnapshot> snapshots = new TreeMap<>();

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

  /** From now on other worlds have this disk, too, until one of them writes. */
  void share() {}

  /** The log that a process opens on it. */
  public org.apache.kafka.raft.RaftLog log() {
    return new HeapLog(this);
  }

  /** The quorum-state file that a process opens on it. */
  public QuorumStateStore store() {
    return new QuorumFile(this);
  }

  /**
   * The directory id in its meta.properties, which another disk of the same voter does not have.
   */
  public Uuid directory(int voter) {
    return new Uuid(FIRST + number, voter);
  }

  /** The number of the disk that has this directory id. */
  static int number(Uuid directory) {
    return (int) (directory.getMostSignificantBits() - FIRST);
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

  // In the words of the model, of which a record is a batch here

  /** The epoch of each batch. */
  List<Integer> batchEpochs() {
    List<Integer> all = new ArrayList<>();
    offsets.forEach(first -> all.add(epochs.get(first)));
    return all;
  }

  /** How many batches begin before this offset. */
  int position(long offset) {
    int position = 0;
    while (position < offsets.size() && offsets.get(position) < offset) {
      position++;
    }
    return position;
  }

  /** Where the batch of this number begins; the end of the log where there is none. */
  int offset(int position) {
    return position < offsets.size() ? offsets.get(position) : epochs.size();
  }

  /** Take over what a snapshot stands for from the log of whoever had it. */
  void replaceBefore(Disk of, int end) {
    int position = of.position(end);
    batches.clear();
    batches.addAll(of.batches.subList(0, position));
    offsets.clear();
    offsets.addAll(of.offsets.subList(0, position));
    epochs.clear();
    epochs.addAll(of.epochs.subList(0, end));
  }
}
