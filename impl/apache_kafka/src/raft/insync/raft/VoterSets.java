package insync.raft;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.raft.HeldClient;
import org.apache.kafka.raft.VoterSet;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;
import org.apache.kafka.snapshot.Snapshots;

/** Voter sets in the words of the model: which of its disks each voter has, by its id. */
final class VoterSets {
  private VoterSets() {}

  static Map<Integer, Integer> of(VoterSet voters) {
    Map<Integer, Integer> all = new TreeMap<>();
    voters
        .voterKeys()
        .forEach(
            key -> all.put(key.id(), Disk.number(key.directoryId().orElse(Uuid.ZERO_UUID))));
    return all;
  }

  /** The last voter set among these records; null where there is none. */
  static Map<Integer, Integer> in(Records records) {
    Map<Integer, Integer> last = null;
    for (RecordBatch batch : records.batches()) {
      for (Record record : batch.isControlBatch() ? batch : List.<Record>of()) {
        if (ControlRecordType.parse(record.key()) == ControlRecordType.KRAFT_VOTERS) {
          VotersRecord voters = ControlRecordUtils.deserializeVotersRecord(record);
          last = of(VoterSet.fromVotersRecord(voters));
        }
      }
    }
    return last;
  }

  /** Write what kafka-storage format writes with these voters. */
  static void format(Disk disk, VoterSet voters) {
    new RecordsSnapshotWriter.Builder()
        .setTime(new StillTime())
        .setKraftVersion(KRaftVersion.KRAFT_VERSION_1)
        .setVoterSet(Optional.of(voters))
        .setRawSnapshotWriter(new HeapSnapshot.Writer(disk, Snapshots.BOOTSTRAP_SNAPSHOT_ID))
        .build(HeldClient.words())
        .freeze();
  }

  /** As what stands in the log of a disk would be read by a process, by its position. */
  static Map<Integer, Map<Integer, Integer>> on(Disk disk) {
    Map<Integer, Map<Integer, Integer>> all = new HashMap<>();
    int first = disk.position(disk.start);
    if (disk.start > 0) {
      all.put(first - 1, in(disk.snapshots.lastEntry().getValue().records()));
    }
    for (int i = first; i < disk.batches.size(); i++) {
      Map<Integer, Integer> voters = in(disk.batches.get(i));
      if (voters != null) {
        all.put(i, voters);
      }
    }
    return all;
  }
}
