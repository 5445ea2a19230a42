package insync.found.classes;

import insync.found.Story;
import insync.kafka.Replica;

/**
 * A leader forgets a proposal that is still on its way: found/forgotten-proposal, the way in which
 * both followers were out of the ISR and come back one after the other. Under min.insync.replicas
 * the watermark stands still, so each is at it with its first fetch. With --control the metadata of
 * r2's return come before r3's fetch.
 */
public final class BothReturn {
  private BothReturn() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Replicas.play(BothReturn.class, arguments, BothReturn::run);
  }

  private static Story.Outcome run(Replicas all, boolean control) throws Exception {
    Replica r1 = all.r1;
    dropBoth(all);
    all.r2.askAt(r1);
    Story.step("r2 fetches again, from the watermark on: r1 proposes to add r2");
    Story.step("the controller answers: %s", r1.deliver(1));
    Story.detail("the answer reaches r1 before the metadata do");
    return ForgottenProposal.proposedAndForgotten(
        all, control, "r3 fetches again, from the watermark on: r1 proposes to add r3", 2);
  }

  private static void dropBoth(Replicas all) throws Exception {
    all.controller.clock.sleep(31_000);
    Story.step("no follower's fetches come through for 31 s, their heartbeats do");
    all.r1.produce('A');
    Story.step("a producer sends A with acks=all; nobody has fetched it yet");
    all.r1.shrink();
    Story.step("r1 proposes to drop both: %s", all.r1.deliver(0));
    all.all().forEach(Replica::learn);
    Story.detail("all hear of it from the metadata, too");
    all.show();
  }
}
