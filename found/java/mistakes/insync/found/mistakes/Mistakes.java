package insync.found.mistakes;

import insync.found.fix.Fix;
import java.io.File;
import java.io.IOException;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.controller.ClusterControlManager;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.partition.PartitionState;
import org.apache.kafka.server.partition.PendingPartitionChange;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.Option;
import scala.Tuple2;

/**
 * Mistakes to plant in Kafka's classes: a guard that is dropped, a comparison that is not made, a
 * step that is left out. They show what the simulation of found/upstream notices.
 */
public final class Mistakes {
  private static final String PARTITION = "kafka.cluster.Partition";
  private static final String MANAGER = "kafka.server.ReplicaManager";
  private static final String FETCHER = "kafka.server.AbstractFetcherThread";
  private static final String CONTROLLER = "org.apache.kafka.controller.ReplicationControlManager";
  private static final String HEARTBEATS = "org.apache.kafka.controller.BrokerHeartbeatManager";
  private static final String BUILDER = "org.apache.kafka.controller.PartitionChangeBuilder";
  private static final String REASSIGNMENT =
      "org.apache.kafka.controller.PartitionReassignmentReplicas";
  private static final String CACHE = "org.apache.kafka.metadata.KRaftMetadataCache";
  private static final String REPLICA = "org.apache.kafka.server.replica.Replica";
  private static final String LOG = "org.apache.kafka.storage.internals.log.UnifiedLog";
  private static final String EPOCHS =
      "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache";
  private static final String CHECKPOINTS = "org.apache.kafka.storage.internals.checkpoint.";
  private static final String STATES = "org.apache.kafka.server.partition.";

  /** Each by its name. */
  static final Map<String, Fix.Change> ALL = new LinkedHashMap<>();

