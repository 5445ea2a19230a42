package insync.kafka;

import insync.objects.Fields;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.log.EpochEntry;

/**
 * The file leader-epoch-checkpoint of a log, on the heap; made by {@link #of}, for the constructor
 * makes a file.
 */
final class HeapEpochs extends LeaderEpochCheckpointFile {
  private List<EpochEntry> entries;

  private HeapEpochs() throws IOException {
    super(null, null);
  }

  static HeapEpochs of(List<EpochEntry> entries) {
    HeapEpochs made = Fields.allocate(HeapEpochs.class);
    made.entries = List.copyOf(entries);
    return made;
  }

  @Override
  public void write(Collection<EpochEntry> all) {
    entries = List.copyOf(all);
  }

  @Override
  public void writeIfDirExists(Collection<EpochEntry> all) {
    write(all);
  }

  @Override
  public List<EpochEntry> read() {
    return entries;
  }
}
