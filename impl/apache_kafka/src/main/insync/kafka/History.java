package insync.kafka;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

/**
 * What happened, as no part of Kafka remembers it: the model's ghosts, clients and counters of
 * faults.
 */
final class History {
  int produced;
  int crashes;
  int lossy;
  int sessionsLost;
  int shutdowns;
  int reassignments;
  int minimumChanges;
  int uncleanSwitches;
  int disksReplaced;
  int directoriesRemoved;
  int copies;
  int lateNews;
  int snapshotsLoaded;
  int oldMetadata;

  /** The least number of logs that an acknowledgement has taken so far. */
  int least;

  int position;
  List<Integer> writtenIn = List.of();
  List<Integer> committed = List.of();
  List<Integer> consumed = List.of();
  TreeSet<Integer> acked = new TreeSet<>();

  History copy() {
    History made = new History();
    made.produced = produced;
    made.crashes = crashes;
    made.lossy = lossy;
    made.sessionsLost = sessionsLost;
    made.shutdowns = shutdowns;
    made.reassignments = reassignments;
    made.minimumChanges = minimumChanges;
    made.uncleanSwitches = uncleanSwitches;
    made.disksReplaced = disksReplaced;
    made.directoriesRemoved = directoriesRemoved;
    made.copies = copies;
    made.lateNews = lateNews;
    made.snapshotsLoaded = snapshotsLoaded;
    made.oldMetadata = oldMetadata;
    made.least = least;
    made.position = position;
    made.writtenIn = writtenIn;
    made.committed = committed;
    made.consumed = consumed;
    made.acked = new TreeSet<>(acked);
    return made;
  }

  static List<Integer> with(List<Integer> list, int value) {
    List<Integer> made = new ArrayList<>(list);
    made.add(value);
    return made;
  }
}