  static {
    // Whom a leader takes into the ISR, and for whom it waits.
    plant("any-follower-in-sync", PARTITION, "isFollowerInSync", True.class);
    plant("any-replica-eligible", PARTITION, "isReplicaIsrEligible", True.class);
    plant("any-broker-epoch", PARTITION, "isBrokerEpochIsrEligible", True.class);
    plant("shutting-down-unseen", CACHE, "isBrokerShuttingDown", False.class);
    plant("epoch-start-not-reached", PARTITION, "makeLeader", NoEpochStart.class);
    plant("never-expands", PARTITION, "needsExpandIsr", False.class);
    plant("never-shrinks", PARTITION, "needsShrinkIsr", False.class);
    plant("always-out-of-sync", PARTITION, "isFollowerOutOfSync", True.class);
    plant("expansion-not-awaited", STATES + "PendingExpandIsr", "maximalIsr", Isr.class);
    plant("shrink-at-once", STATES + "PendingShrinkIsr", "maximalIsr", SentIsr.class);
    plant("any-error-rolls-back", PARTITION, "handleAlterPartitionError", Ineligible.class);
    plant("no-error-rolls-back", PARTITION, "handleAlterPartitionError", Skip.class);
    plant("members-of-old-metadata", PARTITION, "updateAssignmentAndIsr", Skip.class);
    // When a leader commits, and when it answers a producer.
    plant("under-min-isr-commits", PARTITION, "isUnderMinIsr", False.class);
    plant("min-isr-of-one", PARTITION, "effectiveMinIsr", One.class);
    plant("acknowledged-at-once", PARTITION, "checkEnoughReplicasReachOffset", Enough.class);
    plant("nothing-commits", PARTITION, "maybeIncrementLeaderHW", Skip.class);
    plant("high-watermark-falls", LOG, "maybeIncrementHighWatermark", Falls.class);
    plant("high-watermark-beyond-end", LOG, "maybeIncrementHighWatermark", BeyondEnd.class);
    plant("high-watermark-of-log-end", PARTITION, "maybeIncrementLeaderHW", LogEnd.class);
    plant("positions-of-leader", REPLICA, "updateFetchStateOrThrow", Ahead.class);
    plant("positions-not-updated", PARTITION, "updateFollowerFetchState", Skip.class);
    plant("fetch-of-any-incarnation", REPLICA, "updateFetchStateOrThrow", NoBrokerEpoch.class);
    plant("requests-stay-parked", PARTITION, "tryCompleteDelayedRequests", Skip.class);
    // Epochs that are compared, and logs that are truncated.
    plant("any-leader-epoch", PARTITION, "checkCurrentLeaderEpoch", NoError.class);
    plant("log-not-truncated", LOG, "truncateTo", Skip.class);
    plant("divergence-ignored", FETCHER, "truncateOnFetchResponse", Skip.class);
    plant("nothing-diverges", LOG, "endOffsetForEpoch", NoDivergence.class);
    plant("epoch-ends-at-log-end", EPOCHS, "endOffsetFor", EndOfLog.class);
    plant("no-epoch-assigned", EPOCHS, "assign", Skip.class);
    plant("no-epoch-of-leader", LOG, "assignEpochStartOffset", Skip.class);
    plant("epochs-not-truncated", EPOCHS, "truncateFromEndAsyncFlush", Skip.class);
    plant("epochs-not-written", EPOCHS, "writeToFile", Skip.class);
    plant("records-of-epoch-zero", LOG, "appendAsLeader", EpochZero.class);
    plant("last-fetched-epoch-unknown", LOG, "latestEpoch", NoEpoch.class);
    // What a follower does.
    plant("high-watermark-not-followed", LOG, "maybeUpdateHighWatermark", Unchanged.class);
    plant(
        "new-leader-not-followed",
        "kafka.server.AbstractFetcherManager",
        "addFetcherForPartitions",
        Skip.class);
    plant("leaders-not-applied", MANAGER, "applyLocalLeadersDelta", Skip.class);
    plant("followers-not-applied", MANAGER, "applyLocalFollowersDelta", Skip.class);
    plant(
        "configuration-not-applied",
        "kafka.server.metadata.DynamicConfigPublisher",
        "onMetadataUpdate",
        Skip.class);
    plant("removed-replica-keeps-log", "kafka.log.LogManager", "asyncDelete", Skip.class);
    // Checkpoints, and what survives a restart.
    plant("high-watermark-not-written", MANAGER, "checkpointHighWatermarks", Skip.class);
    plant(
        "high-watermark-not-read", CHECKPOINTS + "LazyOffsetCheckpoints", "fetch", Unchanged.class);
    plant("high-watermark-too-high", CHECKPOINTS + "LazyOffsetCheckpoints", "fetch", Huge.class);
    plant("always-clean", CHECKPOINTS + "CleanShutdownFileHandler", "exists", True.class);
    plant("clean-forever", CHECKPOINTS + "CleanShutdownFileHandler", "delete", Skip.class);
    plant("never-clean", CHECKPOINTS + "CleanShutdownFileHandler", "write", Skip.class);
    plant("topic-id-not-written", LOG, "maybeFlushMetadataFile", Skip.class);
    // What the controller asks before it decides.
    plant("any-alter-partition", CONTROLLER, "validateAlterPartitionData", NoError.class);
    plant("any-partition-epoch", CONTROLLER, "validateAlterPartitionData", AnyPartitionEpoch.class);
    plant("any-broker-in-isr", CONTROLLER, "ineligibleReplicasForIsr", Nobody.class);
    plant("any-incarnation-in-isr", CONTROLLER, "ineligibleReplicasForIsr", NoBrokerEpochs.class);
    plant("shutting-down-in-isr", CONTROLLER, "ineligibleReplicasForIsr", NotShuttingDown.class);
    plant(
        "shutting-down-elected",
        "org.apache.kafka.controller.ClusterControlManager",
        "isActive",
        WhileShuttingDown.class);
    plant(
        "partition-epoch-unchanged",
        "org.apache.kafka.metadata.PartitionRegistration",
        "merge",
        SamePartitionEpoch.class);
    plant("every-shutdown-clean", CONTROLLER, "handleBrokerShutdown", Clean.class);
    plant("every-shutdown-unclean", CONTROLLER, "handleBrokerShutdown", Unclean.class);
    plant("isr-keeps-the-fenced", CONTROLLER, "generateLeaderAndIsrUpdates", Skip.class);
    plant("unfenced-too-early", HEARTBEATS, "calculateNextBrokerState", NoOffset.class);
    plant("shuts-down-too-early", HEARTBEATS, "lowestActiveOffset", Latest.class);
    // Elections, ELR and reassignments.
    plant("any-leader", BUILDER, "isValidNewLeader", True.class);
    plant("any-last-known-leader", BUILDER, "canElectLastKnownLeader", True.class);
    plant("no-last-known-leader", BUILDER, "canElectLastKnownLeader", False.class);
    plant("unclean-stays", BUILDER, "setUncleanShutdownReplicas", SkipItself.class);
    plant("no-elr", BUILDER, "maybePopulateTargetElr", Skip.class);
    plant("elr-of-all-replicas", BUILDER, "maybePopulateTargetElr", AllReplicas.class);
    plant("elr-keeps-the-in-sync", BUILDER, "maybePopulateTargetElr", InSyncAsWell.class);
    plant("controller-min-isr-of-one", CONTROLLER, "getTopicEffectiveMinIsr", One.class);
    plant("controller-min-isr-too-big", CONTROLLER, "getTopicEffectiveMinIsr", Many.class);
    plant("elr-not-cleared", CONTROLLER, "removeTopicElrs", Skip.class);
    plant("reassignment-never-completes", BUILDER, "completeReassignmentIfNeeded", Skip.class);
    plant("isr-keeps-the-removed", BUILDER, "completeReassignmentIfNeeded", WholeIsr.class);
    plant("reassignment-without-added", REASSIGNMENT, "maybeCompleteReassignment", AllInSync.class);
    plant(
        "reassignment-keeps-epoch",
        BUILDER,
        "triggerLeaderEpochBumpForReplicaReassignmentIfNeeded",
        Skip.class);
  }

