package insync.found.mistakes;

import insync.found.fix.Fix;
import java.io.File;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.partition.PartitionState;
import org.apache.kafka.server.partition.PendingPartitionChange;
import scala.Tuple2;

/**
 * Mistakes to plant in Kafka's classes: a guard that is dropped, a comparison that is not made, a
 * step that is left out. They show what the simulation of found/upstream notices.
 */
public final class Mistakes {
  private static final String PARTITION = "kafka.cluster.Partition";
  private static final String CONTROLLER = "org.apache.kafka.controller.ReplicationControlManager";
  private static final String BUILDER = "org.apache.kafka.controller.PartitionChangeBuilder";
  private static final String LOG = "org.apache.kafka.storage.internals.log.UnifiedLog";
  private static final String EPOCHS =
      "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache";
  private static final String CLEAN =
      "org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler";
  private static final String STATES = "org.apache.kafka.server.partition.";

  /** Each by its name. */
  static final Map<String, Fix.Change> ALL =
      Map.ofEntries(
          // Whom a leader takes into the ISR, and for whom it waits.
          Map.entry("any-follower-in-sync", change(PARTITION, "isFollowerInSync", True.class)),
          Map.entry("any-replica-eligible", change(PARTITION, "isReplicaIsrEligible", True.class)),
          Map.entry("any-broker-epoch", change(PARTITION, "isBrokerEpochIsrEligible", True.class)),
          Map.entry(
              "expansion-not-awaited", change(STATES + "PendingExpandIsr", "maximalIsr", Isr.class)),
          Map.entry(
              "shrink-at-once", change(STATES + "PendingShrinkIsr", "maximalIsr", SentIsr.class)),
          Map.entry("under-min-isr-commits", change(PARTITION, "isUnderMinIsr", False.class)),
          Map.entry(
              "acknowledged-at-once",
              change(PARTITION, "checkEnoughReplicasReachOffset", Enough.class)),
          // Epochs that are compared, and logs that are truncated.
          Map.entry("any-leader-epoch", change(PARTITION, "checkCurrentLeaderEpoch", NoError.class)),
          Map.entry("log-not-truncated", change(LOG, "truncateTo", Skip.class)),
          Map.entry("no-epoch-assigned", change(EPOCHS, "assign", Skip.class)),
          Map.entry("epochs-not-truncated", change(EPOCHS, "truncateFromEndAsyncFlush", Skip.class)),
          // What the controller asks before it decides.
          Map.entry(
              "any-alter-partition", change(CONTROLLER, "validateAlterPartitionData", NoError.class)),
          Map.entry(
              "any-broker-in-isr", change(CONTROLLER, "ineligibleReplicasForIsr", Nobody.class)),
          Map.entry("any-leader", change(BUILDER, "isValidNewLeader", True.class)),
          Map.entry(
              "unclean-stays", change(BUILDER, "setUncleanShutdownReplicas", SkipItself.class)),
          Map.entry("clean-forever", change(CLEAN, "delete", Skip.class)));

  private Mistakes() {}

  /** Arguments: the mistake's name, and the folder, from which a class is read if it is there. */
  public static void main(String[] arguments) throws IOException {
    Fix.Change mistake = ALL.get(arguments[0]);
    if (mistake == null) {
      throw new IllegalArgumentException(
          "no mistake " + arguments[0] + "; there are " + ALL.keySet());
    }
    Fix.write(mistake.type(), List.of(mistake), new File(arguments[1]));
  }

  private static Fix.Change change(String type, String method, Class<?> advice) {
    return new Fix.Change(type, method, advice);
  }

  /** Returns true, whatever the method says. */
  static final class True {
    private True() {}

    @Advice.OnMethodExit
    static void exit(@Advice.Return(readOnly = false) boolean result) {
      result = true;
    }
  }

  /** Returns false, whatever the method says. */
  static final class False {
    private False() {}

    @Advice.OnMethodExit
    static void exit(@Advice.Return(readOnly = false) boolean result) {
      result = false;
    }
  }

  /** Does nothing. */
  static final class Skip {
    private Skip() {}

    @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
    static boolean enter() {
      return true;
    }
  }

  /** Does nothing, and returns the object that it was called on. */
  static final class SkipItself {
    private SkipItself() {}

    @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
    static boolean enter() {
      return true;
    }

    @Advice.OnMethodExit
    static void exit(
        @Advice.This Object builder,
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = builder;
    }
  }

  /** Errors.NONE, whatever the method says. */
  static final class NoError {
    private NoError() {}

    @Advice.OnMethodExit
    static void exit(@Advice.Return(readOnly = false) Errors result) {
      result = Errors.NONE;
    }
  }

  /** An empty list. */
  static final class Nobody {
    private Nobody() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = List.of();
    }
  }

  /** The ISR that is committed. */
  static final class Isr {
    private Isr() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.This PartitionState state,
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = state.isr();
    }
  }

  /** The ISR that was sent to the controller. */
  static final class SentIsr {
    private SentIsr() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.This PendingPartitionChange state,
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = new HashSet<>(state.sentLeaderAndIsr().isr());
    }
  }

  /** All in-sync replicas have the record. */
  static final class Enough {
    private Enough() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = new Tuple2<Object, Errors>(true, Errors.NONE);
    }
  }
}
