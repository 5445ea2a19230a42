package insync.found.brokers;

import insync.found.NotTried;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A node's process, seen from outside. */
final class Node {
  private static final List<String> JVM = List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1");

  /** Where nodes write what they do, if our agent is on the class path (docs/kafka-trace.md). */
  static final String TRACES = System.getProperty("insync.traces");

  private final int id;
  private final Process process;
  private final PrintWriter in;
  private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();

  /** Starts the process; what it logs goes to a file beside its properties. */
  Node(int id, Path properties, String... more) throws IOException {
    this.id = id;
    List<String> command = new java.util.ArrayList<>(List.of(java()));
    command.addAll(JVM);
    command.addAll(more.length > 0 ? List.of(more) : List.of("-Xmx192m"));
    if (TRACES != null) {
      command.addAll(List.of("-Dinsync.trace.dir=" + TRACES, "-Dinsync.trace.node=" + id));
    }
    command.addAll(
        List.of(
            "-Dinsync.partition=" + Cluster.PARTITION.partition(),
            "-cp",
            System.getProperty("java.class.path"),
            NodeMain.class.getName(),
            properties.toString()));
    File log = new File(properties + ".log");
    process = new ProcessBuilder(command).redirectError(log).start();
    in = new PrintWriter(process.getOutputStream(), true, StandardCharsets.UTF_8);
    Thread reader = new Thread(this::read, "node-" + id);
    reader.setDaemon(true);
    reader.start();
  }

  private static String java() {
    return Path.of(System.getProperty("java.home"), "bin", "java").toString();
  }

  private void read() {
    try (BufferedReader out =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = out.readLine(); line != null; line = out.readLine()) {
        if (line.startsWith("node: ")) {
          answers.add(line.substring("node: ".length()));
        }
      }
    } catch (IOException e) {
      answers.add("gone");
    }
  }

  /** Whether the node has started by then. */
  boolean upWithin(Duration time) throws InterruptedException {
    return "up".equals(answers.poll(time.toMillis(), TimeUnit.MILLISECONDS));
  }

  /** Waits until the node has started. */
  void awaitUp() throws Exception {
    String answer = answers.poll(300, TimeUnit.SECONDS);
    if (!"up".equals(answer)) {
      throw new NotTried("node " + id + " did not start: " + answer);
    }
  }

  /** What the broker thinks of the partition; empty if it has none, or is gone. */
  Map<String, String> state() throws InterruptedException {
    Map<String, String> state = new LinkedHashMap<>();
    if (!process.isAlive()) {
      return state;
    }
    in.println("state");
    String answer = answers.poll(30, TimeUnit.SECONDS);
    if (answer != null && answer.contains("=")) {
      for (String item : answer.split(";")) {
        String[] parts = item.split("=", 2);
        state.put(parts[0], parts[1]);
      }
    }
    return state;
  }

  /** One value of the state; empty if there is none. */
  String state(String key) throws InterruptedException {
    return state().getOrDefault(key, "");
  }

  /** Whether it runs and says that it has no replica. */
  boolean hasNoReplica() throws InterruptedException {
    return state().isEmpty() && process.isAlive();
  }

  /** Asks for an orderly (controlled) shutdown, and does not wait for it. */
  void shutDown() {
    in.println("shutdown");
  }

  /** Waits until its process has ended. */
  void awaitEnd() throws Exception {
    if (!process.waitFor(300, TimeUnit.SECONDS)) {
      throw new NotTried("node " + id + " did not shut down");
    }
  }

  /** kill -9. */
  void kill() {
    process.destroyForcibly().onExit().join();
  }

  /** One line for the story. */
  String line() throws InterruptedException {
    Map<String, String> state = state();
    if (state.isEmpty()) {
      return "r" + id + (process.isAlive() ? "  has no replica" : "  is down");
    }
    String role =
        state.get("leader").equals(Integer.toString(id))
            ? "leads, ISR {" + state.get("isr") + "}, follower ends " + ends(state)
            : "follows r" + state.get("leader");
    return String.format(
        "r%d  epoch %s, log end %s, high watermark %s, %s",
        id, state.get("epoch"), state.get("logEnd"), state.get("highWatermark"), role);
  }

  private static String ends(Map<String, String> state) {
    StringBuilder ends = new StringBuilder();
    for (int other = 1; other <= 9; other++) {
      String end = state.get("end" + other);
      if (end != null) {
        ends.append(ends.isEmpty() ? "" : ", ").append("r").append(other).append(" ").append(end);
      }
    }
    return ends.toString();
  }
}