  private Mistakes() {}

  /**
   * Arguments: the mistake's name, and the folder, from which a class is read if it is there. With
   * the name "all" each mistake gets a folder of its own in that folder.
   */
  public static void main(String[] arguments) throws IOException {
    File folder = new File(arguments[1]);
    if (arguments[0].equals("all")) {
      for (Fix.Change mistake : ALL.values()) {
        String name = nameOf(mistake);
        Fix.write(mistake.type(), List.of(mistake), new File(folder, name));
      }
      return;
    }
    Fix.Change mistake = ALL.get(arguments[0]);
    if (mistake == null) {
      throw new IllegalArgumentException(
          "no mistake " + arguments[0] + "; there are " + ALL.keySet());
    }
    Fix.write(mistake.type(), List.of(mistake), folder);
  }

  private static String nameOf(Fix.Change mistake) {
    return ALL.entrySet().stream()
        .filter(entry -> entry.getValue().equals(mistake))
        .findFirst()
        .orElseThrow()
        .getKey();
  }

  private static void plant(String name, String type, String method, Class<?> advice) {
    ALL.put(name, new Fix.Change(type, method, advice));
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

  /** Returns 1. */
  static final class One {
    private One() {}

    @Advice.OnMethodExit
    static void exit(@Advice.Return(readOnly = false) int result) {
      result = 1;
    }
  }

  /** Returns more than there are brokers. */
  static final class Many {
    private Many() {}

    @Advice.OnMethodExit
    static void exit(@Advice.Return(readOnly = false) int result) {
      result = 99;
    }
  }

  /** The high watermark becomes an offset that is beyond every log. */
  static final class BeyondEnd {
    private BeyondEnd() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.Argument(0) LogOffsetMetadata offset,
        @Advice.FieldValue(value = "highWatermarkMetadata", readOnly = false)
            LogOffsetMetadata highWatermark,
        @Advice.Return Optional<?> previous) {
      if (previous.isPresent()) {
        highWatermark = new LogOffsetMetadata(offset.messageOffset + 1_000_000);
      }
    }
  }

