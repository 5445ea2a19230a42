package insync.found.classes;

import insync.found.Story;
import insync.kafka.Replica;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.protocol.Errors;

/**
 * What else one delta of metadata can hide, on Kafka's own classes. Each variation says what is
 * expected of today's Kafka; the exit code is 0 if all came out so, 1 if one did not.
 */
public final class Variations {
  private Variations() {}

  private interface Variation {
    boolean asExpected(Replicas all) throws Exception;
  }

  /** Runs them all. */
  public static void main(String[] arguments) throws Exception {
    boolean good =
        run("leader, three epochs in one delta: lost", Variations::threeEpochs)
            & run("follower, two epochs in one delta: truncates", Variations::follower)
            & run("follower, three epochs in one delta: truncates", Variations::followerOfThree)
            & run("leader, its own ISR changes in one delta: waits", Variations::isrChanges)
            & run("leader, nobody, the same leader in one delta: waits", Variations::nobodyLed)
            & run(
                "leader, its shrink answered before a raised minimum: lost",
                Variations::shrinkIsAnswered)
            & run("leader, two elections in a snapshot: lost", Variations::electionsInSnapshot)
            & run(
                "leader, a snapshot of what it knows, and a proposal on its way: lost",
                Variations::snapshotOfKnown)
            & run(
                "replica, removed, in a snapshot: its broker keeps it",
                Variations::removedInSnapshot);
    System.exit(good ? 0 : 1);
  }

  private static boolean run(String name, Variation variation) throws Exception {
    Replicas all = new Replicas();
    boolean good = variation.asExpected(all);
    Story.step("%s: %s", name, good ? "as expected" : "NOT AS EXPECTED");
    all.show();
    return good;
  }

  /** A is at r1 and r2; r3, in the ISR, lacks it. */
  private static void appendA(Replicas all) throws Exception {
    all.r1.produce('A');
    all.r2.fetchFrom(all.r1);
    all.r2.askAt(all.r1);
  }

  private static void r3LeadsThenLeaves(Replicas all, Replica next) throws Exception {
    all.controller.elect(false);
    all.r3.learn();
    all.r2.learn();
    all.r2.fetchFrom(all.r3);
    all.controller.prefer(next.id);
    all.controller.heartbeat(all.r3.id, true);
  }

  private static boolean threeEpochs(Replicas all) throws Exception {
    appendA(all);
    r3LeadsThenLeaves(all, all.r2);
    all.r2.learn();
    all.controller.prefer(all.r1.id);
    all.controller.elect(false);
    all.r1.learn();
    return all.controller.partition().leaderEpoch == 3
        && all.r1.answer() == Errors.NONE
        && all.r2.values().isEmpty();
  }

  /** r1 hears of everything and truncates; r2 hears of both epochs at once. */
  private static boolean follower(Replicas all) throws Exception {
    appendA(all);
    all.controller.elect(false);
    all.r1.learn();
    all.r3.learn();
    all.r1.fetchFrom(all.r3);
    all.controller.heartbeat(all.r3.id, true);
    all.r1.learn();
    all.r1.produce('B');
    all.r2.learn();
    all.r2.fetchFrom(all.r1);
    all.r2.fetchFrom(all.r1);
    return all.r2.values().equals("B");
  }

  /** The same with one more epoch of r1 before r2 hears. */
  private static boolean followerOfThree(Replicas all) throws Exception {
    appendA(all);
    all.controller.elect(false);
    all.r1.learn();
    all.r3.learn();
    all.r1.fetchFrom(all.r3);
    all.controller.prefer(all.r1.id);
    all.controller.elect(false);
    all.r1.learn();
    all.r1.produce('B');
    all.controller.prefer(all.r3.id);
    all.controller.elect(false);
    all.r3.learn();
    all.r3.produce('C');
    all.r2.learn();
    all.r2.fetchFrom(all.r3);
    all.r2.fetchFrom(all.r3);
    return all.r2.values().equals("C");
  }

