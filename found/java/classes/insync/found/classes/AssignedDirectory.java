package insync.found.classes;

import insync.found.Story;
import java.util.Arrays;
import java.util.OptionalLong;
import org.apache.kafka.controller.HeldController;

/**
 * r2 starts with an empty disk and tells in which directory its replica is, while r3 is in the ELR,
 * on the controller's own classes. The last line says whether the ELR is as before.
 */
public final class AssignedDirectory {
  private static final int R2 = 1;
  private static final int R3 = 2;

  private AssignedDirectory() {}

  /** Runs it. */
  public static void main(String[] arguments) {
    HeldController controller = new HeldController(3, 0, 2, false, true);
    controller.fence(R2);
    controller.fence(R3);
    Replicas.showSets("r2 and r3 lost their session", controller);
    controller.stopped(R2);
    controller.restarts(R2, OptionalLong.empty(), HeldController.directory(R2, 1));
    Replicas.showSets("r2 has an empty disk, and registers", controller);
    int[] before = controller.partition().elr;
    controller.assign(R2, HeldController.directory(R2, 1));
    Replicas.showSets("r2 tells of its new directory", controller);
    boolean same = Arrays.equals(before, controller.partition().elr);
    System.out.println("the ELR is " + (same ? "as before" : "empty"));
    System.exit(0);
  }
}
