package insync.plant;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Mistakes in unclean elections: each is code that is put at the end of a method. */
final class Elections {
  private Elections() {}

  /** PartitionChangeBuilder.build: whoever was in sync is still, beside who is elected. */
  static final class KeepsIsr {
    @Advice.OnMethodExit
    static void exit(
        @Advice.FieldValue("partition") PartitionRegistration partition,
        @Advice.Return Optional<ApiMessageAndVersion> answer) {
      if (answer.isPresent()) {
        PartitionChangeRecord change = (PartitionChangeRecord) answer.get().message();
        if (change.leaderRecoveryState() == LeaderRecoveryState.RECOVERING.value()) {
          List<Integer> isr = new ArrayList<>(List.of(change.leader()));
          for (int member : partition.isr) {
            if (member != change.leader()) {
              isr.add(member);
            }
          }
          change.setIsr(isr);
        }
      }
    }
  }

  /** PartitionChangeBuilder.build: nobody is told that the log of who is elected may lack records. */
  static final class RecoversNothing {
    @Advice.OnMethodExit
    static void exit(@Advice.Return Optional<ApiMessageAndVersion> answer) {
      if (answer.isPresent()) {
        PartitionChangeRecord change = (PartitionChangeRecord) answer.get().message();
        if (change.leaderRecoveryState() == LeaderRecoveryState.RECOVERING.value()) {
          change.setLeaderRecoveryState(LeaderRecoveryState.NO_CHANGE);
        }
      }
    }
  }

  /** PartitionChangeBuilder.build: a broker without a replica is elected, whose id lies between. */
  static final class GoesOutside {
    @Advice.OnMethodExit
    static void exit(
        @Advice.FieldValue("partition") PartitionRegistration partition,
        @Advice.Return Optional<ApiMessageAndVersion> answer) {
      if (answer.isPresent()) {
        PartitionChangeRecord change = (PartitionChangeRecord) answer.get().message();
        int outside = 0;
        int last = 0;
        for (int replica : partition.replicas) {
          last = Math.max(last, replica);
        }
        for (boolean taken = true; taken; ) {
          taken = false;
          for (int replica : partition.replicas) {
            taken |= replica == outside;
          }
          outside += taken ? 1 : 0;
        }
        boolean unclean = change.leaderRecoveryState() == LeaderRecoveryState.RECOVERING.value();
        if (unclean && outside < last) {
          change.setLeader(outside).setIsr(List.of(outside));
        }
      }
    }
  }

  /** PartitionRegistration.merge: who is elected leads in the epoch of the leader before it. */
  static final class KeepsEpoch {
    @Advice.OnMethodExit
    static void exit(
        @Advice.This PartitionRegistration before,
        @Advice.Argument(0) PartitionChangeRecord change,
        @Advice.Return(readOnly = false) PartitionRegistration answer) {
      if (change.leaderRecoveryState() == LeaderRecoveryState.RECOVERING.value()) {
        answer =
            new PartitionRegistration.Builder()
                .setReplicas(answer.replicas)
                .setDirectories(answer.directories)
                .setIsr(answer.isr)
                .setRemovingReplicas(answer.removingReplicas)
                .setAddingReplicas(answer.addingReplicas)
                .setElr(answer.elr)
                .setLastKnownElr(answer.lastKnownElr)
                .setLeader(answer.leader)
                .setLeaderRecoveryState(answer.leaderRecoveryState)
                .setLeaderEpoch(before.leaderEpoch)
                .setPartitionEpoch(answer.partitionEpoch)
                .build();
      }
    }
  }
}
