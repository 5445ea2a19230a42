package insync.kafka;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * What is on a broker's disk while its process does not run: the log, leader-epoch-checkpoint, the
 * watermark of replication-offset-checkpoint, and, after a clean stop, .kafka_cleanshutdown with
 * its broker epoch.
 *
 * <p>The files themselves are written when a process starts, into one folder per broker, for
 * LogManager registers a gauge per folder that it has ever seen.
 */
record Disk(
    byte[] log, int flushed, List<EpochEntry> epochs, long watermark, Uuid topic, Long cleanEpoch) {
  private static final Path ROOT =
      Path.of(
          System.getProperty("insync.folder", "/dev/shm"),
          "insync-kafka-" + ProcessHandle.current().pid());

  static final Disk NEW = new Disk(new byte[0], 0, List.of(), 0, null, null);

  static {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> clear(ROOT)));
  }

  /** What a process leaves behind: all that it wrote, and this checkpoint of its watermark. */
  static Disk of(Broker process, long watermark, Long cleanEpoch) {
    return of(process.parts, process.log(), watermark, cleanEpoch);
  }

  /** The same of a process that may have stopped, whose log this was; null for none. */
  static Disk of(Parts parts, UnifiedLog log, long watermark, Long cleanEpoch) {
    if (log == null) {
      return new Disk(new byte[0], 0, List.of(), watermark, null, cleanEpoch);
    }
    HeapChannel file = parts.file(log);
    List<EpochEntry> epochs = parts.epochs(log);
    return new Disk(
        file.content(), file.flushed(), epochs, watermark, Shapes.topic(log), cleanEpoch);
  }

  /** The same after a power failure that only the first so many records of the log survived. */
  Disk cut(int records) {
    return new Disk(Arrays.copyOf(log, bytes(records)), 0, epochs, watermark, topic, cleanEpoch);
  }

  /** How long the first so many records are. */
  int bytes(int records) {
    int size = 0;
    for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(log)).batches()) {
      size += batch.lastOffset() < records ? batch.sizeInBytes() : 0;
    }
    return size;
  }

  /** The folder of a broker with these files in it, and with a directory id that it keeps. */
  File prepare(int broker, Uuid directory) throws Exception {
    Path folder = ROOT.resolve(Integer.toString(broker));
    clear(folder);
    Files.createDirectories(folder);
    Files.writeString(
        folder.resolve("meta.properties"),
        "version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n"
            .formatted(HeldController.CLUSTER, broker, directory));
    if (topic != null) {
      write(folder);
    }
    if (cleanEpoch != null) {
      new CleanShutdownFileHandler(folder.toString()).write(cleanEpoch);
    }
    return folder.toFile();
  }

  private void write(Path folder) throws Exception {
    Path partition = Files.createDirectory(folder.resolve(Broker.PARTITION.toString()));
    Files.write(partition.resolve("00000000000000000000.log"), log);
    new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(partition.toFile()), null)
        .write(epochs);
    PartitionMetadataFile metadata =
        new PartitionMetadataFile(PartitionMetadataFile.newFile(partition.toFile()), null);
    metadata.record(topic);
    metadata.maybeFlush();
    Map<TopicPartition, Long> offsets = Map.of(Broker.PARTITION, watermark);
    new OffsetCheckpointFile(folder.resolve("replication-offset-checkpoint").toFile(), null)
        .write(offsets);
    if (cleanEpoch != null) {
      long end = Broker.rows(log).size();
      new OffsetCheckpointFile(folder.resolve("recovery-point-offset-checkpoint").toFile(), null)
          .write(Map.of(Broker.PARTITION, end));
    }
  }

  /**
   * Before a process opens its partition: its folder may by now be that of another world, and Kafka
   * reads the checkpointed watermark, and creates the files of a log that it does not have yet, at
   * this moment only.
   */
  void reopen(int broker, Uuid directory, boolean hasLog) throws Exception {
    if (!hasLog) {
      new Disk(log, flushed, epochs, watermark, null, null).prepare(broker, directory);
    }
    File file =
        ROOT.resolve(Integer.toString(broker)).resolve("replication-offset-checkpoint").toFile();
    new OffsetCheckpointFile(file, null)
        .write(hasLog ? Map.of(Broker.PARTITION, watermark) : Map.of());
  }

  /** The watermark that is checkpointed in a broker's folder. */
  static long checkpoint(int broker) throws IOException {
    File file =
        ROOT.resolve(Integer.toString(broker)).resolve("replication-offset-checkpoint").toFile();
    return new OffsetCheckpointFile(file, null).read().getOrDefault(Broker.PARTITION, 0L);
  }

  /** The broker epoch in the .kafka_cleanshutdown of a broker's folder; null if there is no file. */
  static Long cleanEpoch(int broker) {
    OptionalLong epoch =
        new CleanShutdownFileHandler(ROOT.resolve(Integer.toString(broker)).toString()).read();
    return epoch.isPresent() ? epoch.getAsLong() : null;
  }

  private static void clear(Path folder) {
    if (!Files.exists(folder)) {
      return;
    }
    try (Stream<Path> all = Files.walk(folder)) {
      all.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
    } catch (IOException problem) {
      throw new IllegalStateException(problem);
    }
  }
}
