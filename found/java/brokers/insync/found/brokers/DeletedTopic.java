package insync.found.brokers;

import insync.found.Story;
import java.time.Duration;
import java.util.List;

/**
 * The same as in insync.found.classes, on three real brokers, of which r3 is killed. With --control
 * nobody sets min.insync.replicas. The last line says whether r3 is up in time.
 */
public final class DeletedTopic {
  private static final Duration PATIENCE = Duration.ofSeconds(75);

  private DeletedTopic() {}

  /** Runs it. */
  public static void main(String[] arguments) throws Exception {
    boolean control = List.of(arguments).contains("--control");
    Cluster.play(2, List.of(1, 2, 3), 3, cluster -> run(cluster, control));
    System.exit(0);
  }

  private static Story.Outcome run(Cluster cluster, boolean control) throws Exception {
    for (int broker : new int[] {2, 3}) {
      cluster.node(broker).shutDown();
      cluster.node(broker).awaitEnd();
    }
    RemovedReplica.describe(cluster, "r2 and r3 shut down in order");
    if (!control) {
      cluster.setMinInsync(1);
      RemovedReplica.describe(cluster, "min.insync.replicas is set to 1");
    }
    for (int broker : new int[] {2, 3}) {
      cluster.restart(broker);
    }
    Cluster.await("all are in sync", 90, () -> cluster.describe().isr().size() == 3);
    RemovedReplica.describe(cluster, "r2 and r3 are back");
    cluster.deleteTopic();
    Story.step("the topic is deleted. The controller's epoch is %d", cluster.controllerEpoch());
    cluster.node(3).kill();
    Story.step("r3 is killed, and started again");
    cluster.start(3);
    boolean up = cluster.node(3).upWithin(PATIENCE);
    Story.step("The controller's epoch is %d", cluster.controllerEpoch());
    System.out.println(
        up ? "r3 is up" : "r3 is not up after " + PATIENCE.toSeconds() + " s");
    return null;
  }
}
