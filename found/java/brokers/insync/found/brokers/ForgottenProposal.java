package insync.found.brokers;

import insync.found.NotTried;
import insync.found.Story;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * A leader hears metadata of the partition epoch that it has already, and forgets a proposal that
 * is still on its way, on three real brokers: found/forgotten-proposal. r3's fetches from r1 are
 * slow for longer than replica.lag.time.max.ms, r2's for up to half of it; r1's two AlterPartition
 * requests are slow, and its metadata fetches while the first is answered. With --control the
 * metadata come before r3's fetch.
 */
public final class ForgottenProposal {
  /** More than replica.lag.time.max.ms and replica.socket.timeout.ms, both 30 s. */
  private static final int LAG_MS = 31_000;

  private ForgottenProposal() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Story.play(
        ForgottenProposal.class,
        arguments,
        control ->
            Cluster.play(2, List.of(1, 2, 3), cluster -> new Scenario(cluster, control).run()));
  }

  private static final class Scenario {
    private final Cluster cluster;
    private final boolean control;
    private final BlockingQueue<String> answers;
    private DelayingProxy.Hold ofR3;
    private DelayingProxy.Hold ofR2;
    private DelayingProxy.Hold expansion;

    private Scenario(Cluster cluster, boolean control) {
      this.cluster = cluster;
      this.control = control;
      answers = cluster.alterPartitionAnswers();
    }

    private Story.Outcome run() throws Exception {
      slowFetchesOfR3();
      try (KafkaProducer<String, String> producer = cluster.producer()) {
        ofR2 = cluster.toBroker1().hold(Requests.fetchesOf(2));
        ofR2.awaitCaught("r2's fetch from r1", 60);
        Future<RecordMetadata> answer = producer.send(new ProducerRecord<>("t", 0, "key", "A"));
        Cluster.await("r1 appends A", 60, () -> cluster.node(1).state("logEnd").equals("1"));
        Story.step("a producer sends A with acks=all to r1; r2's fetches are slow, too, for now");
        dropR3AndProposeIt();
        ofR2.release();
        boolean acknowledged = Cluster.acknowledged(answer, patience(control));
        return acceptThenElectR3(cluster, expansion, answers, acknowledged);
      }
    }

    private void slowFetchesOfR3() throws Exception {
      ofR3 = cluster.toBroker1().holdOne(Requests.fetchesOf(3));
      ofR3.awaitCaught("r3's fetch from r1", 60);
      cluster.toBroker1().hold(Requests.fetchesOf(3));
      Story.step("r3's fetches from r1 are slow, its heartbeats are not");
      Thread.sleep(LAG_MS);
      Story.step("replica.lag.time.max.ms has gone by; r3 is in the ISR, for there was no record");
    }

    private void dropR3AndProposeIt() throws Exception {
      DelayingProxy.Hold shrink =
          cluster.toController(1).holdOne(Requests.of(ApiKeys.ALTER_PARTITION));
      shrink.awaitCaught("r1's AlterPartition", 30);
      DelayingProxy.Hold metadata = cluster.toController(1).hold(Requests.of(ApiKeys.FETCH));
      metadata.awaitCaught("r1's metadata fetch", 60);
      int before = metadataOffset(cluster);
      expansion = cluster.toController(1).holdOne(Requests.of(ApiKeys.ALTER_PARTITION));
      shrink.release();
      Story.step(
          "r1 drops r3; answer: %s, before its metadata do", answers.poll(60, TimeUnit.SECONDS));
      Cluster.await("r1 drops r3", 60, () -> waitsFor(cluster).equals(Set.of("1", "2")));
      if (control) {
        hear(cluster, metadata, before);
        Story.step("(control: now the metadata of this change reach r1)");
      }
      ofR3.release();
      expansion.awaitCaught("r1's AlterPartition", 60);
      Story.step("a fetch of r3 comes through, from the watermark: r1 proposes r3; that is slow");
      Story.detail("r1 waits for %s", waitsFor(cluster));
      if (!control) {
        hear(cluster, metadata, before);
        Story.step("the metadata that say what the answer said reach r1");
        cluster.show();
        Story.detail("r1 waits for %s", waitsFor(cluster));
      }
    }
  }

  /**
   * Seconds for the producer's answer: less than controller.socket.timeout.ms, for r1's request is
   * on its way. With --control there will be none.
   */
  static int patience(boolean control) {
    return control ? 3 : 20;
  }

  /** Metadata that say one change more reach r1. */
  static void hear(Cluster cluster, DelayingProxy.Hold metadata, int before) throws Exception {
    metadata.release();
    Cluster.await("r1 hears the metadata", 60, () -> metadataOffset(cluster) == before + 1);
    Thread.sleep(200); // from its metadata cache to ReplicaManager.applyDelta
  }

  /** The proposal is accepted, r1 hears so from its metadata, and r3 is elected. */
  static Story.Outcome acceptThenElectR3(
      Cluster cluster,
      DelayingProxy.Hold proposal,
      BlockingQueue<String> answers,
      boolean acknowledged)
      throws Exception {
    int before = metadataOffset(cluster);
    cluster.show();
    proposal.release();
    Story.step(
        "r1's proposal reaches the controller; answer: %s", answers.poll(60, TimeUnit.SECONDS));
    Cluster.await(
        "r1 hears that r3 is in the ISR",
        60,
        () ->
            metadataOffset(cluster) == before + 1
                && waitsFor(cluster).equals(Set.of("1", "2", "3")));
    cluster.show();
    if (!cluster.electPreferred()) {
      throw new NotTried("r3 was not elected");
    }
    cluster.awaitR3WithoutRecord();
    Story.step("preferred election: r3 leads, and the others truncate");
    cluster.show();
    return Story.outcome(acknowledged, cluster.holdsRecord(3), "the log of the leader, r3");
  }

  /** The maximal ISR of r1. */
  static Set<String> waitsFor(Cluster cluster) throws Exception {
    return new TreeSet<>(List.of(cluster.node(1).state("maximal").split(" ")));
  }

  /** The partition epoch in r1's metadata. */
  static int metadataOffset(Cluster cluster) throws Exception {
    return Integer.parseInt(cluster.node(1).state("heard"));
  }
}
