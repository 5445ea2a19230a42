package insync.found.fix;

import net.bytebuddy.asm.Advice;

/**
 * Replica.resetReplicaState, which runs once for every follower when a leader enters an epoch,
 * always forgets the follower's position. Today it keeps the position where the broker led before.
 */
public final class PositionsReset {
  private PositionsReset() {}

  /** Whatever the caller says, the leader is new. */
  @Advice.OnMethodEnter
  public static void enter(@Advice.Argument(value = 2, readOnly = false) boolean isNewLeader) {
    isNewLeader = true;
  }
}
