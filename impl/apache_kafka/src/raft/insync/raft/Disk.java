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

  final List<MemoryRecords> batches = new ArrayList<>();
  final List<Integer> epochs = new ArrayList<>();

  /** What the quorum-state file says; null where there is none. */
  ElectionState election;

  Disk(int number) {
    this.number = number;
  }

  /** The directory id in its meta.properties, which another disk of the same voter does not have. */
  public Uuid directory(int voter) {
    return new Uuid(7 + number, voter);
  }

  /** The epoch of each record. */
  List<Integer> epochs() {
    return List.copyOf(epochs);
  }
}
