package insync.raft;

import java.util.List;

/**
 * The end of a voter's process that was told of a leader that cannot be: itself, which has
 * forgotten that, or a second one of its epoch.
 */
public final class ImpossibleLeader {
  /** How KafkaRaftClient.maybeTransition and QuorumState.transitionToFollower refuse one. */
  private static final List<String> REFUSALS =
      List.of(
          "Received request or response with leader", "Cannot transition to Follower with leader");

  private ImpossibleLeader() {}

  /** Whether this is such an end. */
  public static boolean isReason(IllegalStateException problem) {
    return REFUSALS.stream().anyMatch(String.valueOf(problem.getMessage())::startsWith);
  }
}
