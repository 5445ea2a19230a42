package insync.found.brokers;

import insync.found.Story;
import java.util.List;

/**
 * A broker starts without the log directory that had its replica, which was taken out of log.dirs,
 * and leads with an empty log, on four real brokers: found/removed-directory. Brokers stop in order
 * only. r1's other directory has the mark of a clean shutdown, so r1 stays in the ELR. With --control
 * there is an empty directory in the place of the one that is gone.
 */
public final class RemovedDirectory {
  private RemovedDirectory() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Story.play(
        RemovedDirectory.class,
        arguments,
        control ->
            Cluster.playWithTwoDirectories(
                2, List.of(1, 2, 3), cluster -> run(cluster, control, List.of(3, 1, 2))));
  }

  /** The story with the order in which the brokers stop. */
  static Story.Outcome run(Cluster cluster, boolean control, List<Integer> order) throws Exception {
    RemovedReplica.produceA(cluster);
    for (int broker : order) {
      cluster.node(broker).shutDown();
      cluster.node(broker).awaitEnd();
      Thread.sleep(1000);
      RemovedReplica.describe(cluster, "r%d shuts down in order".formatted(broker));
    }
    cluster.loseDirectory(1, control);
    cluster.restart(1);
    Story.step(
        control
            ? "(control: r1 starts with an empty directory in the place of the one with its replica)"
            : "r1 starts; the directory with its replica was taken out of log.dirs");
    boolean elected = leads(cluster, 1);
    RemovedReplica.describe(cluster, elected ? "r1 is elected" : "nobody is elected");
    cluster.show();
    cluster.restart(2);
    Cluster.await("somebody leads", 90, () -> cluster.leaderSeenBy(2) > 0);
    cluster.restart(3);
    int leader = cluster.leaderSeenBy(2);
    Cluster.await(
        "all have what the leader has",
        90,
        () -> {
          String end = cluster.node(leader).state("logEnd");
          return List.of(1, 2, 3).stream().allMatch(broker -> follows(cluster, broker, leader, end));
        });
    RemovedReplica.describe(cluster, "r2 and r3 are back");
    cluster.show();
    return Story.outcome(
        true, cluster.holdsRecord(leader), "the log of the leader, r%d".formatted(leader));
  }

  /** Whether this broker is elected while no other is there; that takes it a second, or never. */
  private static boolean leads(Cluster cluster, int broker) throws InterruptedException {
    for (int tries = 0; tries < 300; tries++) {
      if (Integer.toString(broker).equals(cluster.node(broker).state("leader"))) {
        return true;
      }
      Thread.sleep(100);
    }
    return false;
  }

  private static boolean follows(Cluster cluster, int broker, int leader, String end) {
    try {
      var state = cluster.node(broker).state();
      return Integer.toString(leader).equals(state.get("leader"))
          && end.equals(state.get("logEnd"));
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
