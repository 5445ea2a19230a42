package insync.found.brokers;

import insync.found.AppInfo;
import insync.found.Folders;
import insync.found.NotTried;
import insync.found.Story;
import java.io.IOException;
import java.io.PrintStream;
import java.io.Writer;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A controller and brokers, each in a JVM of its own, with Kafka's default configuration: three, or
 * as many as the partition needs. Broker 1 and 3 reach the controller, and everybody reaches broker
 * 1, through a {@link DelayingProxy}.
 */
final class Cluster implements AutoCloseable {
  /** The partition in question: 0, unless the scenario needs another. */
  static final TopicPartition PARTITION =
      new TopicPartition("t", Integer.getInteger("insync.partition", 0));

  private static final int CONTROLLER = 100;
  private static final String MIN_INSYNC = "min.insync.replicas";
  private static final String METADATA = "__cluster_metadata-0/00000000000000000000.log";

  private final Path folder = Files.createTempDirectory("insync-found-");
  private final int brokers;
  private final int[] ports;
  private final DelayingProxy[] toController;
  private final DelayingProxy toBroker1;
  private final int directories;
  private final int bootstrap;
  private final Node[] nodes;
  private final Admin admin;

  /** What happens to it. */
  interface Scenario {
    Story.Outcome run(Cluster cluster) throws Exception;
  }

  /** The scenario on a cluster as the constructor makes it, which is gone in the end. */
  static Story.Outcome play(int minInsync, List<Integer> replicas, Scenario scenario)
      throws Exception {
    return play(minInsync, replicas, Math.max(3, Collections.max(replicas)), scenario);
  }

  /** The same with so many brokers. */
  static Story.Outcome play(int minInsync, List<Integer> replicas, int brokers, Scenario scenario)
      throws Exception {
    try (Cluster cluster = new Cluster(minInsync, replicas, brokers, 1)) {
      return scenario.run(cluster);
    }
  }

  /** The same with one broker that has no replica, and with two log directories on each. */
  static Story.Outcome playWithTwoDirectories(
      int minInsync, List<Integer> replicas, Scenario scenario) throws Exception {
    try (Cluster cluster = new Cluster(minInsync, replicas, replicas.size() + 1, 2)) {
      return scenario.run(cluster);
    }
  }

