package insync.found.brokers;

import insync.found.Story;
import java.util.List;
import java.util.Set;

/**
 * The same where a reassignment is cancelled, and asked for again: found/removed-replica, the way
 * "cancel", on four real brokers. A partition is to move from r1 and r2 to r3 and r4; r2 and r4 are
 * down. r3 has caught up when the move is cancelled, so it is in the ELR without being a replica.
 * After the second try r3's fetches are slow. With --control they are not: r3 catches up.
 */
public final class CancelledMove {
  private CancelledMove() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Story.play(
        CancelledMove.class,
        arguments,
        control -> Cluster.play(2, List.of(1, 2), 4, cluster -> run(cluster, control)));
  }

  private static Story.Outcome run(Cluster cluster, boolean control) throws Exception {
    RemovedReplica.produceA(cluster);
    for (int broker : List.of(2, 4)) {
      cluster.node(broker).shutDown();
      cluster.node(broker).awaitEnd();
    }
    awaitIsr(cluster, Set.of(1));
    RemovedReplica.describe(cluster, "r2 and r4 shut down in order");
    cluster.assign(List.of(3, 4));
    awaitIsr(cluster, Set.of(1, 3));
    RemovedReplica.describe(cluster, "the partition is to move to r3 and r4; r3 has caught up");
    cluster.cancelReassignment();
    Cluster.await(
        "r3 is no replica",
        60,
        () -> Set.copyOf(Cluster.ids(cluster.describe().replicas())).equals(Set.of(1, 2)));
    RemovedReplica.describe(cluster, "the move is cancelled");
    Cluster.await("r3 has no replica", 60, () -> cluster.node(3).hasNoReplica());
    if (!control) {
      cluster.toBroker1().hold(Requests.fetchesOf(3));
    }
    cluster.assign(List.of(3, 4));
    Cluster.await("r3 is being added", 60, () -> cluster.node(3).state("leader").equals("1"));
    if (control) {
      awaitIsr(cluster, Set.of(1, 3));
    }
    RemovedReplica.describe(
        cluster,
        "the move is asked for again; r3 has " + (control ? "caught up" : "yet to catch up"));
    cluster.show();
    if (!RemovedReplica.stopR1(cluster, 3)) {
      return RemovedReplica.r1IsBack(cluster);
    }
    cluster.node(1).awaitEnd();
    cluster.restart(1);
    Cluster.await(
        "r1 follows r3, and has what it has",
        90,
        () -> {
          var state = cluster.node(1).state();
          String end = cluster.node(3).state("logEnd");
          return "3".equals(state.get("leader")) && end.equals(state.get("logEnd"));
        });
    RemovedReplica.describe(cluster, "r1 is back");
    cluster.show();
    return Story.outcome(true, cluster.holdsRecord(3), "the log of the leader, r3");
  }

  private static void awaitIsr(Cluster cluster, Set<Integer> members) throws Exception {
    Cluster.await(
        "the ISR is " + members,
        90,
        () -> Set.copyOf(Cluster.ids(cluster.describe().isr())).equals(members));
  }
}
