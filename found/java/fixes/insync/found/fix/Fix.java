package insync.found.fix;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.matcher.ElementMatcher;
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
  private static final String TOPIC = "org.apache.kafka.image.TopicDelta";
  private static final String CONTROLLER = "org.apache.kafka.controller.ReplicationControlManager";

  private static final String REGISTRATIONS = "org.apache.kafka.controller.ClusterControlManager";

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
          "minimum-in-new-version",
          List.of(
              new Change(PUBLISHER, "onMetadataUpdate", ConfigurationFirst.class),
              new Change(CONTROLLER, "removeTopicElrs", MinimumInNewVersion.Controller.class),
              new Change(TOPIC, "maybeClearElr", MinimumInNewVersion.Image.class)),
          "mark-of-all-directories",
          List.of(new Change(REGISTRATIONS, "registerBroker", MarkOfAllDirectories.class)),
          "elr-of-replicas",
          List.of(new Change(BUILDER, "maybePopulateTargetElr", ReplicasOnly.class)),
          "elr-index-emptied",
          List.of(new Change(CONTROLLER, "removeTopicElrs", ElrIndexEmptied.class)),
          "proposal-kept",
          List.of(
              new Change(PARTITION, "makeLeader", ProposalKept.Leader.class),
              new Change(PARTITION, "updateAssignmentAndIsr", ProposalKept.State.class)),
          "refusal-in-new-version",
          List.of(new Change(CONTROLLER, "alterPartition", RefusalInNewVersion.class)));

  private Fix() {}

  /** Code that is added to a method. */
  public record Change(String type, String method, Class<?> advice) {}

  /** Arguments: the fix's name, or several with commas between, and the folder. */
  public static void main(String[] arguments) throws IOException {
    List<Change> changes = new ArrayList<>();
    for (String name : arguments[0].split(",")) {
      if (!FIXES.containsKey(name)) {
        throw new IllegalArgumentException("no fix " + name + "; there are " + FIXES.keySet());
      }
      changes.addAll(FIXES.get(name));
    }
    File folder = new File(arguments[1]);
    removeClasses(folder);
    for (String type : changes.stream().map(Change::type).distinct().toList()) {
      write(type, changes, folder);
    }
  }

  /** What an earlier run wrote comes before the jars on the class path, and would be changed once more. */
  private static void removeClasses(File folder) throws IOException {
    if (folder.exists()) {
      try (Stream<Path> files = Files.walk(folder.toPath())) {
        for (Path file : files.filter(path -> path.toString().endsWith(".class")).toList()) {
          Files.delete(file);
        }
      }
    }
  }

  /** Writes one class, with all of its changes. */
  public static void write(String name, List<Change> changes, File folder) throws IOException {
    ClassFileLocator classPath = ClassFileLocator.ForClassLoader.ofSystemLoader();
    TypeDescription type = TypePool.Default.of(classPath).describe(name).resolve();
    DynamicType.Builder<?> changed = new ByteBuddy().redefine(type, classPath);
    for (Change change : changes) {
      if (change.type().equals(name)) {
        ElementMatcher<MethodDescription> method = ElementMatchers.named(change.method());
        if (type.getDeclaredMethods().filter(method).isEmpty()) {
          throw new IllegalStateException(name + " has no method " + change.method());
        }
        changed = changed.visit(Advice.to(change.advice()).on(method));
        System.out.println("changed: " + name + "." + change.method());
      }
    }
    changed.make().saveIn(folder);
  }
}
