package insync.kafka;

import insync.conform.Refused;
import java.util.stream.IntStream;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * LeaderRecoveryState, which the model does not have: who is elected from outside of ISR and ELR
 * recovers (PartitionChangeBuilder.tryElection), and who is elected from the ISR does not begin to.
 * Where a reassignment is under way, that is not looked at: who joins may lead in the same record.
 */
final class Recovery {
  private Recovery() {}

  /** What was decided in this step says something else; null if it does not. */
  static Refused fault(PartitionRegistration before, PartitionRegistration after) {
    boolean reassigned = before.addingReplicas.length + before.removingReplicas.length > 0;
    if (after.leader < 0 || after.leaderEpoch == before.leaderEpoch || reassigned) {
      return null;
    }
    boolean recovers = after.leaderRecoveryState == LeaderRecoveryState.RECOVERING;
    boolean began = recovers && before.leaderRecoveryState != LeaderRecoveryState.RECOVERING;
    boolean member = contains(IntStream.of(before.isr), after.leader);
    boolean eligible = member || contains(IntStream.of(before.elr), after.leader);
    if (!eligible && !recovers) {
      return Refused.because("who is elected from outside does not recover");
    }
    return member && began
        ? Refused.because("who is elected from the ISR recovers")
        : null;
  }

  private static boolean contains(IntStream ids, int id) {
    return ids.anyMatch(i -> i == id);
  }
}