  /** An offset that every broker has reached. */
  static final class Latest {
    private Latest() {}

    @Advice.OnMethodExit
    static void exit(@Advice.Return(readOnly = false) long result) {
      result = Long.MAX_VALUE;
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

  /** No epoch is known. */
  static final class NoEpoch {
    private NoEpoch() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = Optional.empty();
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

  /** Every epoch is known, and ends where the log does. */
  static final class NoDivergence {
    private NoDivergence() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.This UnifiedLog log,
        @Advice.Argument(0) int epoch,
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = Optional.of(new OffsetAndEpoch(log.logEndOffset(), epoch));
    }
  }

  /** The epoch asked for ends where the log does. */
  static final class EndOfLog {
    private EndOfLog() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.Argument(0) int epoch,
        @Advice.Argument(1) long end,
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = new AbstractMap.SimpleImmutableEntry<>(epoch, end);
    }
  }

  /** An offset that is beyond every log. */
  static final class Huge {
    private Huge() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = Optional.of(1_000_000L);
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

  /** Does nothing, and says so. */
  static final class Unchanged {
    private Unchanged() {}

    @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
    static boolean enter() {
      return true;
    }

    @Advice.OnMethodExit
    static void exit(
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      result = Optional.empty();
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

  /** The high watermark becomes what it is told, lower, too. */
  static final class Falls {
    private Falls() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.This UnifiedLog log, @Advice.Argument(0) LogOffsetMetadata offset)
        throws IOException {
      if (offset.messageOffset < log.highWatermark()) {
        log.updateHighWatermark(offset);
      }
    }
  }

  /** Nobody is waited for. */
  static final class LogEnd {
    private LogEnd() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.Argument(0) UnifiedLog log) throws IOException {
      log.updateHighWatermark(log.logEndOffset());
    }
  }

  /** A leader need not have been reached from the start of its epoch on. */
  static final class NoEpochStart {
    private NoEpochStart() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.FieldValue(
                value = "leaderEpochStartOffsetOpt",
                readOnly = false,
                typing = Assigner.Typing.DYNAMIC)
            Object start) {
      start = Option.apply(0L);
    }
  }

  /** All replicas that are not in the ISR are in the ELR, if anybody is. */
  static final class AllReplicas {
    private AllReplicas() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.FieldValue(value = "targetElr", readOnly = false) List<Integer> members,
        @Advice.FieldValue("targetIsr") List<Integer> isr,
        @Advice.FieldValue("targetReplicas") List<Integer> replicas) {
      if (!members.isEmpty()) {
        members = new ArrayList<>(replicas);
        members.removeAll(isr);
      }
    }
  }

