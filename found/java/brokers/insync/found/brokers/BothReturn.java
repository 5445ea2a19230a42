package insync.found.brokers;

import insync.found.Story;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * A leader forgets a proposal that is still on its way, on three real brokers:
 * found/forgotten-proposal, the way in which both followers were out of the ISR and come back one
 * after the other. The fetches of both wait for longer than replica.lag.time.max.ms; then one of
 * each goes through. r1's metadata fetches wait while the first expansion is answered, and its
 * second expansion waits while r2 fetches on. With --control the metadata come before r3's fetch.
 */
public final class BothReturn {
  /** More than replica.lag.time.max.ms and replica.socket.timeout.ms, both 30 s. */
  private static final int LAG_MS = 31_000;

  private BothReturn() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Story.play(
        BothReturn.class,
        arguments,
        control -> Cluster.play(2, List.of(1, 2, 3), cluster -> run(cluster, control)));
  }

  private static Story.Outcome run(Cluster cluster, boolean control) throws Exception {
    BlockingQueue<String> answers = cluster.alterPartitionAnswers();
    DelayingProxy.Hold ofR2 = cluster.toBroker1().holdOne(Requests.fetchesOf(2));
    DelayingProxy.Hold ofR3 = cluster.toBroker1().holdOne(Requests.fetchesOf(3));
    ofR2.awaitCaught("r2's fetch from r1", 60);
    ofR3.awaitCaught("r3's fetch from r1", 60);
    DelayingProxy.Hold moreOfR2 = cluster.toBroker1().hold(Requests.fetchesOf(2));
    cluster.toBroker1().hold(Requests.fetchesOf(3));
    Story.step("the fetches of r2 and r3 from r1 are slow, their heartbeats are not");
    Thread.sleep(LAG_MS);
    try (KafkaProducer<String, String> producer = cluster.producer()) {
      Future<RecordMetadata> answer = producer.send(new ProducerRecord<>("t", 0, "key", "A"));
      Story.step("replica.lag.time.max.ms has gone by; a producer sends A with acks=all to r1");
      String dropped = answers.poll(60, TimeUnit.SECONDS);
      Cluster.await(
          "r1 is alone, by the answer and its metadata",
          60,
          () -> ForgottenProposal.waitsFor(cluster).equals(Set.of("1")) && alone(cluster));
      Story.step("r1 drops both; answer: %s", dropped);
      cluster.show();
      DelayingProxy.Hold expansion = bothReturn(cluster, control, ofR2, ofR3, answers);
      moreOfR2.release();
      boolean acknowledged = Cluster.acknowledged(answer, ForgottenProposal.patience(control));
      return ForgottenProposal.acceptThenElectR3(cluster, expansion, answers, acknowledged);
    }
  }

  /** r1 proposes r2, which is accepted, and r3, which is on its way and returned. */
  private static DelayingProxy.Hold bothReturn(
      Cluster cluster,
      boolean control,
      DelayingProxy.Hold ofR2,
      DelayingProxy.Hold ofR3,
      BlockingQueue<String> answers)
      throws Exception {
    DelayingProxy.Hold metadata = cluster.toController(1).hold(Requests.of(ApiKeys.FETCH));
    metadata.awaitCaught("r1's metadata fetch", 60);
    int before = ForgottenProposal.metadataOffset(cluster);
    ofR2.release();
    Story.step(
        "a fetch of r2 comes through, from the watermark on: r1 proposes r2; answer: %s",
        answers.poll(60, TimeUnit.SECONDS));
    Cluster.await(
        "r1 knows that r2 is back",
        60,
        () -> ForgottenProposal.waitsFor(cluster).equals(Set.of("1", "2")));
    if (control) {
      ForgottenProposal.hear(cluster, metadata, before);
      Story.step("(control: now the metadata of this change reach r1)");
    }
    DelayingProxy.Hold expansion =
        cluster.toController(1).holdOne(Requests.of(ApiKeys.ALTER_PARTITION));
    ofR3.release();
    expansion.awaitCaught("r1's AlterPartition", 60);
    Story.step("a fetch of r3 comes through, from the watermark on: r1 proposes r3; that is slow");
    Story.detail("r1 waits for %s", ForgottenProposal.waitsFor(cluster));
    if (!control) {
      ForgottenProposal.hear(cluster, metadata, before);
      Story.step("the metadata that say what the answer said reach r1");
      cluster.show();
      Story.detail("r1 waits for %s", ForgottenProposal.waitsFor(cluster));
    }
    return expansion;
  }

  private static boolean alone(Cluster cluster) throws Exception {
    return Cluster.isr(cluster.node(1).state()).equals(Set.of("1"))
        && Cluster.ids(cluster.describe().isr()).equals(List.of(1));
  }
}
