package insync.raft;

import org.apache.kafka.raft.HeldClient;

/** A voter: its disk, and its process while one runs. All that a step at it can change. */
final class Voter {
  final int id;
  final Disk disk;

  /** Null while no process runs. */
  final HeldClient<String> process;

  Voter(int id, Disk disk, HeldClient<String> process) {
    this.id = id;
    this.disk = disk;
    this.process = process;
  }

  boolean runs() {
    return process != null;
  }
}