  /** The members of the ISR are in the ELR as well, if anybody is. */
  static final class InSyncAsWell {
    private InSyncAsWell() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.FieldValue(value = "targetElr", readOnly = false) List<Integer> members,
        @Advice.FieldValue("targetIsr") List<Integer> isr) {
      if (!members.isEmpty()) {
        members = new ArrayList<>(members);
        members.addAll(isr);
      }
    }
  }

  /** Nobody leaves the ISR. */
  static final class WholeIsr {
    private WholeIsr() {}

    @Advice.OnMethodEnter
    static List<Integer> enter(@Advice.FieldValue("targetIsr") List<Integer> isr) {
      return isr;
    }

    @Advice.OnMethodExit
    static void exit(
        @Advice.Enter List<Integer> before,
        @Advice.FieldValue(value = "targetIsr", readOnly = false) List<Integer> isr) {
      isr = before;
    }
  }

  /** The partition epoch stays what it was. */
  static final class SamePartitionEpoch {
    private SamePartitionEpoch() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.This PartitionRegistration before,
        @Advice.Return(readOnly = false) PartitionRegistration result) {
      result =
          new PartitionRegistration.Builder()
              .setReplicas(result.replicas)
              .setDirectories(result.directories)
              .setIsr(result.isr)
              .setRemovingReplicas(result.removingReplicas)
              .setAddingReplicas(result.addingReplicas)
              .setElr(result.elr)
              .setLastKnownElr(result.lastKnownElr)
              .setLeader(result.leader)
              .setLeaderRecoveryState(result.leaderRecoveryState)
              .setLeaderEpoch(result.leaderEpoch)
              .setPartitionEpoch(before.partitionEpoch)
              .build();
    }
  }

  /** Whoever is not fenced is active, also while it shuts down. */
  static final class WhileShuttingDown {
    private WhileShuttingDown() {}

    @Advice.OnMethodExit
    static void exit(
        @Advice.This ClusterControlManager brokers,
        @Advice.Argument(0) int id,
        @Advice.Return(readOnly = false) boolean result) {
      result = brokers.isUnfenced(id);
    }
  }

  /** Whoever shuts down is not ineligible. */
  static final class NotShuttingDown {
    private NotShuttingDown() {}

    @Advice.OnMethodExit
    static void exit(@Advice.Return List<?> result) {
      for (int i = result.size() - 1; i >= 0; i--) {
        if (result.get(i).toString().contains("shutting down")) {
          result.remove(i);
        }
      }
    }
  }

  /** No broker epoch is given, so none is compared. */
  static final class NoBrokerEpochs {
    private NoBrokerEpochs() {}

    @Advice.OnMethodEnter
    static void enter(
        @Advice.Argument(value = 0, readOnly = false)
            List<AlterPartitionRequestData.BrokerState> members) {
      List<AlterPartitionRequestData.BrokerState> all = new ArrayList<>();
      for (AlterPartitionRequestData.BrokerState member : members) {
        all.add(member.duplicate().setBrokerEpoch(-1));
      }
      members = all;
    }
  }

  /** Each error is as good as INELIGIBLE_REPLICA. */
  static final class Ineligible {
    private Ineligible() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.Argument(value = 1, readOnly = false) Errors error) {
      error = Errors.INELIGIBLE_REPLICA;
    }
  }

  /** The follower has what the leader has. */
  static final class Ahead {
    private Ahead() {}

    @Advice.OnMethodEnter
    static void enter(
        @Advice.Argument(value = 0, readOnly = false) LogOffsetMetadata position,
        @Advice.Argument(3) long end) {
      position = new LogOffsetMetadata(end);
    }
  }

  /** No broker epoch is compared. */
  static final class NoBrokerEpoch {
    private NoBrokerEpoch() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.Argument(value = 4, readOnly = false) long brokerEpoch) {
      brokerEpoch = -1;
    }
  }

  /** Records bear epoch 0. */
  static final class EpochZero {
    private EpochZero() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.Argument(value = 1, readOnly = false) int epoch) {
      epoch = 0;
    }
  }

  /** The partition epoch is as it should be. */
  static final class AnyPartitionEpoch {
    private AnyPartitionEpoch() {}

    @Advice.OnMethodEnter
    static void enter(
        @Advice.Argument(3) PartitionRegistration partition,
        @Advice.Argument(4) AlterPartitionRequestData.PartitionData data) {
      data.setPartitionEpoch(partition.partitionEpoch);
    }
  }

  /** The shutdown was clean. */
  static final class Clean {
    private Clean() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.Argument(value = 1, readOnly = false) boolean clean) {
      clean = true;
    }
  }

  /** The shutdown was not clean. */
  static final class Unclean {
    private Unclean() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.Argument(value = 1, readOnly = false) boolean clean) {
      clean = false;
    }
  }

  /** The broker need not have read its registration. */
  static final class NoOffset {
    private NoOffset() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.Argument(value = 2, readOnly = false) long offset) {
      offset = -1;
    }
  }

  /** All that are added are in sync. */
  static final class AllInSync {
    private AllInSync() {}

    @Advice.OnMethodEnter
    static void enter(
        @Advice.Argument(value = 0, readOnly = false) List<Integer> isr,
        @Advice.FieldValue("adding") List<Integer> adding) {
      isr = new ArrayList<>(isr);
      isr.removeAll(adding);
      isr.addAll(adding);
    }
  }
}
