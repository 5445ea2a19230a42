package insync.raft;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.lang.ref.Cleaner;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.raft.FileQuorumStateStore;
import org.apache.kafka.raft.MetadataLogConfig;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.server.util.Scheduler;

/**
 * The files of a voter, and Kafka's log in them while a process has it open. Worlds share a folder
 * until one of them writes, which takes a copy. A folder that no world has any more is deleted.
 */
final class Folder {
  private static final TopicPartition PARTITION = new TopicPartition("__cluster_metadata", 0);
  private static final MetadataLogConfig CONFIG =
      new MetadataLogConfig(new AbstractConfig(MetadataLogConfig.CONFIG_DEF, Map.of(), false));
  private static final Cleaner CLEANER = Cleaner.create();
  private static final File TOP = top();

  /** How much of an index is copied. A longer one than this has no log of a few records. */
  private static final int INDEX_BYTES = 4096;

  /** Folders after which those that nobody has are looked for: each has files open. */
  private static final int FOLDERS_PER_SWEEP = 2000;

  private static int count;

  /** What is left when nobody has the folder any more. */
  private static final class Contents implements Runnable {
    final File directory;
    KafkaRaftLog log;

    Contents(File directory) {
      this.directory = directory;
    }

    @Override
    public void run() {
      try {
        if (log != null) {
          log.close();
        }
        Utils.delete(directory.getParentFile());
      } catch (IOException problem) {
        throw new UncheckedIOException(problem);
      }
    }
  }

  /** Tasks that are to be run now are, and those for later never. */
  private static final class AtOnce implements Scheduler {
    @Override
    public void startup() {}

    @Override
    public void shutdown() {}

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) {
      if (delay <= 0) {
        task.run();
      }
      return null;
    }

    @Override
    public void resizeThreadPool(int threads) {}
  }

  private final Contents contents;

  /** An empty folder. */
  Folder() {
    if (++count % FOLDERS_PER_SWEEP == 0) {
      System.gc();
    }
    File directory = new File(new File(TOP, String.valueOf(count)), PARTITION.toString());
    if (!directory.mkdirs()) {
      throw new IllegalStateException("cannot make " + directory);
    }
    contents = new Contents(directory);
    CLEANER.register(this, contents);
  }

  /** Where all folders are, until the process ends. */
  private static File top() {
    try {
      File top = Files.createTempDirectory("insync-raft").toFile();
      Runtime.getRuntime()
          .addShutdownHook(
              new Thread(
                  () -> {
                    try {
                      Utils.delete(top);
                    } catch (IOException problem) {
                      throw new UncheckedIOException(problem);
                    }
                  }));
      return top;
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
  }

  /** The same files once more, as they are now, and nothing open. */
  Folder copy() {
    Folder copy = new Folder();
    try {
      for (File file : contents.directory.listFiles()) {
        File target = new File(copy.contents.directory, file.getName());
        if (file.getName().endsWith("index")) {
          copyIndex(file, target);
        } else {
          Files.copy(file.toPath(), target.toPath());
        }
      }
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
    return copy;
  }

  /** Of an index most is not written yet, so that its file has holes. */
  private static void copyIndex(File file, File target) throws IOException {
    try (var from = new RandomAccessFile(file, "r");
        var to = new RandomAccessFile(target, "rw")) {
      byte[] bytes = new byte[(int) Math.min(INDEX_BYTES, from.length())];
      from.readFully(bytes);
      to.write(bytes);
      to.setLength(from.length());
    }
  }

  /** A process starts here: Kafka recovers the log from its files. */
  KafkaRaftLog open(int voter) {
    try {
      contents.log =
          KafkaRaftLog.createLog(
              PARTITION,
              Uuid.METADATA_TOPIC_ID,
              contents.directory,
              new StillTime(),
              new AtOnce(),
              CONFIG,
              voter);
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
    return contents.log;
  }

  /** Kafka's log, which a process has open. */
  KafkaRaftLog log() {
    return contents.log;
  }

  /** Kafka's quorum-state file. */
  FileQuorumStateStore store() {
    return new FileQuorumStateStore(
        new File(contents.directory, FileQuorumStateStore.DEFAULT_FILE_NAME));
  }

  /** The segments of the log, in order. */
  File[] segments() {
    File[] all = contents.directory.listFiles((in, name) -> name.endsWith(".log"));
    Arrays.sort(all);
    return all;
  }
}
