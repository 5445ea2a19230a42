package insync.found.classes;

import insync.found.Story;
import insync.kafka.Replica;
import org.apache.kafka.common.protocol.Errors;

/**
 * A leader hears metadata of the partition epoch that it has already, and forgets a proposal that
 * is still on its way: found/forgotten-proposal. With --control it hears them before it proposes.
 */
public final class ForgottenProposal {
  private ForgottenProposal() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Replicas.play(ForgottenProposal.class, arguments, ForgottenProposal::run);
  }

  private static Story.Outcome run(Replicas all, boolean control) throws Exception {
    dropR3(all);
    return proposedAndForgotten(
        all,
        control,
        "a fetch of r3 comes through, from the watermark: r1 proposes to add r3",
        1);
  }

  /**
   * An answer has reached r1, and its metadata have not, unless this is the control. r3 fetches, and
   * r1 proposes to add it by the request with this number; then the metadata of the answer arrive. r2
   * fetches A, the request is accepted, and r3 is elected.
   */
  static Story.Outcome proposedAndForgotten(
      Replicas all, boolean control, String fetch, int request) throws Exception {
    Replica r1 = all.r1;
    if (control) {
      Story.detail("(control: the metadata of this change reach r1 now)");
      r1.learn();
    }
    all.r3.askAt(r1);
    Story.step(fetch);
    Story.detail("the request is on its way");
    all.show();
    if (!control) {
      r1.learn();
      Story.step("the metadata that say what the answer said reach r1");
      all.show();
    }
    all.r2.fetchFrom(r1);
    all.r2.askAt(r1);
    boolean acknowledged = r1.answer() == Errors.NONE;
    Story.step(
        "r2 fetches A; the producer %s", acknowledged ? "is told that A is committed" : "waits");
    all.show();

    Story.step("the request reaches the controller: %s", r1.deliver(request));
    all.all().forEach(Replica::learn);
    all.show();
    all.controller.elect(false);
    all.all().forEach(Replica::learn);
    Story.step("preferred election: r3 leads");
    Story.detail("r2 %s", all.r2.fetchFrom(all.r3));
    Story.detail("r1 %s", r1.fetchFrom(all.r3));
    all.show();
    return Story.outcome(acknowledged, all.r3.values().contains("A"), "the log of the leader, r3");
  }

  private static void dropR3(Replicas all) throws Exception {
    Replica r1 = all.r1;
    all.controller.clock.sleep(31_000);
    all.r2.askAt(r1);
    Story.step("r3's fetches do not come through for 31 s, its heartbeats do; r2's fetches do");
    r1.produce('A');
    Story.step("a producer sends A with acks=all; nobody has fetched it yet");
    r1.shrink();
    Story.step("r1 proposes to drop r3: %s", r1.deliver(0));
    Story.detail("the answer reaches r1 before the metadata do");
    all.show();
  }
}
