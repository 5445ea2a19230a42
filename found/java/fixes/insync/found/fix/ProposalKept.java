package insync.found.fix;

import kafka.cluster.Partition;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * Partition.makeLeader leaves the ISR, and a proposal of another one, as they are where it is told
 * of the leader epoch and the partition epoch that it has. The assignment it takes over all the
 * same, for an answer to an AlterPartition does not tell it.
 */
public final class ProposalKept {
  /** What the thread's makeLeader is told of; null outside of makeLeader. */
  public static final ThreadLocal<PartitionRegistration> NEWS = new ThreadLocal<>();

  private ProposalKept() {}

  /** Whether the partition knows the version that it is told of. */
  public static boolean isKnown(Partition partition) {
    PartitionRegistration told = NEWS.get();
    return told != null
        && partition.isLeader()
        && told.leaderEpoch == partition.getLeaderEpoch()
        && told.partitionEpoch == partition.getPartitionEpoch();
  }

  /** For Partition.makeLeader. */
  public static final class Leader {
    private Leader() {}

    /** Remembers what it is told of. */
    @Advice.OnMethodEnter
    public static void enter(@Advice.Argument(0) PartitionRegistration registration) {
      NEWS.set(registration);
    }

    /** Forgets it. */
    @Advice.OnMethodExit(onThrowable = Throwable.class)
    public static void exit() {
      NEWS.remove();
    }
  }

  /** For Partition.updateAssignmentAndIsr, which makeLeader calls under the partition's lock. */
  public static final class State {
    private State() {}

    /** The state that stays; null if it is to be replaced. */
    @Advice.OnMethodEnter
    public static Object enter(
        @Advice.This Partition partition,
        @Advice.FieldValue(value = "partitionState", typing = Assigner.Typing.DYNAMIC)
            Object state) {
      return isKnown(partition) ? state : null;
    }

    /** Puts it back. */
    @Advice.OnMethodExit
    public static void exit(
        @Advice.Enter Object kept,
        @Advice.FieldValue(
                value = "partitionState",
                readOnly = false,
                typing = Assigner.Typing.DYNAMIC)
            Object state) {
      if (kept != null) {
        state = kept;
      }
    }
  }
}
