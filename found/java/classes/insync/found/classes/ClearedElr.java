package insync.found.classes;

import insync.found.Story;
import java.util.List;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * Somebody sets min.insync.replicas while nobody is in sync, on the controller's own classes. With
 * --control nobody does. The last line says whether the partition has a leader when all brokers are
 * back.
 */
public final class ClearedElr {
  private ClearedElr() {}

  /** Runs it. */
  public static void main(String[] arguments) {
    HeldController controller = new HeldController(3, 0, 2, false, true);
    for (int broker : new int[] {1, 2, 0}) {
      controller.fence(broker);
    }
    show("all three lost their session", controller.partition());
    if (!List.of(arguments).contains("--control")) {
      controller.setMinimum(3);
      show("min.insync.replicas is set", controller.partition());
    }
    for (int broker = 0; broker < 3; broker++) {
      controller.heartbeat(broker, false);
    }
    show("all three are back", controller.partition());
    System.out.println("leads: " + (controller.partition().leader < 0 ? "nobody" : "somebody"));
    System.exit(0);
  }

  private static void show(String when, PartitionRegistration partition) {
    Story.step(
        "%s: leader %d, ISR %s, ELR %s, last known leader %s",
        when,
        partition.leader < 0 ? -1 : partition.leader + 1,
        Replicas.numbers(partition.isr),
        Replicas.numbers(partition.elr),
        Replicas.numbers(partition.lastKnownElr));
  }
}
