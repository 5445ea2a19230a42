package insync.found.brokers;

import insync.found.AppInfo;
import insync.found.Story;
import java.io.IOException;
import java.io.PrintStream;
import java.io.Writer;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A controller and three brokers, each in a JVM of its own, with Kafka's default configuration.
 * Broker 1 and 3 reach the controller, and everybody reaches broker 1, through a {@link
 * DelayingProxy}.
 */
final class Cluster implements AutoCloseable {
  static final TopicPartition PARTITION = new TopicPartition("t", 0);
  private static final int CONTROLLER = 100;

  private final Path folder = Files.createTempDirectory("insync-found-");
  private final int[] ports = new int[4];
  private final DelayingProxy toController1;
  private final DelayingProxy toController3;
  private final DelayingProxy toBroker1;
  private final Node[] nodes = new Node[4];
  private final Admin admin;

  /** Started; topic t has one partition of three replicas, r1 leads, all in sync, r3 preferred. */
  Cluster() throws Exception {
    int controllerPort = freePort();
    for (int broker = 1; broker <= 3; broker++) {
      ports[broker] = freePort();
    }
    toController1 = new DelayingProxy(0, controllerPort);
    toController3 = new DelayingProxy(0, controllerPort);
    toBroker1 = new DelayingProxy(0, ports[1]);
    Story.step("starting a controller and three brokers, Kafka %s", AppInfo.version());
    String clusterId = Uuid.randomUuid().toString();
    nodes[0] = node(CONTROLLER, clusterId, controllerPort, controllerPort);
    int[] via = {0, toController1.port(), controllerPort, toController3.port()};
    for (int broker = 1; broker <= 3; broker++) {
      nodes[broker] = node(broker, clusterId, ports[broker], via[broker]);
    }
    for (Node node : nodes) {
      node.awaitUp();
    }
    admin = Admin.create(Map.of("bootstrap.servers", bootstrap()));
    createTopic();
    Story.step(
        "topic t: replication factor 3, min.insync.replicas=2, unclean election off;"
            + " r1 leads, preferred leader r3");
    show();
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  private String bootstrap() {
    return "localhost:" + ports[2];
  }

  private Node node(int id, String clusterId, int port, int controllerPort) throws Exception {
    boolean controller = id == CONTROLLER;
    Properties properties = new Properties();
    properties.put("node.id", Integer.toString(id));
    properties.put("process.roles", controller ? "controller" : "broker");
    properties.put("controller.quorum.voters", CONTROLLER + "@localhost:" + controllerPort);
    properties.put("controller.listener.names", "CONTROLLER");
    properties.put("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT");
    String listener = controller ? "CONTROLLER://localhost:" : "PLAINTEXT://localhost:";
    properties.put("listeners", listener + port);
    if (!controller) {
      int advertised = id == 1 ? toBroker1.port() : port;
      properties.put("advertised.listeners", listener + advertised);
    }
    properties.put("log.dirs", folder.resolve("data-" + id).toString());
    properties.put("log.cleaner.enable", "false"); // 128 MB, and nothing here is compacted
    Path file = folder.resolve("node-" + id + ".properties");
    try (Writer writer = Files.newBufferedWriter(file)) {
      properties.store(writer, null);
    }
    format(clusterId, file);
    return new Node(id, file);
  }

  private static void format(String clusterId, Path file) throws Exception {
    String[] arguments = {"format", "--cluster-id", clusterId, "--config", file.toString()};
    var told = new java.io.ByteArrayOutputStream();
    int code =
        kafka.tools.StorageTool.execute(
            arguments, new PrintStream(told, true, StandardCharsets.UTF_8));
    if (code != 0) {
      throw new NotTried("the folder cannot be formatted: " + told);
    }
  }

  private void createTopic() throws Exception {
    NewTopic topic =
        new NewTopic(PARTITION.topic(), Map.of(0, List.of(1, 2, 3)))
            .configs(Map.of("min.insync.replicas", "2"));
    admin.createTopics(List.of(topic)).all().get();
    await(
        "r1 leads and all followers have fetched",
        60,
        () -> {
          Map<String, String> state = node(1).state();
          return "1".equals(state.get("leader"))
              && "0".equals(state.get("end2"))
              && "0".equals(state.get("end3"))
              && isr(state).equals(Set.of("1", "2", "3"));
        });
    admin
        .alterPartitionReassignments(
            Map.of(PARTITION, Optional.of(new NewPartitionReassignment(List.of(3, 1, 2)))))
        .all()
        .get();
    await("r3 is the preferred leader", 60, () -> described().replicas().get(0).id() == 3);
    Thread.sleep(1500); // every broker has heard of it
  }

  /** A broker. */
  Node node(int broker) {
    return nodes[broker];
  }

  /** The path from broker 1 to the controller. */
  DelayingProxy fromBroker1ToController() {
    return toController1;
  }

  /** The path from broker 3 to the controller. */
  DelayingProxy fromBroker3ToController() {
    return toController3;
  }

  /** The path from everybody to broker 1. */
  DelayingProxy toBroker1() {
    return toBroker1;
  }

  /** The members of the ISR in a broker's state. */
  static Set<String> isr(Map<String, String> state) {
    return Set.of(state.getOrDefault("isr", "").split(" "));
  }

  /** What the metadata of a broker that runs says. */
  TopicPartitionInfo described() throws Exception {
    return admin
        .describeTopics(List.of(PARTITION.topic()))
        .allTopicNames()
        .get()
        .get(PARTITION.topic())
        .partitions()
        .get(0);
  }

  /** kafka-leader-election.sh --election-type preferred. False if the controller declines. */
  boolean electPreferred() throws Exception {
    try {
      admin.electLeaders(ElectionType.PREFERRED, Set.of(PARTITION)).all().get();
      return true;
    } catch (java.util.concurrent.ExecutionException e) {
      Story.detail("the controller declines: %s", e.getCause().getMessage());
      return false;
    }
  }

  /** A producer with acks=all that sends once: what it is told is about that one time. */
  KafkaProducer<String, String> producer() {
    return new KafkaProducer<>(
        Map.of("bootstrap.servers", bootstrap(), "retries", 0, "enable.idempotence", false),
        new StringSerializer(),
        new StringSerializer());
  }

  /**
   * Whether the log of this broker, which leads, has the record; and what a consumer reads there.
   */
  boolean holdsRecord(int leader) throws InterruptedException {
    boolean holds = !node(leader).state("logEnd").equals("0");
    Map<String, Object> configuration =
        Map.of("bootstrap.servers", bootstrap(), "default.api.timeout.ms", 10_000);
    try (KafkaConsumer<String, String> consumer =
        new KafkaConsumer<>(configuration, new StringDeserializer(), new StringDeserializer())) {
      consumer.assign(List.of(PARTITION));
      consumer.seekToBeginning(List.of(PARTITION));
      long end = consumer.endOffsets(List.of(PARTITION)).get(PARTITION);
      int records = end == 0 ? 0 : consumer.poll(Duration.ofSeconds(10)).count();
      Story.detail("a consumer reads %d record(s) from offset 0 to the end, %d", records, end);
    } catch (TimeoutException e) {
      Story.detail("a consumer waits until the ISR has min.insync.replicas again");
    }
    return holds;
  }

  /** Prints what the brokers think. */
  void show() throws Exception {
    for (int broker = 1; broker <= 3; broker++) {
      Story.detail("%s", nodes[broker].line());
    }
  }

  /** Something that comes to pass. */
  interface Condition {
    boolean holds() throws Exception;
  }

  /** Waits for it; {@link NotTried} if it does not happen. */
  static void await(String what, int seconds, Condition condition) throws Exception {
    long deadline = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
    while (!condition.holds()) {
      if (System.nanoTime() > deadline) {
        throw new NotTried("within " + seconds + " s this did not happen: " + what);
      }
      Thread.sleep(20);
    }
  }

  /** Kills all nodes and removes their folders. */
  @Override
  public void close() throws IOException {
    for (Node node : nodes) {
      if (node != null) {
        node.kill();
      }
    }
    try (Stream<Path> files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    }
  }
}
