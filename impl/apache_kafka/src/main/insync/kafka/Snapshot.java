package insync.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.replica.Replica;

/** A world in the variables of the model. */
final class Snapshot {
  private final World world;
  private final HeldController controller;
  private final Map<String, Object> state = new LinkedHashMap<>();
  private final List<String> alive = new ArrayList<>();
  private final List<String> fenced = new ArrayList<>();
  private final List<String> leaving = new ArrayList<>();
  private final List<String> clean = new ArrayList<>();
  private final List<String> ahead = new ArrayList<>();

  /** Whether leaders are asked for what they tell, in place of what they have. */
  private final boolean asks;

  private Snapshot(World world, boolean asks) {
    this.world = world;
    this.asks = asks;
    controller = world.controller();
  }

  /** Every variable that these settings have. */
  static Map<String, Object> of(World world) {
    return of(world, Steering.APIS && !world.fresh);
  }

  /** The same, without asking anybody. */
  static Map<String, Object> withoutQuestions(World world) {
    return of(world, false);
  }

  private static Map<String, Object> of(World world, boolean asks) {
    Snapshot made = new Snapshot(world, asks);
    for (int i = 0; i < world.size(); i++) {
      made.machine(world.look(i));
    }
    made.controller();
    made.history();
    return made.state;
  }

  private void put(String variable, Machine of, Object value) {
    @SuppressWarnings("unchecked")
    Map<String, Object> values =
        (Map<String, Object>) state.computeIfAbsent(variable, v -> new TreeMap<String, Object>());
    values.put(Steps.name(of.id), value);
  }

  private void machine(Machine m) {
    String name = Steps.name(m.id);
    if (m.process != null) {
      alive.add(name);
    }
    if (controller.fenced(m.id)) {
      fenced.add(name);
    }
    if (m.process == null && m.disk.cleanEpoch() != null) {
      clean.add(name);
    } else if (controller.shuttingDown(m.id) && !m.hasStopped) {
      leaving.add(name);
    }
    if (asks && m.leads()) {
      put("log", m, m.process.toldLog());
      put("high_watermark", m, m.process.toldWatermark());
    } else {
      List<Broker.Row> rows = m.process == null ? Broker.rows(m.disk.log()) : m.process.rows();
      put("log", m, rows.stream().map(Broker.Row::name).toList());
      put("high_watermark", m, m.watermark());
    }
    int leader = m.process == null ? -1 : m.process.leader();
    put("leader", m, leader < 0 ? null : Steps.name(leader));
    int epoch = m.process == null ? 0 : Math.max(0, m.process.leaderEpoch());
    put("leader_epoch", m, Math.max(epoch, m.deletedIn));
    leader(m);
    fetch(m, m.fetch);
    alter(m, m.alter);
  }

  private void leader(Machine m) {
    boolean leads = m.leads();
    put("isr", m, leads ? Steps.names(m.process.isr()) : List.of());
    put("pending_isr", m, leads ? Steps.names(m.process.pending()) : List.of());
    put("partition_epoch", m, leads ? m.process.partition().getPartitionEpoch() : 0);
    Map<String, Object> ends = new TreeMap<>();
    Map<String, Object> epochs = new TreeMap<>();
    for (int f = 0; f < world.size(); f++) {
      Replica replica = leads ? m.process.replica(f) : null;
      long end = replica == null ? -1 : replica.stateSnapshot().logEndOffset();
      ends.put(Steps.name(f), end < 0 ? null : end);
      long epoch = replica == null ? 0 : Shapes.brokerEpoch(replica, 0);
      epochs.put(Steps.name(f), HeldController.incarnation(epoch));
    }
    put("follower_end", m, ends);
    if (world.settings.operations()) {
      operations(m, ends.keySet().stream().map(Steps::id).toList());
    }
    if (world.settings.producersWait()) {
      put("leading_since", m, m.leadingSince);
    }
    if (world.settings.ownView()) {
      put("known_away", m, MetadataSteps.away(world, m));
    }
    if (world.settings.restarts()) {
      put("broker_epoch", m, HeldController.incarnation(controller.epoch(m.id)));
      put("follower_broker_epoch", m, epochs);
    }
  }

  private void operations(Machine m, List<Integer> everybody) {
    boolean leads = m.leads();
    put("own_minimum", m, m.minimum());
    put(
        "own_replicas",
        m,
        Steps.names(
            everybody.stream()
                .filter(b -> leads && (b == m.id || m.process.replica(b) != null))
                .toList()));
    put(
        "heard_of",
        m,
        Steps.names(everybody.stream().filter(b -> (m.answeredFetchers >> b & 1) == 1).toList()));
    if (world.settings.lateNews() > 0 && leads && m.process.ahead()) {
      ahead.add(Steps.name(m.id));
    }
  }

