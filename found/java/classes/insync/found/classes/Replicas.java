package insync.found.classes;

import insync.found.AppInfo;
import insync.found.Story;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.controller.InProcessController;
import org.apache.kafka.metadata.PartitionRegistration;

/** A controller and three replicas of one partition, r1 leading, r3 its preferred leader. */
public final class Replicas {
  final Clock clock = new Clock();
  final InProcessController controller = new InProcessController(clock);
  final AlterPartitionChannel channel;
  final Broker r1;
  final Broker r2;
  final Broker r3;
  private final Path folder;

  /** What happens to them, with or without the decisive condition. Returns {@link Story}'s code. */
  interface Scenario {
    int run(Replicas all, boolean control) throws Exception;
  }

  /** The whole program: the scenario, with --control if it is among the arguments; ends the JVM. */
  static void play(String[] arguments, Scenario scenario) throws Exception {
    Replicas replicas = new Replicas();
    int code = scenario.run(replicas, List.of(arguments).contains("--control"));
    replicas.remove();
    System.exit(code);
  }

  Replicas() throws Exception {
    Story.step("Kafka %s, its classes in one JVM", AppInfo.version());
    folder = Files.createTempDirectory("insync-found-");
    channel = new AlterPartitionChannel(1, controller, clock);
    r1 = new Broker(1, controller, clock, folder, channel.manager());
    r2 = broker(2);
    r3 = broker(3);
    controller.assign(List.of(3, 1, 2));
    all().forEach(Broker::learn);
    r2.fetchFrom(r1);
    r3.fetchFrom(r1);
    Story.step("three replicas, min.insync.replicas=2, unclean election off; preferred leader r3");
    show();
  }

  private Broker broker(int id) throws Exception {
    Object manager = new AlterPartitionChannel(id, controller, clock).manager();
    return new Broker(id, controller, clock, folder, manager);
  }

  List<Broker> all() {
    return List.of(r1, r2, r3);
  }

  /** Prints the controller's state and every broker's. */
  void show() {
    PartitionRegistration partition = controller.partition();
    Story.detail(
        "controller: leader r%d, epoch %d, partition epoch %d, ISR %s",
        partition.leader,
        partition.leaderEpoch,
        partition.partitionEpoch,
        Arrays.toString(partition.isr));
    all().forEach(broker -> Story.detail("%s", broker));
  }

  /** A copy of r1's AlterPartition reaches the controller; says what the controller answers. */
  String deliver(AlterPartitionChannel.Copy copy) {
    AlterPartitionResponseData answer = channel.deliver(copy, controller);
    AlterPartitionResponseData.PartitionData partition = answer.topics().get(0).partitions().get(0);
    Errors error = Errors.forCode(partition.errorCode());
    return error == Errors.NONE ? "accepted, ISR " + partition.isr() : "refused, " + error;
  }

  /** Removes the logs. */
  void remove() throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    }
  }
}
