package org.apache.kafka.controller;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntPredicate;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.DefaultDirProvider;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Three reports on the controller's own classes, each asked one question: NUMBER yes (the bug is
 * there) or NUMBER no. The package is theirs, because the classes are visible only there.
 */
public final class Reports {
  private Reports() {}

  /** One line for each report. */
  public static void main(String[] arguments) throws ReflectiveOperationException {
    say("KAFKA-15665", completes(List.of(1), List.of(), List.of(0, 1, 2), List.of(0, 1)));
    say("KAFKA-19975", !completes(List.of(), List.of(3), List.of(0, 1, 2, 3), List.of(0, 1, 3)));
    say("KAFKA-19522", electsUnacceptable());
  }

  private static void say(String report, boolean there) {
    System.out.println(report + (there ? " yes" : " no"));
  }

  /** Whether a reassignment is complete with such an ISR. */
  private static boolean completes(
      List<Integer> removing, List<Integer> adding, List<Integer> replicas, List<Integer> isr) {
    return new PartitionReassignmentReplicas(removing, adding, replicas)
        .maybeCompleteReassignment(isr)
        .isPresent();
  }

  /**
   * The last leader, 1, is all that is left of the ELR, is struck from it, and is not acceptable;
   * whether it is elected.
   */
  private static boolean electsUnacceptable() throws ReflectiveOperationException {
    PartitionRegistration partition =
        new PartitionRegistration.Builder()
            .setReplicas(new int[] {1, 2})
            .setDirectories(new Uuid[] {new Uuid(1, 1), new Uuid(1, 2)})
            .setIsr(new int[] {})
            .setElr(new int[] {1})
            .setLastKnownElr(new int[] {1})
            .setLeader(-1)
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
            .setLeaderEpoch(1)
            .setPartitionEpoch(1)
            .build();
    IntPredicate nobody = broker -> false;
    PartitionChangeBuilder builder = builder(partition, nobody);
    builder.setTargetIsr(List.of());
    builder.setUncleanShutdownReplicas(List.of(1));
    DefaultDirProvider directories = broker -> new Uuid(1, broker);
    builder.setDefaultDirProvider(directories);
    Optional<ApiMessageAndVersion> change = builder.build();
    return change.isPresent() && ((PartitionChangeRecord) change.get().message()).leader() == 1;
  }

  private static PartitionChangeBuilder builder(
      PartitionRegistration partition, IntPredicate leader) throws ReflectiveOperationException {
    return builder(partition, leader, 1);
  }

  /** Whether the ELR is on is a setter before 4.3, and an argument since. */
  static PartitionChangeBuilder builder(
      PartitionRegistration partition, IntPredicate leader, int minimum)
      throws ReflectiveOperationException {
    Constructor<?> constructor = PartitionChangeBuilder.class.getConstructors()[0];
    List<Object> given = new ArrayList<>();
    given.addAll(
        List.of(partition, new Uuid(2, 2), 0, leader, MetadataVersion.latestTesting(), minimum));
    if (constructor.getParameterCount() == given.size() + 1) {
      given.add(true);
    }
    Object made = constructor.newInstance(given.toArray());
    for (Method method : PartitionChangeBuilder.class.getMethods()) {
      if (method.getName().equals("setEligibleLeaderReplicasEnabled")) {
        method.invoke(made, true);
      }
    }
    return (PartitionChangeBuilder) made;
  }
}