  private void fetch(Machine m, Machine.Fetch fetch) {
    put("fetch", m, fetch.kind);
    put("fetch_to", m, fetch.to < 0 ? null : Steps.name(fetch.to));
    put("fetch_epoch", m, fetch.epoch);
    put("fetch_offset", m, fetch.offset);
    put("fetch_last_epoch", m, fetch.last);
    put("fetch_record", m, fetch.record);
    put("fetch_watermark", m, fetch.watermark);
  }

  private void alter(Machine m, Machine.Alter alter) {
    boolean requested = alter.kind.equals("requested");
    AlterPartitionRequestData.PartitionData asked = requested ? alter.partition() : null;
    List<Integer> isr = new ArrayList<>();
    if (requested) {
      asked.newIsrWithEpochs().forEach(member -> isr.add(member.brokerId()));
    }
    put("alter", m, alter.kind);
    put("alter_isr", m, Steps.names(isr));
    put("alter_leader_epoch", m, requested ? asked.leaderEpoch() : 0);
    put("alter_partition_epoch", m, requested ? asked.partitionEpoch() : 0);
    if (world.settings.restarts()) {
      put("alter_broker_epoch", m, requested ? HeldController.incarnation(alter.joiner) : 0);
    }
  }

  private void controller() {
    PartitionRegistration now = controller.partition();
    state.put("alive", alive);
    state.put("truncating", List.of()); // before KIP-595
    state.put("fenced", fenced);
    state.put("controller_leader", now.leader < 0 ? null : Steps.name(now.leader));
    state.put("controller_epoch", now.leaderEpoch);
    state.put("controller_partition_epoch", now.partitionEpoch);
    state.put("controller_isr", Steps.names(now.isr));
    state.put("controller_elr", Steps.names(now.elr));
    state.put(
        "last_known_leader", now.lastKnownElr.length == 0 ? null : Steps.name(now.lastKnownElr[0]));
    if (world.settings.operations()) {
      state.put("replicas", Steps.names(now.replicas));
      state.put("adding", Steps.names(now.addingReplicas));
      state.put("removing", Steps.names(now.removingReplicas));
      state.put("minimum", controller.minimum());
      state.put("ahead", ahead);
    }
    if (world.settings.oldMetadata() > 0) {
      image(world.image);
    }
    if (world.settings.newDirectories()) {
      state.put(
          "elsewhere",
          Steps.names(
              Arrays.stream(now.replicas)
                  .filter(r -> !now.directory(r).equals(world.look(r).directory()))
                  .toArray()));
      state.put(
          "to_register",
          Steps.names(
              IntStream.range(0, world.settings.replicas())
                  .filter(i -> !controller.registers(i, world.look(i).directory()))
                  .toArray()));
    }
    if (world.settings.shutdowns() > 0) {
      state.put("shutting_down", leaving);
      state.put("clean_shutdown", clean);
    }
  }

  private void image(Image image) {
    PartitionRegistration partition = image == null ? null : image.partition();
    boolean isLed = image != null && partition.leader >= 0;
    state.put("image_readers", image == null ? List.of() : Steps.names(image.readers()));
    state.put("image_leader", isLed ? Steps.name(partition.leader) : null);
    state.put("image_epoch", image == null ? 0 : partition.leaderEpoch);
    state.put("image_version", image == null ? 0 : partition.partitionEpoch);
    state.put("image_isr", image == null ? List.of() : Steps.names(partition.isr));
    state.put("image_replicas", image == null ? List.of() : Steps.names(partition.replicas));
    state.put("image_minimum", image == null ? 0 : image.minimum());
    if (world.settings.ownView()) {
      state.put("image_away", image == null ? List.of() : Steps.names(image.away()));
    }
  }

  private void history() {
    History told = world.history;
    state.put("written_in", told.writtenIn);
    state.put("acked", told.acked);
    state.put("committed", told.committed);
    state.put("crashes", told.crashes);
    state.put("lossy_crashes", told.lossy);
    state.put("sessions_lost", told.sessionsLost);
    state.put("unnoticed", 0); // before KRaft
    state.put("shutdowns", told.shutdowns);
    if (world.settings.operations()) {
      state.put("reassignments", told.reassignments);
      state.put("minimum_changes", told.minimumChanges);
      state.put("disks_replaced", told.disksReplaced);
      state.put("directories_removed", told.directoriesRemoved);
      state.put("unclean_switches", told.uncleanSwitches);
      state.put("unclean_enabled", world.unclean());
      state.put("copies", told.copies);
      state.put("late_news", told.lateNews);
      state.put("least", told.least);
      if (world.settings.snapshotsLoaded() > 0) {
        state.put("snapshots_loaded", told.snapshotsLoaded);
      }
      if (world.settings.oldMetadata() > 0) {
        state.put("old_metadata", told.oldMetadata);
      }
    }
    if (world.settings.consumers() > 0) {
      state.put("position", told.position);
      state.put("consumed", told.consumed);
    }
  }
}
