package insync.controllers;

import com.fasterxml.jackson.databind.JsonNode;
import insync.conform.Conversation;
import insync.conform.Refused;
import insync.conform.SystemUnderTest;
import insync.raft.ImpossibleLeader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/** QuorumControllers on KafkaRaftClients behind the protocol of docs/conform.md. */
public final class Main implements SystemUnderTest<World> {
  /** What a broker is to its controllers: whether it lives, and what it asks. */
  private static final List<String> SURROUNDINGS =
      List.of(
          "alive",
          "leader",
          "leader_epoch",
          "partition_epoch",
          "isr",
          "alter",
          "alter_isr",
          "alter_leader_epoch",
          "alter_partition_epoch",
          "alter_term",
          "sessions_lost");

  private static final List<String> BROKER_EPOCHS = List.of("broker_epoch", "alter_broker_epoch");

  private final Map<String, World> beginnings = new LinkedHashMap<>();
  private Bounds bounds;
  private Steps steps;

  public static void main(String[] arguments) throws Exception {
    new Conversation<>(new Main()).run();
  }

  @Override
  public Greeting hello(JsonNode constants) {
    bounds = new Bounds(constants);
    if (constants.path("dynamic").asBoolean()) {
      throw new IllegalArgumentException("voters with directory ids are not driven");
    }
    steps = new Steps(bounds);
    List<String> surroundings = new ArrayList<>(SURROUNDINGS);
    if (bounds.restarts() > 0) {
      surroundings.addAll(BROKER_EPOCHS);
    }
    World world = beginning(1, 1).with(constants);
    List<String> variables = new ArrayList<>(Snapshot.of(world, bounds).keySet());
    return new Greeting(
        "QuorumController of Apache Kafka " + AppInfoParser.getVersion(),
        variables,
        steps.names(),
        true,
        surroundings);
  }

  @Override
  public World reset(JsonNode state) {
    int active = Names.id(state.get("quorum_leaders").get(0).asText());
    int first = Names.id(state.get("controller_leader").asText());
    return beginning(active, first).with(state);
  }

  /** Everybody has the partition, which this broker leads; this controller is active. */
  private World beginning(int active, int first) {
    return beginnings.computeIfAbsent(active + " " + first, ignored -> begin(active, first));
  }

  private World begin(int active, int first) {
    World world = new World(bounds.of("voters"), bounds.of("replicas"), bounds.of("min_insync"));
    Set<Integer> others = new LinkedHashSet<>();
    for (int c = 1; c <= world.controllers(); c++) {
      if (c != active) {
        others.add(c);
      }
    }
    Quorum.settle(world, active, others);
    List<Integer> replicas = new ArrayList<>(List.of(first));
    for (int r = 1; r <= world.brokers(); r++) {
      world.controller(active).process.registers(r, 0);
      spread(world, active, others);
      world.settle();
      long epoch = world.row(active).last().registrations().get(r).get(0);
      world.controller(active).process.heartbeat(r, epoch);
      spread(world, active, others);
      if (r != first) {
        replicas.add(r);
      }
    }
    world.controller(active).process.creates(replicas);
    spread(world, active, others);
    world.settle();
    world.begins();
    return world;
  }

  private static void spread(World world, int active, Set<Integer> others) {
    world.controller(active).client.rest();
    Quorum.spread(world, active, others);
  }

  @Override
  public World amid(World world, JsonNode values) {
    return world.with(values);
  }

  @Override
  public World step(World world, Step step) {
    World draft = world.draft();
    try {
      steps.take(draft, step);
      draft.settle();
    } catch (Refused refused) {
      throw refused;
    } catch (IllegalStateException problem) {
      if (!ImpossibleLeader.isReason(problem)) {
        throw Refused.failure(problem);
      }
      throw Refused.cannot("its process ends: it is told of a leader that cannot be");
    } catch (RuntimeException | LinkageError problem) {
      throw Refused.failure(problem);
    }
    return draft;
  }

  @Override
  public Map<String, Object> snapshot(World world) {
    return Snapshot.of(world, bounds);
  }

  @Override
  public List<Step> candidates() {
    return steps.candidates();
  }

  @Override
  public boolean within(World world) {
    return bounds.hold(world);
  }
}
