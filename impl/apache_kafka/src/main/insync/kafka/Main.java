package insync.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import insync.conform.Conversation;
import insync.conform.Refused;
import insync.conform.SystemUnderTest;
import java.util.List;
import java.util.Map;

/** Apache Kafka's own classes behind the protocol of docs/conform.md. */
public final class Main implements SystemUnderTest<World> {
  private final Steps steps = new Steps();
  private Settings settings;

  public static void main(String[] arguments) throws Exception {
    new Conversation<>(new Main()).run();
    System.err.println("expansions in which the leader's view was set: " + Steering.overridden);
    System.exit(0);
  }

  @Override
  public Greeting hello(JsonNode constants) {
    settings = Settings.of(constants);
    return new Greeting(
        "Apache Kafka " + Parts.VERSION, null, null, !Boolean.getBoolean("insync.no-enabled"));
  }

  @Override
  public World reset(JsonNode state) throws Exception {
    return new World(settings, Steps.id(state.get("controller_leader").asText()));
  }

  @Override
  public World step(World world, String action, JsonNode parameters) throws Exception {
    if (!steps.has(action)) {
      throw Refused.cannot("this adapter has no " + action);
    }
    World draft = world.draft();
    steps.take(draft, action, parameters);
    draft.settle();
    return draft;
  }

  @Override
  public boolean within(World world) {
    return world.within();
  }

  @Override
  public Map<String, Object> snapshot(World world) {
    return Snapshot.of(world);
  }

  @Override
  public List<Step> candidates(World world) {
    return steps.candidates(world);
  }
}