  /**
   * Started; topic t has one partition, the first replica leads, all are in sync, the last is
   * preferred.
   *
   * @param minInsync its min.insync.replicas
   * @param replicas the brokers that have it, the leader the first of them
   * @param brokers how many there are
   * @param directories how many log directories each broker has
   */
  Cluster(int minInsync, List<Integer> replicas, int brokers, int directories) throws Exception {
    this.brokers = brokers;
    this.directories = directories;
    ports = new int[brokers + 1];
    toController = new DelayingProxy[brokers + 1];
    nodes = new Node[brokers + 1];
    bootstrap = directories == 2 ? brokers : replicas.size() == 3 ? 2 : 3;
    int controllerPort = freePort();
    for (int broker = 1; broker <= brokers; broker++) {
      ports[broker] = freePort();
      toController[broker] = new DelayingProxy(controllerPort);
    }
    toBroker1 = new DelayingProxy(ports[1]);
    Story.step("starting a controller and %d brokers, Kafka %s", brokers, AppInfo.version());
    String clusterId = Uuid.randomUuid().toString();
    nodes[0] = node(CONTROLLER, clusterId, controllerPort, controllerPort);
    for (int broker = 1; broker <= brokers; broker++) {
      nodes[broker] = node(broker, clusterId, ports[broker], toController[broker].port());
    }
    for (Node node : nodes) {
      node.awaitUp();
    }
    admin = Admin.create(Map.of("bootstrap.servers", bootstrap()));
    createTopic(minInsync, replicas);
    Story.step(
        "topic t: replication factor %d, min.insync.replicas=%d, unclean election off; r%d leads",
        replicas.size(), minInsync, replicas.get(0));
    show();
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  private String bootstrap() {
    return "localhost:" + ports[bootstrap];
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
    String data = folder.resolve("data-" + id).toString();
    boolean two = !controller && directories == 2;
    properties.put("log.dirs", two ? data + "," + data + "b" : data);
    properties.put("log.cleaner.enable", "false"); // 128 MB, and nothing here is compacted
    Path file = properties(id);
    store(properties, file);
    format(clusterId, file);
    return new Node(id, file);
  }

  private Path properties(int id) {
    return folder.resolve("node-" + id + ".properties");
  }

  private static void store(Properties properties, Path file) throws IOException {
    try (Writer writer = Files.newBufferedWriter(file)) {
      properties.store(writer, null);
    }
  }

  static void format(String clusterId, Path file) throws Exception {
    String[] arguments = {"format", "--cluster-id", clusterId, "--config", file.toString()};
    var told = new java.io.ByteArrayOutputStream();
    int code =
        kafka.tools.StorageTool.execute(
            arguments, new PrintStream(told, true, StandardCharsets.UTF_8));
    if (code != 0) {
      throw new NotTried("the folder cannot be formatted: " + told);
    }
  }

  private void createTopic(int minInsync, List<Integer> replicas) throws Exception {
    Map<Integer, List<Integer>> assignment = new HashMap<>();
    for (int partition = 0; partition <= PARTITION.partition(); partition++) {
      assignment.put(partition, replicas);
    }
    NewTopic topic =
        new NewTopic(PARTITION.topic(), assignment)
            .configs(Map.of(MIN_INSYNC, Integer.toString(minInsync)));
    admin.createTopics(List.of(topic)).all().get();
    await(
        "the first replica leads and all followers have fetched",
        60,
        () -> {
          int leader = replicas.get(0);
          Map<String, String> state = node(leader).state();
          return replicas.stream().allMatch(r -> r == leader || "0".equals(state.get("end" + r)));
        });
    List<Integer> order = new ArrayList<>(replicas);
    order.add(0, order.remove(order.size() - 1));
    assign(order);
    await("the last replica is preferred", 60, () -> ids(describe().replicas()).equals(order));
    Thread.sleep(1500); // every broker has heard of it
  }

  /** A broker. */
  Node node(int broker) {
    return nodes[broker];
  }

  /** Starts a broker again that has shut down. */
  void restart(int broker) throws Exception {
    start(broker);
    nodes[broker].awaitUp();
  }

  /** The same, without waiting for it. */
  void start(int broker) throws Exception {
    nodes[broker].awaitEnd();
    nodes[broker] = new Node(broker, properties(broker));
  }

  /**
   * The directory with the partition of a broker that has stopped is gone. It is taken out of
   * log.dirs or, where it is replaced, there is an empty one in its place that is formatted.
   */
  void loseDirectory(int broker, boolean replaced) throws Exception {
    Properties properties = new Properties();
    try (var reader = Files.newBufferedReader(properties(broker))) {
      properties.load(reader);
    }
    List<String> all = List.of(properties.getProperty("log.dirs").split(","));
    String gone =
        all.stream()
            .filter(directory -> Files.exists(Path.of(directory, PARTITION.toString())))
            .findFirst()
            .orElseThrow(() -> new NotTried("no directory of r" + broker + " has the partition"));
    Folders.remove(Path.of(gone));
    if (replaced) {
      Properties meta = new Properties();
      String other = all.get(all.get(0).equals(gone) ? 1 : 0);
      try (var reader = Files.newBufferedReader(Path.of(other, "meta.properties"))) {
        meta.load(reader);
      }
      meta.put("directory.id", Uuid.randomUuid().toString());
      Files.createDirectory(Path.of(gone));
      store(meta, Path.of(gone, "meta.properties"));
    } else {
      properties.put(
          "log.dirs", String.join(",", all.stream().filter(d -> !d.equals(gone)).toList()));
      store(properties, properties(broker));
    }
  }

  /** The path from a broker to the controller. */
  DelayingProxy toController(int broker) {
    return toController[broker];
  }

  /** The path from everybody to broker 1. */
  DelayingProxy toBroker1() {
    return toBroker1;
  }

  /** The answers to AlterPartition of r1 from now on, also those that r1 does not hear. */
  BlockingQueue<String> alterPartitionAnswers() {
    BlockingQueue<String> answers = new LinkedBlockingQueue<>();
    toController[1].listen(
        answer -> {
          if (answer.body() instanceof AlterPartitionResponse response) {
            var partition = response.data().topics().get(0).partitions().get(0);
            Errors error = Errors.forCode(partition.errorCode());
            answers.add(
                error == Errors.NONE ? "accepted, ISR " + partition.isr() : "refused, " + error);
          }
        });
    return answers;
  }

  /** The members of the ISR in a broker's state. */
  static Set<String> isr(Map<String, String> state) {
    return Set.of(state.getOrDefault("isr", "").split(" "));
  }

  /** The ids of nodes; none where there is no list. */
  static List<Integer> ids(List<org.apache.kafka.common.Node> nodes) {
    return nodes == null
        ? List.of()
        : nodes.stream().map(org.apache.kafka.common.Node::id).toList();
  }

  /** What the metadata of a broker that runs says. */
  TopicPartitionInfo describe() throws Exception {
    return admin
        .describeTopics(List.of(PARTITION.topic()))
        .allTopicNames()
        .get()
        .get(PARTITION.topic())
        .partitions()
        .get(PARTITION.partition());
  }

  /** kafka-reassign-partitions.sh for the one partition. */
  void assign(List<Integer> replicas) throws Exception {
    var assignment = Optional.of(new NewPartitionReassignment(replicas));
    admin.alterPartitionReassignments(Map.of(PARTITION, assignment)).all().get();
  }

  /** kafka-reassign-partitions.sh --cancel for the one partition. */
  void cancelReassignment() throws Exception {
    Optional<NewPartitionReassignment> none = Optional.empty();
    admin.alterPartitionReassignments(Map.of(PARTITION, none)).all().get();
  }

  /** kafka-reassign-partitions.sh --list for the one partition; empty if none is under way. */
  String reassignment() throws Exception {
    var one = admin.listPartitionReassignments(Set.of(PARTITION)).reassignments().get();
    return one.containsKey(PARTITION)
        ? "adding %s, removing %s"
            .formatted(
                one.get(PARTITION).addingReplicas(), one.get(PARTITION).removingReplicas())
        : "";
  }

  /** kafka-configs.sh --alter --add-config min.insync.replicas=N, for the topic. */
  void setMinInsync(int replicas) throws Exception {
    ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, PARTITION.topic());
    ConfigEntry entry = new ConfigEntry(MIN_INSYNC, Integer.toString(replicas));
    AlterConfigOp set = new AlterConfigOp(entry, AlterConfigOp.OpType.SET);
    admin.incrementalAlterConfigs(Map.of(topic, List.of(set))).all().get();
  }

