package org.apache.kafka.controller;

import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.DefaultDirProvider;

/**
 * The cause of found/removed-replica on PartitionChangeBuilder alone, in the manner of its own
 * test. Replication factor 3, min.insync.replicas 2: replica 2, alone in the ISR, is replaced by 4,
 * which has caught up. The last line says whether the reassignment ends, and whether 2 is in the
 * ELR then.
 */
public final class ElrOfRemoved {
  private static final int REMOVED_BROKER = 2;

  private ElrOfRemoved() {}

  /** Prints the change, and "removed: in the ELR", "not in the ELR" or "still a replica". */
  public static void main(String[] arguments) throws ReflectiveOperationException {
    PartitionRegistration before = reassigning();
    DefaultDirProvider directories = broker -> new Uuid(1, broker);
    var change =
        Reports.builder(before, broker -> true, 2)
            .setTargetIsr(List.of(REMOVED_BROKER, 4))
            .setDefaultDirProvider(directories)
            .build()
            .orElseThrow();
    PartitionRegistration after = before.merge((PartitionChangeRecord) change.message());
    System.out.printf(
        "replicas %s, ISR %s, leader %d, ELR %s%n",
        Arrays.toString(after.replicas),
        Arrays.toString(after.isr),
        after.leader,
        Arrays.toString(after.elr));
    boolean replica = contains(after.replicas);
    String elr = contains(after.elr) ? "in the ELR" : "not in the ELR";
    System.out.println("removed: " + (replica ? "still a replica" : elr));
  }

  private static PartitionRegistration reassigning() {
    return new PartitionRegistration.Builder()
        .setReplicas(new int[] {4, 1, 3, REMOVED_BROKER})
        .setDirectories(
            new Uuid[] {
              new Uuid(1, 4), new Uuid(1, 1), new Uuid(1, 3), new Uuid(1, REMOVED_BROKER)
            })
        .setAddingReplicas(new int[] {4})
        .setRemovingReplicas(new int[] {REMOVED_BROKER})
        .setIsr(new int[] {REMOVED_BROKER})
        .setElr(new int[] {1, 3})
        .setLeader(REMOVED_BROKER)
        .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
        .setLeaderEpoch(1)
        .setPartitionEpoch(2)
        .build();
  }

  private static boolean contains(int[] brokers) {
    return Arrays.stream(brokers).anyMatch(broker -> broker == REMOVED_BROKER);
  }
}
