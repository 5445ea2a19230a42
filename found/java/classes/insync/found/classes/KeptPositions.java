package insync.found.classes;

import insync.found.Story;
import insync.kafka.Replica;
import org.apache.kafka.common.errors.UnknownLeaderEpochException;
import org.apache.kafka.common.protocol.Errors;

/**
 * A leader that is elected again commits at positions from before another's epoch:
 * found/kept-positions. With --control r1 learns of each election by itself.
 */
public final class KeptPositions {
  private KeptPositions() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Replicas.play(KeptPositions.class, arguments, KeptPositions::run);
  }

  private static Story.Outcome run(Replicas all, boolean control) throws Exception {
    Replica r1 = all.r1;
    Replica r2 = all.r2;
    Replica r3 = all.r3;

    r1.produce('A');
    Story.step("a producer sends A with acks=all to r1");
    Story.step("r2 fetches: %s; its next fetch acknowledges A. r3 is slow", r2.fetchFrom(r1));
    r2.askAt(r1);
    all.show();

    all.controller.elect(false);
    r3.learn();
    r2.learn();
    Story.step("a preferred election makes r3 leader in epoch 1; r1 has not heard of it");
    if (control) {
      r1.learn();
      Story.detail("(control: r1 hears of it at once)");
    }
    Story.step("r2 follows r3: it %s", r2.fetchFrom(r3));
    all.show();

    all.controller.heartbeat(r3.id, true);
    r2.learn();
    Story.step("r3 shuts down in order; r1 is elected again, in epoch 2, ISR {r1, r2}");
    try {
      r2.fetchFrom(r1);
    } catch (UnknownLeaderEpochException e) {
      Story.detail("r2 asks r1 and backs off (replica.fetch.backoff.ms): %s", e.getMessage());
    }

    long changes = r1.learn();
    Story.step("r1 learns %d change(s) of the partition in one delta", changes);
    all.show();
    Story.detail("r1 takes r2's log to end at %d; it ends at %d", r1.positionOf(r2), r2.logEnd());
    boolean acknowledged = r1.answer() == Errors.NONE;
    Story.step("the producer of A %s", answerText(r1.answer()));

    all.controller.heartbeat(r1.id, true);
    r2.learn();
    r1.learn();
    Story.step("r1 shuts down in order before r2 has fetched; r2 is elected from the ISR");
    all.show();
    if (!acknowledged) {
      Story.step("the producer of A %s", answerText(r1.answer()));
    }
    return Story.outcome(acknowledged, r2.values().contains("A"), "the log of the leader, r2");
  }

  private static String answerText(Errors answer) {
    if (answer == null) {
      return "still waits";
    }
    return answer == Errors.NONE ? "is told that it is committed" : "is told " + answer;
  }
}
