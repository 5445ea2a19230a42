package insync.found.fix;

import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;

/**
 * Writes classes of Kafka with a fix in their byte code into a folder, which then comes first on
 * the class path. The classes are read from this JVM's own class path, so a fix is tried on
 * whichever version of Kafka is there.
 */
public final class Fix {
  private static final String REPLICA = "org.apache.kafka.server.replica.Replica";
  private static final String PARTITION = "kafka.cluster.Partition";
  private static final String BUILDER = "org.apache.kafka.controller.PartitionChangeBuilder";
  private static final String PUBLISHER = "kafka.server.metadata.BrokerMetadataPublisher";
  private static final String CONTROLLER = "org.apache.kafka.controller.ReplicationControlManager";

  private static final Map<String, List<Change>> FIXES =
      Map.of(
          "positions-reset",
          List.of(new Change(REPLICA, "resetReplicaState", PositionsReset.class)),
          "positions-reset-after-gap",
          List.of(
              new Change(PARTITION, "makeLeader", EpochGap.Leader.class),
              new Change(REPLICA, "resetReplicaState", EpochGap.Position.class)),
          "configuration-first",
          List.of(new Change(PUBLISHER, "onMetadataUpdate", ConfigurationFirst.class)),
          "elr-of-replicas",
          List.of(new Change(BUILDER, "maybePopulateTargetElr", ReplicasOnly.class)),
          "refusal-in-new-version",
          List.of(new Change(CONTROLLER, "alterPartition", RefusalInNewVersion.class)));

  private Fix() {}

  private record Change(String type, String method, Class<?> advice) {}

  /** Arguments: the fix's name, and the folder. */
  public static void main(String[] arguments) throws IOException {
    List<Change> changes = FIXES.get(arguments[0]);
    if (changes == null) {
      throw new IllegalArgumentException("no such fix; there are " + FIXES.keySet());
    }
    for (Change change : changes) {
      write(change, new File(arguments[1]));
    }
  }

  private static void write(Change change, File folder) throws IOException {
    ClassFileLocator classPath = ClassFileLocator.ForClassLoader.ofSystemLoader();
    var type = TypePool.Default.of(classPath).describe(change.type()).resolve();
    var method =
        ElementMatchers.<net.bytebuddy.description.method.MethodDescription>named(change.method());
    if (type.getDeclaredMethods().filter(method).isEmpty()) {
      throw new IllegalStateException(change.type() + " has no method " + change.method());
    }
    new ByteBuddy()
        .redefine(type, classPath)
        .visit(Advice.to(change.advice()).on(method))
        .make()
        .saveIn(folder);
    System.out.println("changed: " + change.type() + "." + change.method());
  }
}
