package insync.found.brokers;

import insync.found.NotTried;
import insync.found.Story;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestHeader;

/**
 * A leader that is elected again commits at positions from before another's epoch, on three real
 * brokers: found/kept-positions. Two connections are slow for a few seconds: r3's fetches from r1,
 * and r1's metadata fetches. With --control the second is not slow.
 */
public final class KeptPositions {
  /**
   * r2 fetches again replica.fetch.backoff.ms (1 s) after it was refused. Where this machine is too
   * slow to stop r1 by then, r2's fetch is made to wait. Sooner r2 only forgets the partition in
   * its session.
   */
  private static final long SOON_NS = TimeUnit.MILLISECONDS.toNanos(700);

  private static final Predicate<RequestHeader> OF_R2 = Requests.fetchesOf(2);

  private KeptPositions() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Story.play(
        KeptPositions.class,
        arguments,
        control ->
            Cluster.play(2, List.of(1, 2, 3), cluster -> new Scenario(cluster, control).run()));
  }

  private static final class Scenario {
    private final Cluster cluster;
    private final boolean control;
    private final CountDownLatch refusal = new CountDownLatch(1);
    private DelayingProxy.Hold metadata;
    private DelayingProxy.Hold next;

    private Scenario(Cluster cluster, boolean control) {
      this.cluster = cluster;
      this.control = control;
    }

    private Story.Outcome run() throws Exception {
      cluster.toBroker1().hold(Requests.fetchesOf(3)).awaitCaught("r3's fetch from r1", 60);
      Story.step("r3's fetches from r1 are slow; r3 stays in the ISR for replica.lag.time.max.ms");
      try (KafkaProducer<String, String> producer = cluster.producer()) {
        Future<RecordMetadata> answer = producer.send(new ProducerRecord<>("t", 0, "key", "A"));
        Cluster.await("r2 acknowledges A", 60, () -> cluster.node(1).state("end2").equals("1"));
        Story.step(
            "a producer sends A with acks=all to r1; r2 fetches it; A is not acknowledged yet");
        cluster.show();
        slowMetadata();
        electR3();
        electR1Again();
        boolean acknowledged = Cluster.acknowledged(answer, 10);
        stopR1();
        return Story.outcome(acknowledged, cluster.holdsRecord(2), "the log of the leader, r2");
      }
    }

    private void slowMetadata() throws Exception {
      if (control) {
        Story.step("(control: r1's metadata fetches are not slow)");
        return;
      }
      metadata = cluster.toController(1).hold(Requests.of(ApiKeys.FETCH));
      metadata.awaitCaught("r1's metadata fetch", 60);
      Story.step("r1's metadata fetches are slow from now on; its heartbeats are not");
      cluster.toBroker1().listen(this::watchAnswer);
    }

    private void watchAnswer(DelayingProxy.Answer answered) {
      if (refusal.getCount() > 0
          && OF_R2.test(answered.request())
          && answered.body().errorCounts().containsKey(Errors.UNKNOWN_LEADER_EPOCH)) {
        long at = System.nanoTime();
        next = cluster.toBroker1().hold(r -> OF_R2.test(r) && System.nanoTime() - at > SOON_NS);
        refusal.countDown();
      }
    }

    private void electR3() throws Exception {
      if (!cluster.electPreferred()) {
        throw new NotTried("r3 was not elected");
      }
      Cluster.await(
          "r3 leads and r2 has truncated",
          60,
          () ->
              cluster.node(3).state("leader").equals("3")
                  && cluster.node(2).state("leader").equals("3")
                  && cluster.node(2).state("logEnd").equals("0"));
      Story.step("a preferred election makes r3 leader in epoch 1; r2 follows it and truncates");
      cluster.show();
    }

    private void electR1Again() throws Exception {
      cluster.node(3).shutDown();
      Cluster.await("r1 is elected again", 120, () -> cluster.node(2).state("epoch").equals("2"));
      Story.step("r3 shuts down in order; the controller elects r1 again, in epoch 2");
      if (control) {
        return;
      }
      if (!refusal.await(60, TimeUnit.SECONDS)) {
        throw new NotTried("r2 did not ask r1 in the new epoch");
      }
      Story.detail("r2 asks r1, is told UNKNOWN_LEADER_EPOCH, and waits replica.fetch.backoff.ms");
      metadata.release();
      Story.step("r1's metadata fetch goes through: both elections come in one answer");
    }

    private void stopR1() throws Exception {
      cluster.node(1).shutDown();
      Cluster.await("r2 leads", 120, () -> cluster.node(2).state("leader").equals("2"));
      Story.step("r1 shuts down in order; r2 is elected, from the ISR. No broker has crashed");
      if (next != null) {
        Story.detail(
            next.count() == 0
                ? "r1 was gone before r2 fetched again"
                : "r2's next fetch came earlier and was made to wait until here");
        next.release();
      }
      cluster.show();
    }
  }
}
