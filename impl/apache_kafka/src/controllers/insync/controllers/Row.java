package insync.controllers;

import insync.raft.Disk;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * What can be told of one controller, in the terms of the model.
 *
 * @param end of a leader, how many records it knows to be committed
 * @param log the term of each record
 * @param metadata what each record makes of the metadata; of the last one of an active controller
 *     what that has in its memory
 * @param pending by the broker that asks, the end at which it is answered
 */
record Row(
    int term,
    Integer support,
    boolean leads,
    boolean active,
    String role,
    int end,
    List<Integer> log,
    List<Metadata> metadata,
    Map<Integer, Integer> pending) {

  static Row of(Controller controller, int beginning) {
    var client = controller.client;
    boolean leads = client.quorum().isLeader();
    List<Integer> log = new ArrayList<>();
    List<Metadata> metadata = Metadata.afterEach(controller.disk.batches());
    List<Metadata> kept = new ArrayList<>();
    for (int i = Math.max(0, beginning - 1); i < metadata.size(); i++) {
      log.add(i < beginning ? 0 : term(epochAt(controller.disk, i)));
      kept.add(metadata.get(i));
    }
    boolean active = controller.process.isActive();
    if (active && !kept.isEmpty() && kept.get(kept.size() - 1).topic() != null) {
      kept.add(kept.remove(kept.size() - 1).asReplayed(controller.process));
    }
    Map<Integer, Integer> pending = new HashMap<>();
    controller.pending.forEach((leader, one) -> pending.put(leader, one.end()));
    return new Row(
        term(client.epoch()),
        leads ? Integer.valueOf(controller.id) : client.vote(),
        leads,
        active,
        client.state().name().toLowerCase(Locale.ROOT),
        leads ? records(controller.disk, client.highWatermark(), beginning) : 0,
        log,
        kept,
        pending);
  }

  /**
   * The first epoch in which somebody leads is the model's first term, and that of an empty disk.
   */
  static int term(int epoch) {
    return Math.max(0, epoch - 1);
  }

  private static int epochAt(Disk disk, int batch) {
    return disk.epochs().get(disk.offsets().get(batch));
  }

  /** How many of the model's records are below an offset. */
  private static int records(Disk disk, Integer offset, int beginning) {
    if (offset == null) {
      return 0;
    }
    int batches = (int) disk.offsets().stream().filter(first -> first < offset).count();
    return batches < beginning || beginning == 0 ? 0 : batches - beginning + 1;
  }

  /** What it has replayed if it is active; null of an empty log. */
  Metadata last() {
    return metadata.isEmpty() ? null : metadata.get(metadata.size() - 1);
  }

  int lastTerm() {
    return log.isEmpty() ? 0 : log.get(log.size() - 1);
  }

  /** Whether it leads, and its log has a record of that term. */
  boolean hasBegun() {
    return leads && !log.isEmpty() && lastTerm() == term;
  }
}
