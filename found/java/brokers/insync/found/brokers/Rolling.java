package insync.found.brokers;

import insync.found.AppInfo;
import insync.found.Folders;
import insync.found.Story;
import java.io.IOException;
import java.io.Writer;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A cluster whose brokers are restarted one after the other, and nothing is delayed on purpose. */
public final class Rolling implements AutoCloseable {
  private static final String TOPIC = "many";
  private static final int BROKERS = 3;
  private static final int CONTROLLER = 100;

  private final Path folder = Files.createTempDirectory("insync-rolling-");
  private final int partitions;
  private final int controllers;

  /** The controllers first. */
  private final Node[] nodes;

  private final Path[] files;
  private final String bootstrap;
  private final Admin admin;
  private final Map<TopicPartition, Map<Long, String>> acknowledged = new ConcurrentHashMap<>();
  private final AtomicLong acknowledgements = new AtomicLong();
  private final AtomicLong failures = new AtomicLong();

  /**
   * Started, with one topic of that many partitions: replication factor 3, min.insync.replicas 2.
   */
  public Rolling(int partitions, int controllers) throws Exception {
    this.partitions = partitions;
    this.controllers = controllers;
    nodes = new Node[controllers + BROKERS];
    files = new Path[nodes.length];
    Story.step("starting %d controller(s) and 3 brokers, Kafka %s", controllers, AppInfo.version());
    int[] ports = new int[nodes.length];
    for (int i = 0; i < ports.length; i++) {
      ports[i] = freePort();
    }
    String voters =
        IntStream.range(0, controllers)
            .mapToObj(i -> CONTROLLER + i + "@localhost:" + ports[i])
            .collect(Collectors.joining(","));
    String clusterId = Uuid.randomUuid().toString();
    for (int i = 0; i < nodes.length; i++) {
      files[i] = properties(id(i), ports[i], voters);
      Cluster.format(clusterId, files[i]);
      nodes[i] = start(i);
    }
    for (Node node : nodes) {
      node.awaitUp();
    }
    bootstrap =
        IntStream.range(controllers, nodes.length)
            .mapToObj(i -> "localhost:" + ports[i])
            .collect(Collectors.joining(","));
    admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    NewTopic topic = new NewTopic(TOPIC, partitions, (short) 3);
    topic.configs(Map.of("min.insync.replicas", "2"));
    admin.createTopics(List.of(topic)).all().get();
    awaitInSync();
    Story.step("%d partitions, replication factor 3, min.insync.replicas=2", partitions);
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  /** 100 and more for controllers, 1 and more for brokers. */
  private int id(int i) {
    return i < controllers ? CONTROLLER + i : i - controllers + 1;
  }

  private Path properties(int id, int port, String voters) throws IOException {
    boolean controller = id >= CONTROLLER;
    Properties properties = new Properties();
    properties.put("node.id", Integer.toString(id));
    properties.put("process.roles", controller ? "controller" : "broker");
    properties.put("controller.quorum.voters", voters);
    properties.put("controller.listener.names", "CONTROLLER");
    properties.put("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT");
    properties.put("listeners", (controller ? "CONTROLLER" : "PLAINTEXT") + "://localhost:" + port);
    properties.put("log.dirs", folder.resolve("data-" + id).toString());
    properties.put("log.cleaner.enable", "false");
    properties.put("log.index.size.max.bytes", "65536");
    Path file = folder.resolve("node-" + id + ".properties");
    try (Writer writer = Files.newBufferedWriter(file)) {
      properties.store(writer, null);
    }
    return file;
  }

  private Node start(int i) throws IOException {
    String watch = System.getProperty("insync.watch", "watch") + "." + i;
    return new Node(id(i), files[i], "-Xmx768m", "-Dinsync.watch=" + watch);
  }

  /**
   * Restarts brokers for that long, with that many records a second; then looks for every record.
   *
   * @param inARow how often each broker is restarted before the next one is
   */
  public void run(Duration time, int rate, int inARow) throws Exception {
    int[] restarts = {0};
    run(
        time,
        rate,
        () -> {
          int broker = restarts[0] / inARow % BROKERS;
          restart(broker);
          report(++restarts[0], "r" + (broker + 1));
        });
  }

  /**
   * The same with two brokers at a time, all but one in turn.
   *
   * @param unsafe records a second with acks=1, a thousand bytes each, for which nobody looks
   */
  public void runInPairs(Duration time, int rate, int unsafe) throws Exception {
    long end = System.nanoTime() + time.toNanos();
    if (unsafe > 0) {
      Thread writer = new Thread(() -> writeUnsafe(unsafe, end), "unsafe");
      writer.setDaemon(true);
      writer.start();
    }
    int[] restarts = {0};
    run(
        time,
        rate,
        () -> {
          int stays = restarts[0] % BROKERS;
          restart((stays + 1) % BROKERS, (stays + 2) % BROKERS);
          report(++restarts[0], "all but r" + (stays + 1));
        });
  }

  private interface Round {
    void run() throws Exception;
  }

  private void run(Duration time, int rate, Round round) throws Exception {
    long end = System.nanoTime() + time.toNanos();
    try (KafkaProducer<String, String> producer =
        new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrap),
            new StringSerializer(),
            new StringSerializer())) {
      Thread writer = new Thread(() -> write(producer, rate, end), "writer");
      writer.setDaemon(true);
      writer.start();
      while (System.nanoTime() < end) {
        round.run();
      }
      writer.join();
      producer.flush();
    }
    awaitInSync();
    System.out.printf("acknowledged %d, missing %d%n", acknowledgements.get(), missing());
  }

  /** Stops these brokers in order, starts them again, and waits until all is in sync. */
  private void restart(int... brokers) throws Exception {
    for (int broker : brokers) {
      nodes[controllers + broker].shutDown();
    }
    for (int broker : brokers) {
      nodes[controllers + broker].awaitEnd();
    }
    for (int broker : brokers) {
      nodes[controllers + broker] = start(controllers + broker);
    }
    for (int broker : brokers) {
      nodes[controllers + broker].awaitUp();
    }
    awaitInSync();
  }

  private void report(int restarts, String who) throws Exception {
    Story.step(
        "restart %d (%s); %d preferred elections; %d records acknowledged, %d refused",
        restarts, who, electPreferred(), acknowledgements.get(), failures.get());
  }

  private void write(KafkaProducer<String, String> producer, int rate, long end) {
    Random random = new Random(1);
    for (long n = 0; System.nanoTime() < end; n++) {
      String value = Long.toString(n);
      int partition = random.nextInt(partitions);
      producer.send(
          new ProducerRecord<>(TOPIC, partition, null, value),
          (metadata, error) -> {
            if (error == null) {
              acknowledgements.incrementAndGet();
              TopicPartition to = new TopicPartition(TOPIC, partition);
              acknowledged
                  .computeIfAbsent(to, p -> new ConcurrentHashMap<>())
                  .put(metadata.offset(), value);
            } else {
              failures.incrementAndGet();
            }
          });
      try {
        Thread.sleep(1000 / rate);
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  private void writeUnsafe(int rate, long end) {
    Random random = new Random(2);
    String value = "x".repeat(1000);
    Map<String, Object> configuration = Map.of("bootstrap.servers", bootstrap, "acks", "1");
    try (KafkaProducer<String, String> producer =
        new KafkaProducer<>(configuration, new StringSerializer(), new StringSerializer())) {
      while (System.nanoTime() < end) {
        for (int n = 0; n < Math.max(1, rate / 100); n++) {
          producer.send(new ProducerRecord<>(TOPIC, random.nextInt(partitions), null, value));
        }
        Thread.sleep(10);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private long electPreferred() throws Exception {
    try {
      var elected = admin.electLeaders(ElectionType.PREFERRED, null).partitions().get();
      return elected.values().stream().filter(error -> error.isEmpty()).count();
    } catch (ExecutionException e) {
      Story.detail("election: %s", e.getCause().getMessage());
      return 0;
    }
  }

  private void awaitInSync() throws Exception {
    Cluster.await("all replicas are in sync", 900, () -> inSync() == partitions);
  }

  private long inSync() throws Exception {
    try {
      return admin
          .describeTopics(Set.of(TOPIC))
          .allTopicNames()
          .get()
          .get(TOPIC)
          .partitions()
          .stream()
          .filter(p -> p.isr().size() == 3)
          .count();
    } catch (ExecutionException e) {
      return 0; // a broker that has not heard of the topic yet was asked
    }
  }

  private long missing() {
    long found = 0;
    Map<String, Object> configuration = Map.of("bootstrap.servers", bootstrap);
    try (KafkaConsumer<String, String> consumer =
        new KafkaConsumer<>(configuration, new StringDeserializer(), new StringDeserializer())) {
      List<TopicPartition> all = new ArrayList<>(acknowledged.keySet());
      consumer.assign(all);
      consumer.seekToBeginning(all);
      Map<TopicPartition, Long> ends = consumer.endOffsets(all);
      while (all.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
          TopicPartition at = new TopicPartition(record.topic(), record.partition());
          if (record.value().equals(acknowledged.get(at).get(record.offset()))) {
            found++;
          }
        }
      }
    }
    return acknowledgements.get() - found;
  }

  @Override
  public void close() {
    for (Node node : nodes) {
      if (node != null) {
        node.kill();
      }
    }
    Folders.remove(folder);
  }
}
