package insync.found.brokers;

import insync.found.NotTried;
import insync.found.Story;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * An AlterPartition that was refused is accepted all the same, for it was sent twice, on three real
 * brokers: found/overtaken-request. One AlterPartition request of r1 waits in its connection; r3's
 * heartbeats and fetches are slow twice. With --control the request that waits never arrives.
 */
public final class OvertakenRequest {
  private OvertakenRequest() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Story.play(
        OvertakenRequest.class,
        arguments,
        control ->
            Cluster.play(2, List.of(1, 2, 3), cluster -> new Scenario(cluster, control).run()));
  }

  private static final class Scenario {
    private final Cluster cluster;
    private final boolean control;
    private final BlockingQueue<String> answers;
    private DelayingProxy.Hold heartbeats;
    private DelayingProxy.Hold first;

    private Scenario(Cluster cluster, boolean control) {
      this.cluster = cluster;
      this.control = control;
      answers = cluster.alterPartitionAnswers();
    }

    private Story.Outcome run() throws Exception {
      proposeAndFenceAgain();
      RecordMetadata told;
      try (KafkaProducer<String, String> producer = cluster.producer()) {
        told = producer.send(new ProducerRecord<>("t", 0, "key", "A")).get(60, TimeUnit.SECONDS);
      }
      Story.step("a producer sends A with acks=all: ACKNOWLEDGED, at offset %d", told.offset());
      cluster.show();
      acceptTheFirstCopy();
      boolean moved = cluster.electPreferred();
      if (moved) {
        cluster.awaitR3WithoutRecord();
      }
      Story.step(
          "preferred election: %s", moved ? "r3 leads" : "r3 is not in the ISR, r1 leads on");
      cluster.show();
      int leader = moved ? 3 : 1;
      return Story.outcome(true, cluster.holdsRecord(leader), "the log of the leader, r" + leader);
    }

    private void proposeAndFenceAgain() throws Exception {
      holdHeartbeats();
      awaitIsr(Set.of("1", "2"), 90);
      Story.step("r3's heartbeats are slow: its session runs out, it is fenced and leaves the ISR");
      first = cluster.toController(1).holdOne(Requests.of(ApiKeys.ALTER_PARTITION));
      heartbeats.release();
      first.awaitCaught("r1's AlterPartition", 60);
      Story.step("r3 is back and has caught up; r1 proposes to take it in: the request hangs");
      String before = cluster.node(1).state("partitionEpoch");
      cluster.toBroker1().hold(Requests.fetchesOf(3));
      holdHeartbeats();
      Cluster.await("r1 sees r3 fenced", 90, () -> cluster.node(1).state("fenced3").equals("true"));
      Story.step("r3 is slow again, its fetches too: it is fenced once more, outside the ISR");
      Story.detail(
          "the partition epoch was %s and is %s", before, cluster.node(1).state("partitionEpoch"));
      String refusal = answers.poll(120, TimeUnit.SECONDS);
      Story.step(
          "after controller.socket.timeout.ms (30 s) r1 sends it again; answer: %s", refusal);
      if (refusal == null || !refusal.contains("INELIGIBLE_REPLICA")) {
        throw new NotTried("the second copy was not refused as INELIGIBLE_REPLICA");
      }
    }

    private void acceptTheFirstCopy() throws Exception {
      heartbeats.release();
      Cluster.await(
          "r1 sees r3 unfenced", 60, () -> cluster.node(1).state("fenced3").equals("false"));
      Story.step("r3's heartbeats go through: it is unfenced, outside the ISR");
      if (control) {
        Story.step("(control: the first copy never arrives)");
        return;
      }
      first.release();
      String accepted = answers.poll(60, TimeUnit.SECONDS);
      Story.step("the first copy arrives at the controller; answer, unheard: %s", accepted);
      if (accepted != null && accepted.startsWith("accepted")) {
        awaitIsr(Set.of("1", "2", "3"), 60);
      }
      cluster.show();
    }

    private void holdHeartbeats() {
      heartbeats = cluster.toController(3).hold(Requests.of(ApiKeys.BROKER_HEARTBEAT));
    }

    private void awaitIsr(Set<String> members, int seconds) throws Exception {
      Cluster.await(
          "r1 knows the ISR " + members,
          seconds,
          () -> {
            Map<String, String> state = cluster.node(1).state();
            return Cluster.isr(state).equals(members);
          });
    }
  }
}
