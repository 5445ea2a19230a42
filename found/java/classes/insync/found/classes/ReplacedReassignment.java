package insync.found.classes;

import insync.found.Story;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * A reassignment from r1, r2, r3 to r1, r2, r4 is under way when somebody asks for the old replicas
 * again, or with --wider for all four, on the controller's own classes; then the leader proposes an
 * ISR with all four. With --control somebody cancels instead. The last line says what is left.
 */
public final class ReplacedReassignment {
  private ReplacedReassignment() {}

  /** Runs it. */
  public static void main(String[] arguments) {
    List<String> given = List.of(arguments);
    HeldController controller = new HeldController(4, 0, List.of(0, 1, 2), 2, false, true);
    ask(controller, List.of(0, 1, 3), "the partition is to move from r3 to r4");
    if (given.contains("--control")) {
      ask(controller, null, "the move is cancelled");
    } else if (given.contains("--wider")) {
      ask(controller, List.of(0, 1, 2, 3), "all four are asked for instead");
    } else {
      ask(controller, List.of(0, 1, 2), "the old replicas are asked for again");
    }
    controller.alter(isrOfAll(controller));
    show("the leader proposes all replicas as ISR", controller.partition());
    System.out.printf(
        "%s, replicas %s%n",
        controller.reassigning() ? "under way" : "complete",
        Arrays.stream(controller.partition().replicas).map(id -> id + 1).sorted().boxed().toList());
    System.exit(0);
  }

  private static void ask(HeldController controller, List<Integer> target, String what) {
    Story.detail("%s", controller.reassign(target));
    show(what, controller.partition());
  }

  private static AlterPartitionRequestData isrOfAll(HeldController controller) {
    PartitionRegistration now = controller.partition();
    List<BrokerState> members =
        IntStream.of(now.replicas)
            .mapToObj(id -> new BrokerState().setBrokerId(id).setBrokerEpoch(controller.epoch(id)))
            .toList();
    AlterPartitionRequestData request =
        new AlterPartitionRequestData()
            .setBrokerId(now.leader)
            .setBrokerEpoch(controller.epoch(now.leader));
    AlterPartitionRequestData.PartitionData partition =
        new AlterPartitionRequestData.PartitionData()
            .setPartitionIndex(0)
            .setLeaderEpoch(now.leaderEpoch)
            .setPartitionEpoch(now.partitionEpoch)
            .setNewIsrWithEpochs(members);
    request
        .topics()
        .add(
            new AlterPartitionRequestData.TopicData()
                .setTopicId(controller.topic())
                .setPartitions(List.of(partition)));
    return request;
  }

  private static void show(String when, PartitionRegistration partition) {
    Story.step(
        "%s: replicas %s, adding %s, removing %s, ISR %s",
        when,
        Replicas.numbers(partition.replicas),
        Replicas.numbers(partition.addingReplicas),
        Replicas.numbers(partition.removingReplicas),
        Replicas.numbers(partition.isr));
  }
}
