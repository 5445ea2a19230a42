package insync.found.classes;

import insync.found.Story;
import java.util.List;
import java.util.OptionalLong;
import org.apache.kafka.controller.HeldController;

/**
 * A topic is deleted some time after somebody set min.insync.replicas while r3 was in its ELR; then
 * r3 dies and registers, on the controller's own classes. With --control nobody sets
 * min.insync.replicas, with --clean r3 stops in order. The last line says whether r3 is registered.
 */
public final class DeletedTopic {
  private static final int R3 = 2;

  private DeletedTopic() {}

  /** Runs it. */
  public static void main(String[] arguments) {
    List<String> given = List.of(arguments);
    HeldController controller = new HeldController(3, 0, 2, false, true);
    controller.fence(1);
    controller.fence(R3);
    Replicas.showSets("r2 and r3 lost their session", controller);
    if (!given.contains("--control")) {
      controller.setMinimum(1);
      Replicas.showSets("min.insync.replicas is set to 1", controller);
    }
    controller.unfence(1);
    controller.unfence(R3);
    Replicas.showSets("r2 and r3 are back", controller);
    controller.deleteTopic();
    Story.step("the topic is deleted");
    controller.stopped(R3);
    OptionalLong told =
        given.contains("--clean") ? OptionalLong.of(controller.epoch(R3)) : OptionalLong.empty();
    try {
      controller.restarts(R3, told, HeldController.directory(R3, 0));
      System.out.println("r3 is registered");
    } catch (RuntimeException thrown) {
      System.out.println("r3 is not registered: " + thrown.getMessage());
    }
    System.exit(0);
  }
}
