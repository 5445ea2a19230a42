package insync.found.classes;

import insync.found.Story;
import java.util.List;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.protocol.Errors;

/**
 * A leader hears metadata of the partition epoch that it has already, and forgets a proposal that
 * is still on its way: docs/kafka-trace.md. With --control it hears nothing.
 */
public final class ForgottenProposal {
  private ForgottenProposal() {}

  /** Exits with {@link Story}'s codes. */
  public static void main(String[] arguments) throws Exception {
    boolean control = List.of(arguments).contains("--control");
    Replicas replicas = new Replicas();
    int code = run(replicas, control);
    replicas.remove();
    System.exit(code);
  }

  private static int run(Replicas all, boolean control) throws Exception {
    Broker r1 = all.r1;
    dropAndAdd(all);
    if (control) {
      Story.detail("(control: r1 hears nothing)");
    } else {
      r1.learn();
      Story.step("r1 hears the metadata of the partition epoch that it has already");
      all.show();
    }
    all.r2.fetchFrom(r1);
    all.r2.askAt(r1);
    boolean acknowledged = r1.answer() == Errors.NONE;
    Story.step("r2 fetches A; its producer %s", acknowledged ? "is told: committed" : "waits");
    all.show();

    List<AlterPartitionChannel.Copy> requests = all.channel.copies();
    Story.step("the request: %s", deliver(all, requests.get(requests.size() - 1)));
    all.channel.run();
    all.all().forEach(Broker::learn);
    all.controller.electPreferred();
    all.all().forEach(Broker::learn);
    Story.step("preferred election: r3 leads");
    Story.detail("r2 %s", all.r2.fetchFrom(all.r3));
    Story.detail("r1 %s", r1.fetchFrom(all.r3));
    all.show();
    return Story.verdict(acknowledged, all.r3.values().contains("A"), "the log of the leader, r3");
  }

  private static void dropAndAdd(Replicas all) throws Exception {
    Broker r1 = all.r1;
    all.clock.sleep(31_000);
    all.r2.askAt(r1);
    Story.step("r3's fetches do not come through for 31 s, its heartbeats do; r2's fetches do");
    r1.produce("A");
    Story.step("a producer sends A with acks=all; nobody has fetched it yet");
    r1.shrink();
    all.channel.run();
    Story.step("r1 proposes to drop r3: %s", deliver(all, all.channel.copies().get(0)));
    all.channel.run();
    Story.detail("the answer reaches r1 before the metadata do");
    all.show();
    all.r3.askAt(r1);
    all.channel.run();
    Story.step(
        "a fetch of r3 comes through, from the watermark: r1 proposes to add r3; the request is"
            + " on its way");
    all.show();
  }

  private static String deliver(Replicas all, AlterPartitionChannel.Copy copy) {
    AlterPartitionResponseData answer = all.channel.deliver(copy, all.controller);
    AlterPartitionResponseData.PartitionData partition = answer.topics().get(0).partitions().get(0);
    Errors error = Errors.forCode(partition.errorCode());
    return error == Errors.NONE ? "accepted, ISR " + partition.isr() : "refused, " + error;
  }
}
