package insync.found.likely;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import kafka.cluster.Partition;
import net.bytebuddy.asm.Advice;

/**
 * Writes a line whenever metadata of the same leader epoch reach a leader, into the file that the
 * system property insync.watch names. Its advice goes into Partition.makeLeader and
 * maybeIncrementLeaderHW.
 *
 * <p>The lines: "same" (of the partition epoch that it knows from an answer) or "newer"; "forgets"
 * and the members that it had proposed and no longer waits for; "commits" and such a member, the
 * first time that it lacks a committed record, as far as the leader knows, before the leader hears
 * of the next change; "behind" and such a member that is in the ISR by that change and lacks
 * records then, and how many.
 */
public final class Proposals {
  private static final Path FILE = Path.of(System.getProperty("insync.watch", "watch"));
  private static final Map<String, Set<Integer>> MISSING_MEMBERS = new ConcurrentHashMap<>();
  private static final Set<String> COMMITTED = ConcurrentHashMap.newKeySet();

  private Proposals() {}

  /** What a leader thinks before it hears of metadata. */
  public record Before(
      int leaderEpoch, int partitionEpoch, boolean inFlight, Set<Integer> members) {}

  /** Before; null where it does not lead. */
  public static Before before(Partition partition) {
    if (!partition.isLeader()) {
      return null;
    }
    return new Before(
        partition.getLeaderEpoch(),
        partition.getPartitionEpoch(),
        partition.partitionState().isInflight(),
        members(partition));
  }

  /** After. */
  public static synchronized void after(Partition partition, Before before) {
    String name = partition.topicPartition().toString();
    if (before == null || before.leaderEpoch != partition.getLeaderEpoch()) {
      MISSING_MEMBERS.remove(name);
      return;
    }
    boolean same = before.partitionEpoch == partition.getPartitionEpoch();
    write((same ? "same " : "newer ") + name);
    Set<Integer> members = members(partition);
    if (same) {
      Set<Integer> missing = new TreeSet<>(before.members);
      missing.removeAll(members);
      if (before.inFlight && !missing.isEmpty()) {
        write("forgets " + name + " " + missing);
        MISSING_MEMBERS.put(name, missing);
        COMMITTED.remove(name);
        committed(partition);
      }
      return;
    }
    Set<Integer> forgotten = MISSING_MEMBERS.remove(name);
    if (forgotten != null) {
      forgotten.stream()
          .filter(members::contains)
          .filter(member -> lacks(partition, member) > 0)
          .forEach(m -> write("behind " + name + " " + m + " " + lacks(partition, m)));
    }
  }

  /** The watermark may have moved. */
  public static void committed(Partition partition) {
    if (MISSING_MEMBERS.isEmpty()) {
      return;
    }
    String name = partition.topicPartition().toString();
    for (int member : MISSING_MEMBERS.getOrDefault(name, Set.of())) {
      if (lacks(partition, member) > 0 && COMMITTED.add(name)) {
        write("commits " + name + " " + member);
      }
    }
  }

  /** How many committed records the member lacks, as far as the leader knows. */
  private static long lacks(Partition partition, int member) {
    var replica = partition.getReplica(member);
    if (replica.isEmpty() || partition.log().isEmpty()) {
      return 0;
    }
    long end = replica.get().stateSnapshot().logEndOffset();
    return partition.log().get().highWatermark() - end;
  }

  /** The maximal ISR: a set of Scala's or of Java's. */
  private static Set<Integer> members(Partition partition) {
    Set<Integer> members = new TreeSet<>();
    Object set = partition.partitionState().maximalIsr();
    for (String number : set.toString().replaceAll("[^0-9]+", " ").strip().split(" ")) {
      members.add(Integer.valueOf(number));
    }
    return members;
  }

  private static synchronized void write(String line) {
    try {
      Files.writeString(
          FILE,
          line + "\n",
          StandardCharsets.US_ASCII,
          StandardOpenOption.CREATE,
          StandardOpenOption.APPEND);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** For Partition.makeLeader. */
  public static final class Leader {
    private Leader() {}

    /** Before. */
    @Advice.OnMethodEnter
    public static Before enter(@Advice.This Partition partition) {
      return before(partition);
    }

    /** After. */
    @Advice.OnMethodExit
    public static void exit(@Advice.This Partition partition, @Advice.Enter Before known) {
      after(partition, known);
    }
  }

  /** For Partition.maybeIncrementLeaderHW. */
  public static final class Commit {
    private Commit() {}

    /** After. */
    @Advice.OnMethodExit
    public static void exit(@Advice.This Partition partition) {
      committed(partition);
    }
  }
}
