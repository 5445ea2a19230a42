package insync.found.brokers;

import insync.found.Story;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * The same with a reassignment to fewer replicas than min.insync.replicas, on three real brokers:
 * found/removed-replica, the way "fewer". Only r2's fetches are slow: it has yet to catch up. With
 * --control it is another broker that was removed.
 */
public final class RemovedReplica {
  private RemovedReplica() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    System.setProperty("insync.partition", "1");
    Story.play(
        RemovedReplica.class,
        arguments,
        control ->
            Cluster.play(
                2, control ? List.of(1, 3) : List.of(1, 2), cluster -> run(cluster, control)));
  }

  private static Story.Outcome run(Cluster cluster, boolean control) throws Exception {
    if (control) {
      Story.step("(control: the other replica is r3, so r2 never was one)");
    }
    cluster.assign(List.of(1));
    Cluster.await(
        "r1 is the only replica",
        60,
        () -> Cluster.ids(cluster.describe().replicas()).equals(List.of(1)));
    describe(cluster, "t-1 is reassigned to r1 alone");
    produceA(cluster);
    cluster.toBroker1().hold(Requests.fetchesOf(2));
    cluster.assign(List.of(1, 2));
    Cluster.await("r2 is being added", 60, () -> cluster.node(2).state("leader").equals("1"));
    describe(cluster, "t-1 is reassigned to r1 and r2; r2 has yet to catch up");
    cluster.show();
    boolean elected = stopR1(cluster, 2);
    if (elected) {
      return Story.outcome(true, cluster.holdsRecord(2), "the log of the leader, r2");
    }
    return r1IsBack(cluster);
  }

  static void produceA(Cluster cluster) throws Exception {
    try (KafkaProducer<String, String> producer = cluster.producer()) {
      int partition = Cluster.PARTITION.partition();
      var sent = producer.send(new ProducerRecord<>("t", partition, "key", "A"));
      long offset = sent.get(60, TimeUnit.SECONDS).offset();
      Story.step("a producer sends A with acks=all: it is told that A is committed, at %d", offset);
    }
  }

  /** Stops the leader, r1, in order; whether that broker is elected. */
  static boolean stopR1(Cluster cluster, int successor) throws Exception {
    cluster.node(1).shutDown();
    Cluster.await("r1 leads no more", 120, () -> cluster.leaderSeenBy(successor) != 1);
    boolean elected = cluster.leaderSeenBy(successor) == successor;
    describe(
        cluster,
        "r1 shuts down in order; "
            + (elected
                ? "r%d is elected".formatted(successor)
                : "nobody is elected until r1 is back"));
    cluster.show();
    return elected;
  }

  /** Nobody was elected: r1 starts again, and leads with what it has. */
  static Story.Outcome r1IsBack(Cluster cluster) throws Exception {
    cluster.restart(1);
    Cluster.await("r1 leads again", 90, () -> cluster.node(1).state("leader").equals("1"));
    Story.step("r1 has started again, and leads");
    cluster.show();
    return Story.outcome(true, cluster.holdsRecord(1), "the log of the leader, r1");
  }

  static void describe(Cluster cluster, String what) throws Exception {
    var partition = cluster.describe();
    Story.step(
        "%s. Controller: replicas %s, ISR %s, ELR %s",
        what,
        Cluster.ids(partition.replicas()),
        Cluster.ids(partition.isr()),
        Cluster.ids(partition.elr()));
  }
}
