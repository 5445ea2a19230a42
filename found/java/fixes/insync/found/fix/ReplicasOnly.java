package insync.found.fix;

import java.util.List;
import net.bytebuddy.asm.Advice;

/**
 * PartitionChangeBuilder.maybePopulateTargetElr keeps only replicas of the partition in the ELR.
 */
public final class ReplicasOnly {
  private ReplicasOnly() {}

  /** Whoever is no replica after this change is no member either. */
  @Advice.OnMethodExit
  public static void exit(
      @Advice.FieldValue(value = "targetElr", readOnly = false) List<Integer> members,
      @Advice.FieldValue("targetReplicas") List<Integer> replicas) {
    members = common(members, replicas);
  }

  /** Those of the first that are in the second. */
  public static List<Integer> common(List<Integer> members, List<Integer> replicas) {
    return members.stream().filter(replicas::contains).toList();
  }
}
