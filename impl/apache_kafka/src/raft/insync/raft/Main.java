package insync.raft;

import com.fasterxml.jackson.databind.JsonNode;
import insync.conform.Conversation;
import insync.conform.Refused;
import insync.conform.SystemUnderTest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.apache.kafka.raft.HeldClient;

/** KafkaRaftClients behind the protocol of docs/conform.md. */
public class Main implements SystemUnderTest<World> {
  /** What only some designs have, by the bound that they have for it. */
  private static final Map<String, String> BOUNDED =
      Map.of("list_leaves_out", "omissions", "node_is_formatted_alone", "lone_disks");

  private final Steps steps = new Steps();
  private JsonNode constants;

  public static void main(String[] arguments) throws Exception {
    new Conversation<>(new Main()).run();
  }

  @Override
  public Greeting hello(JsonNode constants) {
    this.constants = constants;
    List<String> variables = new ArrayList<>(snapshot(reset(null)).keySet());
    if (!HeldClient.notesFetches()) {
      variables.remove("has_fetched");
    }
    return new Greeting(
        "KafkaRaftClient of Apache Kafka " + AppInfoParser.getVersion(), variables, null, true);
  }

  private int bound(String name) {
    return constants.get(name).asInt();
  }

  @Override
  public World reset(JsonNode state) {
    return new World(bound("voters"), constants.get("dynamic").asBoolean(), this::firstDisk);
  }

  /** The disk of a voter before anything has happened. */
  Disk firstDisk(int voter) {
    return new Disk(0, 1);
  }

  @Override
  public World step(World world, Step step) {
    if (!steps.has(step.action())) {
      throw Refused.cannot("this adapter has no " + step.action());
    }
    World draft = world.draft();
    try {
      steps.take(draft, step);
      draft.settle();
    } catch (Refused refused) {
      throw refused;
    } catch (RuntimeException | LinkageError problem) {
      throw Refused.failure(problem);
    }
    return draft;
  }

  @Override
  public Map<String, Object> snapshot(World world) {
    Map<String, Object> all =
        Snapshot.of(
            world,
            bound("epochs"),
            bound("log"),
            bound("snapshots") > 0,
            constants.has("late_requests"));
    if (bound("changes") == 0) {
      all.remove("awaited_end");
    }
    if (constants.has("omissions")) {
      Snapshot.putLists(all, world);
    }
    if (constants.has("lone_disks")) {
      Snapshot.putLoneNodes(all, world);
    }
    return all;
  }

  @Override
  public List<Step> candidates() {
    List<Step> all =
        steps.candidates(
            bound("voters"),
            constants.get("dynamic").asBoolean(),
            bound("snapshots") > 0 ? bound("log") : 0,
            constants.has("late_requests"));
    all.removeIf(
        step -> BOUNDED.containsKey(step.action()) && !constants.has(BOUNDED.get(step.action())));
    return all;
  }

  @Override
  public boolean within(World world) {
    for (int v = 1; v <= world.voters(); v++) {
      Snapshot.Row row = world.place(v).row;
      if (row.epoch() > bound("epochs") || row.log().size() > bound("log")) {
        return false;
      }
      if (constants.has("list_size")
          && !world.missing(v).isEmpty()
          && world.firstVoters(v).size() < bound("list_size")) {
        return false;
      }
    }
    return world.writes <= bound("writes")
        && world.restarts <= bound("restarts")
        && world.lostDisks <= bound("lost_disks")
        && world.snapshots <= bound("snapshots")
        && world.changes <= bound("changes")
        && world.joiners().size() <= bound("joiners")
        && (world.lateRequests == 0 || world.lateRequests <= bound("late_requests"))
        && (!constants.has("omissions") || world.omissions() <= bound("omissions"))
        && (!constants.has("lone_disks") || world.loneNodes().size() <= bound("lone_disks"));
  }
}
