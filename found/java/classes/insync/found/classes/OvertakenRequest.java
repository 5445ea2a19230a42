package insync.found.classes;

import insync.found.Story;
import insync.kafka.Replica;
import java.util.List;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.protocol.Errors;

/**
 * An AlterPartition that was refused is accepted all the same, for it was sent twice:
 * found/overtaken-request. With --control the first copy never arrives.
 */
public final class OvertakenRequest {
  private OvertakenRequest() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Replicas.play(OvertakenRequest.class, arguments, OvertakenRequest::run);
  }

  private static Story.Outcome run(Replicas all, boolean control) throws Exception {
    refuseTheLaterCopy(all);
    Replica r1 = all.r1;

    r1.produce('A');
    all.r2.fetchFrom(r1);
    all.r2.fetchFrom(r1);
    Story.step("a producer sends A with acks=all; r2 fetches it. r3 is slow and has nothing");
    all.show();
    boolean acknowledged = r1.answer() == Errors.NONE;
    Story.step("the producer of A %s", acknowledged ? "is told: committed" : "waits");

    all.controller.heartbeat(all.r3.id, false);
    all.all().forEach(Replica::learn);
    Story.step("r3's heartbeats go through again: it is unfenced, and outside the ISR");
    if (control) {
      Story.detail("(control: the first copy never arrives)");
    } else {
      Story.step("the first copy reaches the controller: %s", r1.deliver(0));
    }
    all.all().forEach(Replica::learn);
    all.show();

    boolean moved = all.controller.elect(false);
    all.all().forEach(Replica::learn);
    Story.step("preferred election: %s", moved ? "r3 leads" : "not possible, r3 is not in the ISR");
    if (moved) {
      Story.detail("r2 %s", all.r2.fetchFrom(all.r3));
      Story.detail("r1 %s", r1.fetchFrom(all.r3));
    }
    all.show();
    Replica leader = moved ? all.r3 : r1;
    String where = "the log of the leader, r" + (moved ? 3 : 1);
    return Story.outcome(acknowledged, leader.values().contains("A"), where);
  }

  private static void refuseTheLaterCopy(Replicas all) throws Exception {
    Replica r1 = all.r1;
    all.controller.fence(all.r3.id);
    all.all().forEach(Replica::learn);
    Story.step("r3's session runs out: it is fenced and leaves the ISR");
    all.controller.heartbeat(all.r3.id, false);
    all.all().forEach(Replica::learn);
    Story.step("r3 is back, fetches from r1 and has caught up");
    all.r3.fetchFrom(r1);
    Story.step("r1 proposes ISR {r1, r2, r3}; the request hangs in its connection");
    all.show();
    int before = all.controller.partition().partitionEpoch;
    all.controller.fence(all.r3.id);
    all.all().forEach(Replica::learn);
    int after = all.controller.partition().partitionEpoch;
    Story.step(
        "r3's session runs out again; it is outside the ISR, so the partition epoch stays"
            + " (%d, then %d)",
        before, after);
    r1.timeOut();
    Story.step("controller.socket.timeout.ms goes by: r1 closes the connection and sends again");
    List<AlterPartitionRequestData> copies = r1.copies();
    if (copies.size() != 2 || !copies.get(0).equals(copies.get(1))) {
      throw new IllegalStateException("two identical copies were expected, and are: " + copies);
    }
    Story.detail(
        "%d copies, identical (Kafka's ids begin with 0): %s",
        copies.size(), copies.get(1).topics());
    Story.step("the second copy reaches the controller: %s", r1.deliver(1));
    all.all().forEach(Replica::learn);
    Story.detail("r1 waits for %s from now on: it has rolled back", r1.maximalIsr());
  }
}
