package insync.found.brokers;

import insync.found.Story;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * A replica that was removed stays in the ELR, and is elected from it when it is added again, on
 * three real brokers: found/removed-replica. Only r2's fetches are slow: it has yet to catch up.
 * With --control it is another broker that was removed.
 */
public final class RemovedReplica {
  private RemovedReplica() {}

  /** Exits with {@link Story}'s codes. */
  public static void main(String[] arguments) throws Exception {
    System.setProperty("insync.partition", "1");
    boolean control = List.of(arguments).contains("--control");
    List<Integer> replicas = control ? List.of(1, 3) : List.of(1, 2);
    Cluster.play(2, replicas, cluster -> run(cluster, control));
  }

  private static int run(Cluster cluster, boolean control) throws Exception {
    if (control) {
      Story.step("(control: the other replica is r3, so r2 never was one)");
    }
    cluster.assign(List.of(1));
    Cluster.await(
        "r1 is the only replica",
        60,
        () -> Cluster.ids(cluster.described().replicas()).equals(List.of(1)));
    elr(cluster, "t-1 is reassigned to r1 alone");
    try (KafkaProducer<String, String> producer = cluster.producer()) {
      var sent = producer.send(new ProducerRecord<>("t", 1, "key", "A"));
      long offset = sent.get(60, TimeUnit.SECONDS).offset();
      Story.step("a producer sends A with acks=all: it is told that A is committed, at %d", offset);
    }
    cluster.toBroker1().hold(Requests.fetchesOf(2));
    cluster.assign(List.of(1, 2));
    Cluster.await("r2 is being added", 60, () -> cluster.node(2).state("leader").equals("1"));
    elr(cluster, "t-1 is reassigned to r1 and r2; r2 has yet to catch up");
    cluster.show();
    cluster.node(1).shutDown();
    Cluster.await("r1 leads no more", 120, () -> !cluster.node(2).state("leader").equals("1"));
    boolean elected = cluster.node(2).state("leader").equals("2");
    Story.step(
        "r1 shuts down in order; %s",
        elected ? "r2 is elected, from the ELR" : "nobody is elected until r1 is back");
    cluster.show();
    boolean held = !elected || cluster.holdsRecord(2);
    return Story.verdict(true, held, elected ? "the log of the leader, r2" : "r1's log");
  }

  private static void elr(Cluster cluster, String what) throws Exception {
    var partition = cluster.described();
    Story.step(
        "%s. Controller: replicas %s, ISR %s, ELR %s",
        what,
        Cluster.ids(partition.replicas()),
        Cluster.ids(partition.isr()),
        Cluster.ids(partition.elr()));
  }
}