  /** kafka-topics.sh --delete. */
  void deleteTopic() throws Exception {
    admin.deleteTopics(List.of(PARTITION.topic())).all().get();
  }

  /** The epoch of the controller's leadership, which grows with each election of a controller. */
  long controllerEpoch() throws Exception {
    return admin.describeMetadataQuorum().quorumInfo().get().leaderEpoch();
  }

  /** kafka-leader-election.sh --election-type preferred. False if the controller declines. */
  boolean electPreferred() throws Exception {
    try {
      admin.electLeaders(ElectionType.PREFERRED, Set.of(PARTITION)).all().get();
      return true;
    } catch (ExecutionException e) {
      Story.detail("the controller declines: %s", e.getCause().getMessage());
      return false;
    }
  }

  /** Waits until r3, whose log is empty, leads, and the others have followed it. */
  void awaitR3WithoutRecord() throws Exception {
    await(
        "r3 leads and the others have truncated",
        60,
        () ->
            node(3).state("leader").equals("3")
                && node(2).state("logEnd").equals("0")
                && node(1).state("logEnd").equals("0"));
  }

  /**
   * The broker that leads, as this one thinks, -1 for nobody; {@link NotTried} if it does not say.
   */
  int leaderSeenBy(int broker) throws InterruptedException, NotTried {
    String leader = node(broker).state("leader");
    if (leader.isEmpty()) {
      throw new NotTried("r" + broker + " does not say who leads");
    }
    return Integer.parseInt(leader);
  }

  /** A producer with acks=all that sends once: what it is told is about that one time. */
  KafkaProducer<String, String> producer() {
    return new KafkaProducer<>(
        Map.of("bootstrap.servers", bootstrap(), "retries", 0, "enable.idempotence", false),
        new StringSerializer(),
        new StringSerializer());
  }

  /** Whether the producer of A is told in time that it is committed; says what it is told. */
  static boolean acknowledged(Future<RecordMetadata> answer, int seconds)
      throws InterruptedException {
    try {
      long offset = answer.get(seconds, TimeUnit.SECONDS).offset();
      Story.step("the producer is told that A is committed, at offset %d", offset);
      return true;
    } catch (ExecutionException e) {
      Story.step("the producer is told %s", e.getCause().getClass().getSimpleName());
    } catch (java.util.concurrent.TimeoutException e) {
      Story.step("the producer still waits after %d s", seconds);
    }
    return false;
  }

  /**
   * Whether the log of this broker, which leads, has the record; and what a consumer reads there.
   * {@link NotTried} if the broker does not say that it leads, and where its log ends.
   */
  boolean holdsRecord(int leader) throws InterruptedException, NotTried {
    Map<String, String> state = node(leader).state();
    if (!Integer.toString(leader).equals(state.get("leader")) || !state.containsKey("logEnd")) {
      throw new NotTried("r" + leader + " should lead, and says " + state);
    }
    boolean holds = !state.get("logEnd").equals("0");
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
    for (int broker = 1; broker <= brokers; broker++) {
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

  /** Kills all nodes and removes their folders; beside traces the controller's log is left. */
  @Override
  public void close() throws IOException {
    for (Node node : nodes) {
      if (node != null) {
        node.kill();
      }
    }
    if (Node.TRACES != null) {
      Path decided = folder.resolve("data-" + CONTROLLER).resolve(METADATA);
      Files.copy(decided, Path.of(Node.TRACES, "metadata.log"));
    }
    Folders.remove(folder);
  }
}
