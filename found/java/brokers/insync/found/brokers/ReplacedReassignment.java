package insync.found.brokers;

import insync.found.Story;
import java.time.Duration;
import java.util.List;
import java.util.Set;

/**
 * The same as in insync.found.classes, on four real brokers. r4 is down when the partition is to
 * move to r1, r2, r4, and when the old replicas are asked for again; then r4 starts, and catches up
 * if it is a replica. With --control somebody cancels instead. The last line says what is left
 * after a minute.
 */
public final class ReplacedReassignment {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private ReplacedReassignment() {}

  /** Runs it. */
  public static void main(String[] arguments) throws Exception {
    boolean control = List.of(arguments).contains("--control");
    Cluster.play(2, List.of(1, 2, 3), 4, cluster -> run(cluster, control));
    System.exit(0);
  }

  private static Story.Outcome run(Cluster cluster, boolean control) throws Exception {
    cluster.node(4).shutDown();
    cluster.node(4).awaitEnd();
    cluster.assign(List.of(1, 2, 4));
    RemovedReplica.describe(cluster, "the partition is to move from r3 to r4, which is down");
    if (control) {
      cluster.cancelReassignment();
    } else {
      cluster.assign(List.of(1, 2, 3));
    }
    RemovedReplica.describe(
        cluster, control ? "the move is cancelled" : "the old replicas are asked for again");
    cluster.restart(4);
    if (!control) {
      Cluster.await(
          "r4 is in sync",
          90,
          () -> Set.copyOf(Cluster.ids(cluster.describe().isr())).contains(4));
    }
    Thread.sleep(PATIENCE.toMillis());
    RemovedReplica.describe(cluster, PATIENCE.toSeconds() + " s later");
    String left = cluster.reassignment();
    System.out.println(left.isEmpty() ? "complete" : "under way, " + left);
    return null;
  }
}
