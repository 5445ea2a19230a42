package insync.kafka;

import insync.objects.Fields;
import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** LogManager of one folder, whose collections are Scala's before 4.4. */
final class Logs {
  private static final Seq<Object> NONE = seq(List.of());

  final LogManager manager;

  Logs(Broker broker, Parts parts, File folder, Scheduler scheduler, LogDirFailureChannel channel)
      throws IOException {
    List<File> folders = List.of(folder.getAbsoluteFile());
    manager =
        Wiring.make(
            LogManager.class,
            folders,
            seq(folders),
            List.of(),
            NONE,
            parts.cache,
            new LogConfig(parts.config.extractLogConfigMap()),
            new CleanerConfig(false),
            1, // recovery threads
            1000L, // flush check
            10000L, // flush of recovery offsets
            10000L, // flush of start offsets
            1000L, // retention check
            5 * 60 * 1000, // transaction time-out
            new ProducerStateManagerConfig(86400000, false),
            600000, // expiration of producer ids
            scheduler,
            Parts.STATS,
            channel,
            broker.clock,
            Shapes.KEEPS_PARTITION_METADATA,
            false, // remote storage
            1000000L); // initial delay of tasks
    Object locks = manager.dirLocks();
    for (Object lock : each(locks)) {
      ((FileLock) lock).destroy(); // the next process of this broker uses the folder again
    }
    Fields.set(manager, "dirLocks", locks instanceof List ? List.of() : NONE);
  }

  UnifiedLog of(TopicPartition partition) {
    Object found = manager.getLog(partition, false);
    return (UnifiedLog)
        (found instanceof Optional<?> java
            ? java.orElse(null)
            : ((Option<?>) found).getOrElse(() -> null));
  }

  /** LogManager.startup; {@code stray}: the broker has no replica of what it has logs of. */
  void start(Set<String> topics, boolean stray) {
    Function<UnifiedLog, Boolean> java = log -> stray;
    Function1<UnifiedLog, Object> scala = log -> stray;
    Wiring.call(
        manager, "startup", topics, CollectionConverters.asScala(topics).toSet(), java, scala);
  }

  OptionalLong cleanEpoch() {
    return manager.readBrokerEpochFromCleanShutdownFiles();
  }

  void stop(long epoch) throws IOException {
    manager.shutdown(epoch);
  }

  private static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  /** What is in a collection of Java or of Scala, as the release has it. */
  static Iterable<?> each(Object collection) {
    return collection instanceof Iterable<?> java
        ? java
        : CollectionConverters.asJava((scala.collection.Iterable<?>) collection);
  }
}
