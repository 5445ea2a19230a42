package insync.found.brokers;

import insync.found.Story;
import java.util.List;
import java.util.Set;

/**
 * A replica that was removed stays in the ELR, and is elected from it when it is added again, on
 * four real brokers: found/removed-replica. The reassignment keeps the replication factor: the
 * partition is moved from r2 to r1 while the other two replicas are down, and back. r2's fetches
 * are slow. With --control they are not: r2 catches up.
 */
public final class MovedReplica {
  private MovedReplica() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Story.play(
        MovedReplica.class,
        arguments,
        control -> Cluster.play(2, List.of(2, 3, 4), cluster -> run(cluster, control)));
  }

  private static Story.Outcome run(Cluster cluster, boolean control) throws Exception {
    RemovedReplica.produceA(cluster);
    moveToR1(cluster);
    if (!control) {
      cluster.toBroker1().hold(Requests.fetchesOf(2));
    }
    cluster.assign(List.of(2, 3, 4));
    Cluster.await("r2 is being added", 60, () -> cluster.node(2).state("leader").equals("1"));
    if (control) {
      Cluster.await(
          "r2 is in the ISR", 60, () -> Cluster.ids(cluster.describe().isr()).contains(2));
      RemovedReplica.describe(cluster, "(control: moved back, and r2 has caught up)");
    } else {
      RemovedReplica.describe(cluster, "moved back; r2 has yet to catch up");
    }
    cluster.show();
    if (!RemovedReplica.stopR1(cluster, 2)) {
      return RemovedReplica.r1IsBack(cluster);
    }
    cluster.node(1).awaitEnd();
    cluster.restart(3);
    cluster.restart(4);
    Cluster.await(
        "r3 and r4 follow r2, and have what it has",
        90,
        () -> {
          String end = cluster.node(2).state("logEnd");
          return List.of(3, 4).stream().allMatch(broker -> follows(cluster, broker, end));
        });
    RemovedReplica.describe(cluster, "r3 and r4 are back");
    cluster.show();
    return Story.outcome(true, cluster.holdsRecord(2), "the log of the leader, r2");
  }

  private static void moveToR1(Cluster cluster) throws Exception {
    for (int broker : List.of(3, 4)) {
      cluster.node(broker).shutDown();
      cluster.node(broker).awaitEnd();
    }
    Cluster.await(
        "the ISR is r2", 60, () -> Cluster.ids(cluster.describe().isr()).equals(List.of(2)));
    RemovedReplica.describe(cluster, "r3 and r4 shut down in order");
    cluster.assign(List.of(1, 3, 4));
    Cluster.await(
        "r2 is replaced by r1",
        90,
        () -> Set.copyOf(Cluster.ids(cluster.describe().replicas())).equals(Set.of(1, 3, 4)));
    RemovedReplica.describe(cluster, "the partition is moved from r2 to r1");
    Cluster.await("r2 has no replica", 60, () -> cluster.node(2).hasNoReplica());
  }

  private static boolean follows(Cluster cluster, int broker, String end) {
    try {
      var state = cluster.node(broker).state();
      return "2".equals(state.get("leader")) && end.equals(state.get("logEnd"));
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