  /** r3 leaves the ISR by fencing and comes back to life, which r1 hears of at once. */
  private static boolean isrChanges(Replicas all) throws Exception {
    all.r1.produce('A');
    all.controller.fence(all.r3.id);
    all.controller.heartbeat(all.r3.id, false);
    all.r1.learn();
    all.r3.fetchFrom(all.r1);
    all.r3.askAt(all.r1);
    return all.r1.highWatermark() == 0 && all.r1.answer() == null;
  }

  /**
   * r3 lags, r1 asks to take it out of the ISR, and the answer comes before the metadata that raise
   * min.insync.replicas to 3: r1 commits with r2, while r3 is in the ELR. Then r2 and r1 shut down.
   */
  private static boolean shrinkIsAnswered(Replicas all) throws Exception {
    appendA(all);
    all.controller.clock.sleep(31_000);
    all.r2.askAt(all.r1);
    all.r1.shrink();
    all.controller.setMinimum(3);
    all.r1.deliver(0);
    boolean committed = all.r1.answer() == Errors.NONE && all.r1.highWatermark() == 1;
    boolean kept = Arrays.equals(all.controller.partition().elr, new int[] {all.r3.id});
    all.controller.heartbeat(all.r2.id, true);
    all.controller.heartbeat(all.r1.id, true);
    all.r3.learn();
    return committed
        && kept
        && all.r1.minimum() == 2
        && all.controller.partition().leader == all.r3.id
        && all.r3.values().isEmpty();
  }

  /** kept-positions where r1 hears of both elections by a snapshot. */
  private static boolean electionsInSnapshot(Replicas all) throws Exception {
    appendA(all);
    r3LeadsThenLeaves(all, all.r1);
    all.r1.learnSnapshot();
    return all.controller.partition().leaderEpoch == 2
        && all.r1.answer() == Errors.NONE
        && all.r2.values().isEmpty();
  }

  /**
   * forgotten-proposal where nothing is late: r1 knows all when it proposes r3, and then loads a
   * snapshot of just that.
   */
  private static boolean snapshotOfKnown(Replicas all) throws Exception {
    all.controller.clock.sleep(31_000);
    all.r2.askAt(all.r1);
    all.r1.produce('A');
    all.r1.shrink();
    all.r1.deliver(0);
    all.all().forEach(Replica::learn);
    all.r3.askAt(all.r1);
    boolean waits = all.r1.maximalIsr().equals(Replica.names(List.of(0, 1, 2)));
    all.r1.learnSnapshot();
    boolean forgets = all.r1.maximalIsr().equals(Replica.names(List.of(0, 1)));
    all.r2.fetchFrom(all.r1);
    all.r2.askAt(all.r1);
    boolean committed = all.r1.answer() == Errors.NONE;
    all.r1.deliver(1);
    all.controller.elect(false);
    all.all().forEach(Replica::learn);
    return waits
        && forgets
        && committed
        && all.controller.partition().leader == all.r3.id
        && all.r3.values().isEmpty();
  }

  /** r3 is removed, and its broker hears so by a snapshot; then the same by a delta. */
  private static boolean removedInSnapshot(Replicas all) throws Exception {
    all.controller.reassign(List.of(all.r1.id, all.r2.id));
    all.r3.learnSnapshot();
    boolean kept = all.controller.partition().replicas.length == 2 && all.r3.isThere();
    all.controller.reassign(List.of(all.r1.id, all.r2.id, all.r3.id));
    all.r3.learn();
    all.controller.reassign(null);
    all.r3.learn();
    return kept && all.controller.partition().replicas.length == 2 && !all.r3.isThere();
  }

  /** All but r1 shut down, r1 loses its session and gets it back: epoch 1 has no leader. */
  private static boolean nobodyLed(Replicas all) throws Exception {
    appendA(all);
    all.controller.heartbeat(all.r3.id, true);
    all.controller.heartbeat(all.r2.id, true);
    all.controller.fence(all.r1.id);
    all.controller.heartbeat(all.r1.id, false);
    all.r1.learn();
    return all.controller.partition().leaderEpoch == 2
        && all.controller.partition().leader == all.r1.id
        && all.r1.highWatermark() == 0
        && all.r1.answer() == null;
  }
}
