package insync.found.fix;

import kafka.cluster.Partition;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * The narrower form of {@link PositionsReset}: positions are forgotten only where the leader's new
 * epoch is not the one after its last, so that another broker may have led in between.
 */
public final class EpochGap {
  /** True while the thread is in a makeLeader that skips an epoch. */
  public static final ThreadLocal<Boolean> IS_GAP = ThreadLocal.withInitial(() -> false);

  private EpochGap() {}

  /** For Partition.makeLeader. */
  public static final class Leader {
    private Leader() {}

    /** Compares the epochs. */
    @Advice.OnMethodEnter
    public static void enter(
        @Advice.This Partition partition, @Advice.Argument(0) PartitionRegistration registration) {
      IS_GAP.set(registration.leaderEpoch > partition.getLeaderEpoch() + 1);
    }

    /** Forgets the comparison. */
    @Advice.OnMethodExit(onThrowable = Throwable.class)
    public static void exit() {
      IS_GAP.set(false);
    }
  }

  /** For Replica.resetReplicaState. */
  public static final class Position {
    private Position() {}

    /** The leader is as good as new if it skipped an epoch. */
    @Advice.OnMethodEnter
    public static void enter(@Advice.Argument(value = 2, readOnly = false) boolean isNewLeader) {
      isNewLeader = isNewLeader || IS_GAP.get();
    }
  }
}
