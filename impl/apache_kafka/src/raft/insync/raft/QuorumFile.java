package insync.raft;

import java.nio.file.Path;
import java.util.Optional;
import org.apache.kafka.raft.ElectionState;
import org.apache.kafka.raft.QuorumStateStore;
import org.apache.kafka.server.common.KRaftVersion;

/** The quorum-state file, in the form that Kafka gives it. */
public final class QuorumFile implements QuorumStateStore {
  private final Disk disk;

  /** The file on this disk. */
  public QuorumFile(Disk disk) {
    this.disk = disk;
  }

  @Override
  public Optional<ElectionState> readElectionState() {
    return Optional.ofNullable(disk.election);
  }

  @Override
  public void writeElectionState(ElectionState latest, KRaftVersion version) {
    disk.election =
        ElectionState.fromQuorumStateData(latest.toQuorumStateData(version.quorumStateVersion()));
  }

  @Override
  public Path path() {
    return Path.of("quorum-state");
  }

  @Override
  public void clear() {
    disk.election = null;
  }
}
