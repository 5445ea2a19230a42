package insync.found.brokers;

import insync.found.Story;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * min.insync.replicas is raised, and the leader applies the ISR's next change before it, on three
 * real brokers: found/raised-min-insync. r1's metadata fetches are slow for a moment, r2's fetches
 * from r1 for longer. With --control the first are not slow.
 */
public final class RaisedMinInsync {
  private RaisedMinInsync() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Story.play(
        RaisedMinInsync.class,
        arguments,
        control -> Cluster.play(1, List.of(1, 2), cluster -> run(cluster, control)));
  }

  private static Story.Outcome run(Cluster cluster, boolean control) throws Exception {
    cluster.toBroker1().hold(Requests.fetchesOf(2)).awaitCaught("r2's fetch from r1", 60);
    Story.step("r2's fetches from r1 are slow; r2 is in the ISR");
    try (KafkaProducer<String, String> producer = cluster.producer()) {
      Future<RecordMetadata> answer = producer.send(new ProducerRecord<>("t", 0, "key", "A"));
      Cluster.await("r1 appends A", 60, () -> cluster.node(1).state("logEnd").equals("1"));
      Story.step("a producer sends A with acks=all to r1, which waits for r2");
      cluster.show();
      raiseAndStopR2(cluster, control);
      boolean acknowledged = Cluster.acknowledged(answer, 3);
      cluster.show();
      cluster.restart(2);
      Cluster.await("r2 is back", 90, () -> cluster.node(1).state("fenced2").equals("false"));
      Story.step("r2 has started again; it is in the ELR, and its fetches are slow as before");
      cluster.node(1).shutDown();
      Cluster.await("r2 leads", 120, () -> cluster.node(2).state("leader").equals("2"));
      Story.step("r1 shuts down in order; r2 is elected, from the ELR. No broker has crashed");
      cluster.show();
      return Story.outcome(acknowledged, cluster.holdsRecord(2), "the log of the leader, r2");
    }
  }

  private static void raiseAndStopR2(Cluster cluster, boolean control) throws Exception {
    DelayingProxy.Hold metadata = null;
    if (control) {
      Story.step("(control: r1's metadata fetches are not slow)");
    } else {
      metadata = cluster.toController(1).hold(Requests.of(ApiKeys.FETCH));
      metadata.awaitCaught("r1's metadata fetch", 60);
      Story.step("r1's metadata fetches are slow from now on; its heartbeats are not");
    }
    cluster.setMinInsync(2);
    Story.step("min.insync.replicas of the topic is raised from 1 to 2");
    cluster.node(2).shutDown();
    Cluster.await(
        "r2 leaves the ISR", 60, () -> Cluster.ids(cluster.describe().isr()).equals(List.of(1)));
    Story.step(
        "r2 shuts down in order. Controller: ISR %s, ELR %s",
        Cluster.ids(cluster.describe().isr()), Cluster.ids(cluster.describe().elr()));
    if (metadata != null) {
      metadata.release();
      Story.step("r1's metadata fetch goes through: both changes come in one answer");
    }
    Cluster.await(
        "r1 has heard", 60, () -> Cluster.isr(cluster.node(1).state()).equals(Set.of("1")));
  }
}
