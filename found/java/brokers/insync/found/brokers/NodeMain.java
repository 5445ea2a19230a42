package insync.found.brokers;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Reader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import kafka.server.BrokerServer;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;
import scala.Option;

/**
 * One node of Kafka, unchanged, in a JVM of its own. On standard input it is asked for what it
 * thinks of the partition ("state"), or told to shut down in order ("shutdown"); where the input
 * ends, it ends.
 */
public final class NodeMain {
  private static final PrintStream OUT = System.out;

  private NodeMain() {}

  /** The argument is the file of properties. */
  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]))) {
      properties.load(reader);
    }
    KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(properties), Time.SYSTEM);
    server.startup();
    say("up");
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      if (line.equals("state")) {
        say(state(server));
      } else if (line.equals("shutdown")) {
        say("shutting down");
        server.shutdown();
        break;
      }
    }
    Runtime.getRuntime().halt(0);
  }

  private static void say(String line) {
    synchronized (OUT) {
      OUT.println("node: " + line);
      OUT.flush();
    }
  }

  private static BrokerServer broker(KafkaRaftServer server) throws ReflectiveOperationException {
    Field field = KafkaRaftServer.class.getDeclaredField("broker");
    field.setAccessible(true);
    return (BrokerServer) ((Option<?>) field.get(server)).get();
  }

  private static String state(KafkaRaftServer server) {
    try {
      BrokerServer broker = broker(server);
      var online = broker.replicaManager().onlinePartition(Cluster.PARTITION);
      if (online.isEmpty()) {
        return "none";
      }
      var partition = online.get();
      var log = partition.localLogOrException();
      Object leader =
          partition.leaderReplicaIdOpt().isDefined() ? partition.leaderReplicaIdOpt().get() : -1;
      StringBuilder told = new StringBuilder();
      told.append("leader=").append(leader);
      told.append(";epoch=").append(partition.getLeaderEpoch());
      told.append(";partitionEpoch=").append(partition.getPartitionEpoch());
      told.append(";logEnd=").append(log.logEndOffset());
      told.append(";highWatermark=").append(log.highWatermark());
      told.append(";isr=").append(partition.inSyncReplicaIds().mkString(" "));
      told.append(";maximal=").append(numbers(partition.partitionState().maximalIsr()));
      told.append(";heard=").append(metadataOffset(broker));
      for (int other = 1; other <= 4; other++) {
        var replica = partition.getReplica(other);
        if (replica.isDefined()) {
          told.append(";end").append(other).append('=');
          told.append(replica.get().stateSnapshot().logEndOffset());
        }
        told.append(";fenced").append(other).append('=');
        told.append(broker.metadataCache().isBrokerFenced(other));
      }
      return told.toString();
    } catch (ReflectiveOperationException | RuntimeException e) {
      return "none (" + e + ")";
    }
  }

  /** The partition epoch in its metadata. */
  private static int metadataOffset(BrokerServer broker) {
    var topics = broker.metadataCache().currentImage().topics();
    var partitions = topics.getTopic(Cluster.PARTITION.topic()).partitions();
    return partitions.get(Cluster.PARTITION.partition()).partitionEpoch;
  }

  /** A set of Scala's or of Java's, as its numbers with spaces between them. */
  private static String numbers(Object set) {
    return set.toString().replaceAll("[^0-9]+", " ").strip();
  }
}
