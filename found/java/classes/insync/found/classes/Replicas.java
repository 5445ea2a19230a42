package insync.found.classes;

import insync.found.AppInfo;
import insync.found.Story;
import insync.kafka.Replica;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.PartitionRegistration;

/** A controller and three replicas of one partition, r1 leading, r3 its preferred leader. */
public final class Replicas {
  final HeldController controller = new HeldController(3, 0, 2, false, true);
  final Replica r1 = new Replica(0, controller);
  final Replica r2 = new Replica(1, controller);
  final Replica r3 = new Replica(2, controller);

  /** What happens to them, with or without the decisive condition. */
  interface Scenario {
    Story.Outcome run(Replicas all, boolean control) throws Exception;
  }

  /** The whole program ({@link Story#play}) on three new replicas. */
  static void play(Class<?> story, String[] arguments, Scenario scenario) throws Exception {
    Story.play(story, arguments, control -> scenario.run(new Replicas(), control));
  }

  Replicas() throws Exception {
    Story.step("Kafka %s, its classes in one JVM", AppInfo.version());
    controller.prefer(r3.id);
    r2.fetchFrom(r1);
    r3.fetchFrom(r1);
    Story.step("three replicas, min.insync.replicas=2, unclean election off; preferred leader r3");
    show();
  }

  List<Replica> all() {
    return List.of(r1, r2, r3);
  }

  /** Prints the controller's state and every broker's. */
  void show() {
    PartitionRegistration partition = controller.partition();
    Story.detail(
        "controller: leader r%d, epoch %d, partition epoch %d, ISR %s",
        partition.leader + 1,
        partition.leaderEpoch,
        partition.partitionEpoch,
        numbers(partition.isr));
    all().forEach(replica -> Story.detail("%s", replica));
  }

  /** Prints who is in sync, and who is eligible. */
  static void showSets(String when, HeldController controller) {
    PartitionRegistration partition = controller.partition();
    Story.step("%s: ISR %s, ELR %s", when, numbers(partition.isr), numbers(partition.elr));
  }

  /** Brokers by their numbers in a story, of which Kafka's ids are one less. */
  static List<Integer> numbers(int[] ids) {
    return Arrays.stream(ids).mapToObj(id -> id + 1).toList();
  }
}
