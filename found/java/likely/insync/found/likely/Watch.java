package insync.found.likely;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import kafka.cluster.Partition;
import net.bytebuddy.asm.Advice;

/**
 * Writes a line whenever a replica enters an epoch, into the file that the system property
 * insync.watch names. Its advice goes into Partition.makeLeader and makeFollower.
 *
 * <p>A line: L or F (leads, follows), broker, partition, epoch before and now, whether it led
 * before, high watermark before and now.
 */
public final class Watch {
  private static final Path FILE = Path.of(System.getProperty("insync.watch", "watch"));
  private static final StringBuilder LINES = new StringBuilder();

  private Watch() {}

  /**
   * What is known of a replica before it hears of new metadata: epoch, whether it leads, watermark.
   */
  public static long[] before(Partition partition) {
    return new long[] {
      partition.getLeaderEpoch(), partition.isLeader() ? 1 : 0, highWatermark(partition)
    };
  }

  /** The same afterwards. Nothing is written if the epoch is the same. */
  public static synchronized void after(String what, Partition partition, long[] before) {
    int epoch = partition.getLeaderEpoch();
    if (epoch == before[0] || before[0] < 0) {
      return;
    }
    LINES.append(what).append(' ').append(partition.topicPartition()).append(' ');
    LINES.append(before[0]).append(' ').append(epoch).append(' ').append(before[1]).append(' ');
    LINES.append(before[2]).append(' ').append(highWatermark(partition)).append('\n');
    try {
      Files.writeString(
          FILE,
          LINES,
          StandardCharsets.US_ASCII,
          StandardOpenOption.CREATE,
          StandardOpenOption.APPEND);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    LINES.setLength(0);
  }

  private static long highWatermark(Partition partition) {
    return partition.log().isDefined() ? partition.log().get().highWatermark() : 0;
  }

  /** For Partition.makeLeader. */
  public static final class Leader {
    private Leader() {}

    /** Before. */
    @Advice.OnMethodEnter
    public static long[] enter(@Advice.This Partition partition) {
      return before(partition);
    }

    /** After. */
    @Advice.OnMethodExit
    public static void exit(@Advice.This Partition partition, @Advice.Enter long[] known) {
      after("L", partition, known);
    }
  }

  /** For Partition.makeFollower. */
  public static final class Follower {
    private Follower() {}

    /** Before. */
    @Advice.OnMethodEnter
    public static long[] enter(@Advice.This Partition partition) {
      return before(partition);
    }

    /** After. */
    @Advice.OnMethodExit
    public static void exit(@Advice.This Partition partition, @Advice.Enter long[] known) {
      after("F", partition, known);
    }
  }
}
